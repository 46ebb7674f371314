package revision_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement/internal/revision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestStore_RecreatedWorkSet checks that revisions are deleted with their WorkSet, and that the garbage collector does
// not delete the revisions of a WorkSet that is created again with the same name.
func TestStore_RecreatedWorkSet(t *testing.T) {
	t.Parallel()
	h := newHubOnPlane(t)
	old, s, c := h.workSet("web"), h.store(&transport{}), large(t, "a")
	info := save(t, s, old, c, 1)
	existing := h.stored()[info.Name+"-2"]
	finalizers := func(of string) {
		require.NoError(t, h.Client.Patch(t.Context(), existing,
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+of+`}}`))))
	}
	finalizers(`["example.com/hold"]`)
	require.NoError(t, h.Client.Delete(t.Context(), old))
	workSet := h.workSet("web")
	require.NotEqual(t, old.UID, workSet.UID)
	require.Empty(t, list(t, s, workSet), "the new WorkSet must not own the revisions of the old one")
	_, err := s.Load(t.Context(), workSet, info.Name)
	require.ErrorIs(t, err, revision.ErrNotFound)
	requireRefused := func() {
		_, err := s.Save(t.Context(), workSet, c, 1)
		require.ErrorContains(t, err, "retry after the WorkSetRevision is gone")
		require.NotErrorIs(t, err, revision.ErrForeign)
		require.Equal(t, old.UID, h.stored()[existing.Name].OwnerReferences[0].UID)
	}
	requireRefused()
	h.Holds("the garbage collector deletes the revision", func() bool {
		return h.stored()[existing.Name].DeletionTimestamp != nil
	})
	requireRefused()
	finalizers(`null`)
	h.Holds("the revision is saved", func() bool {
		info, err = s.Save(t.Context(), workSet, c, 1)
		return err == nil
	})
	require.Len(t, h.stored(), 3)
	h.requireLoads(workSet, info)
	require.NoError(t, h.Client.Delete(t.Context(), workSet))
	h.Holds("all revisions are deleted", func() bool { return len(h.stored()) == 0 })
}

// TestStore_AdoptsOrphans checks that revisions that remain after a deletion without dependents are adopted by the next
// WorkSet of the name.
func TestStore_AdoptsOrphans(t *testing.T) {
	t.Parallel()
	h := newHubOnPlane(t)
	old, s := h.workSet("web"), h.store(&transport{})
	for _, text := range []string{"<a>", "<b>"} {
		save(t, s, old, content(t, text), 7)
	}
	require.NoError(t, h.Client.Delete(t.Context(), old, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	h.Holds("the revisions have no owner", func() bool {
		for _, r := range h.stored() {
			if len(r.OwnerReferences) > 0 {
				return false
			}
		}
		return apierrors.IsNotFound(h.Client.Get(t.Context(), client.ObjectKeyFromObject(old), &v1alpha1.WorkSet{}))
	})
	before := h.stored()
	require.Len(t, before, 2)
	workSet := h.workSet("web")
	require.Empty(t, list(t, s, workSet))
	info := save(t, s, workSet, content(t, "<a>"), 1)
	require.Equal(t, []any{before[info.Name].UID, int64(1)}, []any{h.stored()[info.Name].UID, info.Number})
	require.Equal(t, []revision.Info{info}, list(t, s, workSet))
	h.requireLoads(workSet, info)
}

// TestSave_ForeignObjects checks that objects of other owners are not changed, whatever their names.
func TestSave_ForeignObjects(t *testing.T) { testkit.Virtual(t, testSaveForeignObjects) }

func testSaveForeignObjects(t *testing.T) {
	h := newHub(t)
	workSet, s := h.workSet("web"), h.store(&transport{})
	c := content(t, "a")
	name := revision.Name(workSet, c.Hash())
	mine := metav1.NewControllerRef(workSet, v1alpha1.GroupVersion.WithKind("WorkSet"))
	owner := func(change func(*metav1.OwnerReference)) []metav1.OwnerReference {
		o := *mine
		change(&o)
		return []metav1.OwnerReference{o}
	}
	labeled := map[string]string{v1alpha1.WorkSetLabel: "web"}
	for _, test := range []struct {
		reason string
		meta   metav1.ObjectMeta
	}{
		{"no owner", metav1.ObjectMeta{}},
		{"owned by a DaemonSet", metav1.ObjectMeta{Labels: labeled, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(workSet, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}}},
		{"owned by another WorkSet",
			metav1.ObjectMeta{Labels: labeled, OwnerReferences: owner(func(o *metav1.OwnerReference) {
				o.Name, o.UID = "db", "1"
			})}},
		{"the label of the WorkSet, with another spec", metav1.ObjectMeta{Labels: labeled}},
		{"owned by the WorkSet, with another spec",
			metav1.ObjectMeta{Labels: labeled, OwnerReferences: []metav1.OwnerReference{*mine}}},
	} {
		test.meta.Namespace, test.meta.Name = h.Namespace, name
		test.meta.Finalizers = []string{"example.com/hold"} // keeps objects of missing owners
		r := &v1alpha1.WorkSetRevision{ObjectMeta: test.meta, Number: 3, Spec: v1alpha1.WorkSetRevisionSpec{
			WorkSet: "web", Revision: name, Hash: c.Hash().String(), Part: "1/1", Objects: 1,
			Content: runtime.RawExtension{Raw: []byte(`{"spec":{}}`)},
		}}
		require.NoError(t, h.Client.Create(t.Context(), r), test.reason)
		_, err := s.Save(t.Context(), workSet, c, 1)
		require.ErrorIs(t, err, revision.ErrForeign, test.reason)
		require.ErrorContains(t, err, name, "the error must name the object")
		require.Empty(t, list(t, s, workSet), test.reason)
		now := h.stored()[name]
		require.Equal(t, []any{r.UID, int64(3), r.Labels, r.OwnerReferences},
			[]any{now.UID, now.Number, now.Labels, now.OwnerReferences}, test.reason)
		now.Finalizers = nil
		require.NoError(t, h.Client.Update(t.Context(), now))
		require.NoError(t, client.IgnoreNotFound(h.Client.Delete(t.Context(), now)))
		h.Holds("the revision is deleted", func() bool { return len(h.stored()) == 0 })
	}
}

// TestStore_ChangedMetadata checks that a client that changes the metadata of a revision hides it until it is saved
// again, and that it can be loaded all the time.
func TestStore_ChangedMetadata(t *testing.T) { testkit.Virtual(t, testStoreChangedMetadata) }

func testStoreChangedMetadata(t *testing.T) {
	h := newHub(t)
	workSet, s, w := h.workSet("web"), h.store(&transport{}), &transport{}
	info := save(t, s, workSet, large(t, "a"), 2)
	for _, patch := range []string{
		`{"metadata":{"labels":null}}`,
		`{"metadata":{"annotations":null}}`,
		`{"metadata":{"annotations":{"placement.muster.dev/revision-part":"1/3"}}}`,
		`{"metadata":{"labels":{"placement.muster.dev/workset":"db"}}}`,
		`{"metadata":{"annotations":{"placement.muster.dev/revision-hash":"` + strings.Repeat("0", 64) + `"}}}`,
		`{"metadata":{"ownerReferences":null}}`,
	} {
		require.NoError(t, h.Client.Patch(t.Context(), h.stored()[info.Name+"-2"],
			client.RawPatch(types.MergePatchType, []byte(patch))))
		require.False(t, list(t, s, workSet)[0].Complete, patch)
		if !strings.Contains(patch, "owner") {
			h.requireLoads(workSet, info)
		}
		w.writes.Store(0)
		repaired := save(t, h.store(w), workSet, large(t, "a"), 2)
		require.Equal(t, []any{true, info.Number, info.Hash, int64(2)}, []any{repaired.Complete, repaired.Number,
			repaired.Hash, w.writes.Load()}, patch)
	}
	h.requireLoads(workSet, info)
	require.Len(t, h.stored(), 3)
}

// TestSave_HashCollision checks that a hash with the digits of the name but another remainder is treated as that of
// other content.
func TestSave_HashCollision(t *testing.T) { testkit.Virtual(t, testSaveHashCollision) }

func testSaveHashCollision(t *testing.T) {
	h := newHub(t)
	workSet, s := h.workSet("web"), h.store(&transport{})
	info := save(t, s, workSet, content(t, "a"), 1)
	other := info.Hash.String()[:12] + strings.Repeat("0", 52)
	patch := `{"metadata":{"annotations":{"placement.muster.dev/revision-hash":"` + other + `"}}}`
	require.NoError(t, h.Client.Patch(t.Context(), h.stored()[info.Name],
		client.RawPatch(types.MergePatchType, []byte(patch))))
	before := h.versions()
	_, err := s.Save(t.Context(), workSet, content(t, "a"), 2)
	require.ErrorContains(t, err, info.Name+" has different content, with the hash "+other)
	require.Equal(t, before, h.versions())
}

// TestDeleteByUID checks that Delete deletes the listed objects, and not objects that have their names since.
func TestDeleteByUID(t *testing.T) { testkit.Virtual(t, testDeleteByUID) }

func testDeleteByUID(t *testing.T) {
	h := newHub(t)
	workSet, s := h.workSet("web"), h.store(&transport{})
	before := save(t, s, workSet, large(t, "a"), 1)
	require.NoError(t, h.Client.Delete(t.Context(), h.stored()[before.Name+"-2"]))
	after := save(t, s, workSet, large(t, "a"), 1)
	require.NoError(t, s.Delete(t.Context(), workSet, before))
	require.Len(t, h.stored(), 1)
	require.NoError(t, s.Delete(t.Context(), workSet, after))
	require.Empty(t, h.stored())
}

// TestPermissions_RolesOfTenants checks that a user with the role view, edit or admin in the namespace of a WorkSet
// cannot read its revisions, which may contain Secrets that the user cannot read either. The user can read
// ControllerRevisions, in which other projects store such content.
func TestPermissions_RolesOfTenants(t *testing.T) {
	t.Parallel()
	h := newHubOnPlane(t)
	info := save(t, h.store(&transport{}), h.workSet("web"), content(t, "a"), 1)
	for _, role := range []string{"view", "edit", "admin"} {
		user := h.Namespace + role
		require.NoError(t, h.Client.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}))
		c := mustertest.Client(t, plane.ForTest(t).User(user), scheme)
		h.Holds(role+" applies", func() bool {
			return c.List(t.Context(), &appsv1.ControllerRevisionList{}, client.InNamespace(h.Namespace)) == nil
		})
		var one v1alpha1.WorkSetRevision
		err := c.Get(t.Context(), client.ObjectKey{Namespace: h.Namespace, Name: info.Name}, &one)
		require.True(t, apierrors.IsForbidden(err), "%s: %v", role, err)
		err = c.List(t.Context(), &v1alpha1.WorkSetRevisionList{}, client.InNamespace(h.Namespace))
		require.True(t, apierrors.IsForbidden(err), "%s: %v", role, err)
	}
}

// TestPermissions checks that the verbs of permissions.go are sufficient, and that each is necessary.
func TestPermissions(t *testing.T) {
	t.Parallel()
	h := newHubOnPlane(t)
	text, err := os.ReadFile("permissions.go")
	require.NoError(t, err)
	markers := regexp.MustCompile(`(?m)^// \+kubebuilder:rbac:groups=(\S+),resources=(\S+),verbs=(\S+)$`).
		FindAllStringSubmatch(string(text), -1)
	require.Len(t, markers, 1)
	verbs := strings.Split(markers[0][3], ";")
	use := func(without string) error {
		user := h.Namespace + without
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{markers[0][1]}, Resources: []string{markers[0][2]},
			Verbs: slices.DeleteFunc(slices.Clone(verbs), func(v string) bool {
				return v == without
			}),
		}}}
		h.Create(role)
		require.NoError(t, h.Client.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}))
		c := mustertest.Client(t, plane.ForTest(t).User(user), scheme)
		s, workSet := revision.NewStore(c, c), h.workSet("web"+without)
		s.SetLimit(limit)
		a, err := s.Save(t.Context(), workSet, content(t, "a"), 1)
		if err != nil {
			return err
		}
		if _, err := s.Save(t.Context(), workSet, large(t, "b"), 2); err != nil {
			return err
		}
		if _, err := s.Save(t.Context(), workSet, content(t, "a"), 3); err != nil { // a gets another number
			return err
		}
		if _, err := s.Load(t.Context(), workSet, a.Name); err != nil {
			return err
		}
		return s.Delete(t.Context(), workSet, list(t, s, workSet)...)
	}
	require.NoError(t, use(""))
	for _, verb := range verbs {
		require.True(t, apierrors.IsForbidden(use(verb)), "without "+verb)
	}
}
