package revision_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement/internal/revision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestStore_History creates a history, and checks the number of requests of each step.
func TestStore_History(t *testing.T) { testkit.Virtual(t, testStoreHistory) }

func testStoreHistory(t *testing.T) {
	h, w := newHub(t), &transport{}
	workSet, s := h.workSet("web"), h.store(w)
	requests := func() [2]int64 { return [2]int64{w.reads.Swap(0), w.writes.Swap(0)} }
	require.Empty(t, list(t, s, workSet))
	require.Equal(t, [2]int64{1, 0}, requests())

	a := save(t, s, workSet, content(t, "a"), 0)
	require.Equal(t, [2]int64{2, 1}, requests(), "a list, a write, a list")
	require.Equal(t, []any{revision.Name(workSet, content(t, "a").Hash()), int64(1), 1, true},
		[]any{a.Name, a.Number, a.Objects, a.Complete})
	require.Equal(t, a, save(t, s, workSet, content(t, "a"), 7), "the newest revision keeps its number")
	require.Equal(t, [2]int64{1, 0}, requests())

	b := save(t, s, workSet, large(t, "b"), 5)
	require.Equal(t, [2]int64{2, 3}, requests())
	require.Equal(t, []any{int64(5), 3, true}, []any{b.Number, b.Objects, b.Complete})
	require.Equal(t, []revision.Info{b, a}, list(t, s, workSet))
	requests()

	again := save(t, s, workSet, content(t, "a"), 3)
	require.Equal(t, [2]int64{1, 1}, requests(), "a revision that is saved again gets a number only")
	require.Equal(t, int64(6), again.Number, "the number is greater than all others, whatever the argument")
	require.Equal(t, a.CreatedAt, again.CreatedAt)
	require.Equal(t, []string{a.Name, b.Name}, names(list(t, s, workSet)))
	require.Equal(t, int64(6), h.stored()[a.Name].Number, "the field that kubectl shows")
	requests()

	for _, want := range []struct {
		info  revision.Info
		reads int64
	}{{a, 1}, {b, 4}} {
		got, err := s.Load(t.Context(), workSet, want.info.Name)
		require.NoError(t, err)
		require.Equal(t, want.info.Hash, got.Hash())
		require.Equal(t, [2]int64{want.reads, 0}, requests())
		same, err := s.Load(t.Context(), workSet, want.info.Name)
		require.NoError(t, err)
		require.Same(t, got, same, "the revision is cached")
		require.Equal(t, [2]int64{0, 0}, requests())
	}
	require.NoError(t, s.Delete(t.Context(), workSet, b))
	require.Equal(t, [2]int64{0, 3}, requests())
	require.NoError(t, s.Delete(t.Context(), workSet, b), "deleting a deleted revision is no error")
	require.Equal(t, []string{a.Name}, names(list(t, s, workSet)))
	_, err := s.Load(t.Context(), workSet, b.Name)
	require.ErrorIs(t, err, revision.ErrNotFound, "a deleted revision is not cached")
}

func names(infos []revision.Info) (out []string) {
	for _, info := range infos {
		out = append(out, info.Name)
	}
	return out
}

// TestHash_ReadFromAPIServer checks that the defaults and the encoding of the API server do not change the hash of a
// WorkSet or a revision.
func TestHash_ReadFromAPIServer(t *testing.T) {
	t.Parallel()
	h := newHubOnPlane(t)
	contentOf := func(w *v1alpha1.WorkSet) *revision.Content {
		return &revision.Content{Overrides: w.Spec.Overrides, Replicas: w.Spec.Replicas, Work: w.Spec.Work}
	}
	w := &v1alpha1.WorkSet{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "web"}, Spec: v1alpha1.WorkSetSpec{
		Placements: []v1alpha1.PlacementReference{{Name: "all"}}, Resources: []v1alpha1.ResourceSelector{{Kind: "ConfigMap"}},
		Overrides: &v1alpha1.Overrides{
			Rules: []v1alpha1.OverrideRule{
				{MergePatch: &runtime.RawExtension{Raw: []byte(`{"z":-0.0,"y":{"n":null},"x":"<","w":1.0}`)},
					Objects: []v1alpha1.ObjectSelector{{Group: new("")}}}}},
		Replicas: &v1alpha1.ReplicaDivision{Strategy: v1alpha1.DivisionStaticWeight, Weights: []v1alpha1.ClusterWeight{}},
		Work: v1alpha1.WorkTemplate{ManifestOptions: []workv1alpha1.ManifestOption{
			{Select: workv1alpha1.ManifestSelector{Name: "a"}, Wave: new(int32(0))}}},
	}}
	before := contentOf(w.DeepCopy())
	h.Create(w)
	require.NotEqual(t, before.Work, w.Spec.Work, "the API server sets defaults")
	require.Equal(t, before.Hash(), contentOf(w).Hash())

	info := save(t, h.store(&transport{}), w, before, 1)
	loaded, err := h.store(&transport{}).Load(t.Context(), w, info.Name)
	require.NoError(t, err)
	require.Equal(t, before.Hash(), loaded.Hash())
	require.Equal(t, w.Spec.Work, loaded.Work, "Load sets the same defaults")
}

// TestStore_SpecIsImmutable checks that no client can change the spec of a revision, and that labels and number can be
// changed for any content.
func TestStore_SpecIsImmutable(t *testing.T) {
	t.Parallel()
	h := newHubOnPlane(t)
	workSet, s := h.workSet("web"), h.store(&transport{})
	info := save(t, s, workSet, content(t, "<a> & \u2028 b", "1"), 1)
	for name, patch := range map[string]string{
		"content":         `{"spec":{"content":{"objects":[]}}}`,
		"content removed": `{"spec":{"content":null}}`,
		"content renamed": `{"spec":{"content":{"objects":null,"other":[]}}}`,
		"another field":   `{"spec":{"objects":3}}`,
		"whole spec":      `{"spec":null}`,
		"number removed":  `{"number":null}`,
	} {
		err := h.Client.Patch(t.Context(), h.stored()[info.Name], client.RawPatch(types.MergePatchType, []byte(patch)))
		require.True(t, apierrors.IsInvalid(err), "%s: %v", name, err)
	}
	for kind, patch := range map[types.PatchType]string{
		types.MergePatchType: `{"metadata":{"labels":{"merge":"x"}}}`,
		types.JSONPatchType:  `[{"op":"add","path":"/metadata/labels/json","value":"x"}]`,
		types.ApplyPatchType: `{"apiVersion":"placement.muster.dev/v1alpha1","kind":"WorkSetRevision",` +
			`"metadata":{"labels":{"apply":"x"}}}`,
	} {
		var options []client.PatchOption
		if kind == types.ApplyPatchType {
			options = append(options, client.FieldOwner("another-client"))
		}
		require.NoError(t, h.Client.Patch(t.Context(), h.stored()[info.Name], client.RawPatch(kind, []byte(patch)),
			options...), kind)
	}
	require.NoError(t, h.Client.Update(t.Context(), h.stored()[info.Name]), "an update without changes is accepted")
	save(t, s, workSet, content(t, "b"), 2)
	require.Equal(t, int64(3), save(t, s, workSet, content(t, "<a> & \u2028 b", "1"), 3).Number)
	require.Equal(t, "x", h.stored()[info.Name].Labels["merge"], "labels of other clients are kept")
	h.requireLoads(workSet, info)
}

// TestCrash kills the process before each write of a revision of three parts.
func TestCrash(t *testing.T) { testkit.Virtual(t, testCrash) }

func testCrash(t *testing.T) {
	h := newHub(t)
	for k := range int64(3) {
		workSet := h.workSet(fmt.Sprintf("web-%d", k))
		c := large(t, "a")
		crashing := h.store(&transport{fail: func(write int64) error {
			if write > k {
				return errCrashed
			}
			return nil
		}})
		_, err := crashing.Save(t.Context(), workSet, c, 4)
		require.ErrorIs(t, err, errCrashed)

		w := &transport{}
		s, name := h.store(w), revision.Name(workSet, c.Hash())
		infos := list(t, s, workSet)
		_, err = s.Load(t.Context(), workSet, name)
		if k == 0 {
			require.Empty(t, infos)
			require.ErrorIs(t, err, revision.ErrNotFound)
		} else {
			require.Len(t, infos, 1)
			require.False(t, infos[0].Complete)
			require.Equal(t, name, infos[0].Name)
			require.ErrorIs(t, err, revision.ErrIncomplete)
		}
		before := h.versions()
		info := save(t, s, workSet, c, 4)
		require.Equal(t, 3-k, w.writes.Load(), "existing parts are not written again")
		after := h.versions()
		for part, version := range before {
			require.Equal(t, version, after[part])
		}
		require.Equal(t, []any{true, int64(4), name}, []any{info.Complete, info.Number, info.Name})
		h.requireLoads(workSet, info)
	}
	// A revision with a deleted part, including the first, is incomplete as well. Such a revision can be deleted.
	workSet, s := h.workSet("web"), h.store(&transport{})
	info := save(t, s, workSet, large(t, "a"), 1)
	for i := range 3 {
		require.NoError(t, h.Client.Delete(t.Context(), h.stored()[fmt.Sprintf("%s-%d", info.Name, i+1)]))
		_, err := h.store(&transport{}).Load(t.Context(), workSet, info.Name)
		require.ErrorIs(t, err, revision.ErrIncomplete)
		if i < 2 {
			require.True(t, save(t, s, workSet, large(t, "a"), 1).Complete)
		}
	}
	require.NoError(t, s.Delete(t.Context(), workSet, list(t, s, workSet)...))
	require.Empty(t, list(t, s, workSet))
}

// TestSave_Concurrently checks that concurrent calls of Save, as by two leaders for a short time, create each revision
// once, and that a retry resolves every error.
func TestSave_Concurrently(t *testing.T) { testkit.Virtual(t, testSaveConcurrently) }

func testSaveConcurrently(t *testing.T) {
	h := newHub(t)
	workSet := h.workSet("web")
	var all sync.WaitGroup
	for i := range 6 {
		s := h.store(&transport{})
		all.Go(func() {
			for _, text := range []string{"a", "b", "c"}[:1+i%3] {
				_, err := s.Save(t.Context(), workSet, large(t, text), 1)
				for tries := 0; apierrors.IsConflict(err) && tries < 50; tries++ {
					_, err = s.Save(t.Context(), workSet, large(t, text), 1)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	infos := list(t, h.store(&transport{}), workSet)
	require.Len(t, infos, 3)
	require.Len(t, h.stored(), 9)
	for _, info := range infos {
		require.True(t, info.Complete)
		h.requireLoads(workSet, info)
	}
}

// TestStore_LongNames checks the names for WorkSets with names of maximum length that differ in the last letter.
func TestStore_LongNames(t *testing.T) { testkit.Virtual(t, testStoreLongNames) }

func testStoreLongNames(t *testing.T) {
	h := newHub(t)
	s := h.store(&transport{})
	long := strings.Repeat("a.", 125) + "aa"
	require.Len(t, long, 252)
	var infos []revision.Info
	for _, name := range []string{long + "b", long + "c"} {
		workSet := h.workSet(name)
		info := save(t, s, workSet, large(t, "a"), 1)
		infos = append(infos, info)
		require.Equal(t, []revision.Info{info}, list(t, s, workSet))
		h.requireLoads(workSet, info)
	}
	require.NotEqual(t, infos[0].Name, infos[1].Name)
	readable := h.workSet(strings.Repeat("r", 200))
	info := save(t, s, readable, large(t, "a"), 1)
	require.True(t, strings.HasPrefix(info.Name, readable.Name),
		"the name starts with that of the WorkSet if there is room")
	h.requireLoads(readable, info)
	for name, r := range h.stored() {
		require.Empty(t, validation.IsDNS1123Subdomain(name))
		require.LessOrEqual(t, len(r.Labels[v1alpha1.WorkSetLabel]), 63)
	}
}

// TestStore_MaximumSizes checks that the maximum size of an object of a Work fits into a revision, as does a revision
// of many objects.
func TestStore_MaximumSizes(t *testing.T) {
	t.Parallel()
	h := newHubOnPlane(t)
	workSet, s := h.workSet("web"), revision.NewStore(h.Client, h.Client)
	full := content(t, strings.Repeat("x", workv1alpha1.MaxManifestBytes-200))
	full.Overrides = &v1alpha1.Overrides{
		Rules: []v1alpha1.OverrideRule{
			{MergePatch: &runtime.RawExtension{
				Raw: []byte(`{"data":{"k":"` + strings.Repeat("y", v1alpha1.MaxOverrideBytes-100) + `"}}`)}}}}
	h.requireLoads(workSet, save(t, s, workSet, full, 1))
	// The JSON of the API server has six bytes for each < and >.
	markup := content(t, slices.Repeat([]string{strings.Repeat("<a>", 10_000)}, 50)...)
	info := save(t, s, workSet, markup, 2)
	require.Greater(t, len(h.stored()), 4, "the limit applies to the stored text")
	h.requireLoads(workSet, info)
	for _, r := range h.stored() {
		text, err := json.Marshal(r)
		require.NoError(t, err)
		require.Less(t, len(text), workv1alpha1.MaxManifestBytes+4<<10,
			"the managed fields must not grow with the content")
	}
	h.requireLoads(workSet, save(t, s, workSet, &revision.Content{}, 3))
}

// TestLoad_InvalidRevisions checks that Load returns only revisions of this WorkSet for a name that a user chose.
func TestLoad_InvalidRevisions(t *testing.T) { testkit.Virtual(t, testLoadInvalidRevisions) }

func testLoadInvalidRevisions(t *testing.T) {
	h := newHub(t)
	workSet, other, s := h.workSet("web"), h.workSet("db"), h.store(&transport{})
	info := save(t, s, workSet, large(t, "a"), 1)
	for _, name := range []string{"", "web", "../web-5f6d8c9b7a12", "web-5f6d8c9b7a12", info.Name + "-1",
		save(t, s, other, content(t, "a"), 1).Name} {
		_, err := s.Load(t.Context(), workSet, name)
		require.ErrorIs(t, err, revision.ErrNotFound, name)
	}
	good := save(t, s, workSet, content(t, "a"), 1)
	spec := h.stored()[good.Name].Spec
	text := string(spec.Content.Raw)
	for name, test := range map[string]struct{ reason, content, want string }{
		"web-000000000001": {"a content without a format", `{}`, "the revision has format 0"},
		"web-000000000002": {"the content of another revision", text, revision.ErrCorrupt.Error()},
		"web-000000000003": {"an edited content", strings.ReplaceAll(text, `"a"`, `"b"`),
			revision.ErrCorrupt.Error()},
	} {
		spec.Content.Raw = []byte(test.content)
		r := &v1alpha1.WorkSetRevision{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name}, Number: 1,
			Spec: spec}
		r.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(workSet, v1alpha1.GroupVersion.WithKind("WorkSet"))}
		require.NoError(t, h.Client.Create(t.Context(), r), test.reason)
		_, err := s.Load(t.Context(), workSet, name)
		require.ErrorContains(t, err, test.want, test.reason)
	}
}
