package apply_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// requireNoWrites lets both owners apply several times, and requires that neither writes.
func requireNoWrites(t *testing.T, aObject, bObject apply.Object, a, b *fixture) {
	t.Helper()
	version := a.get(aObject.Manifest).GetResourceVersion()
	for range 5 {
		a.one(aObject)
		b.one(bObject)
	}
	require.Equal(t, version, a.get(aObject.Manifest).GetResourceVersion(), "the owners revert no writes of each other")
}

func TestOwners_ShareEqualObject(t *testing.T) {
	t.Parallel()
	a := newFixture(t)
	b := a.other()
	object := a.configMap("a", "{k: v}")
	require.Equal(t, apply.Created, a.one(object).Action)
	require.Equal(t, apply.Configured, b.one(object).Action, "takeover does not apply to objects of other owners")
	require.Equal(t, apply.Unchanged, a.one(object).Action)
	requireNoWrites(t, object, object, a, b)

	a.patch(object.Manifest, "{data: {k: edited}}")
	require.Equal(t, apply.Configured, a.one(object).Action,
		"an edit is reverted without force over the other owner")
	require.Equal(t, apply.Configured, b.one(object).Action, "both owners have the field again")
	requireNoWrites(t, object, object, a, b)
	require.Equal(t, "v", a.get(object.Manifest).Object["data"].(map[string]any)["k"])

	b.prune(v1alpha1.DeletePolicy{})
	live := a.get(object.Manifest)
	require.Empty(t, live.GetOwnerReferences())
	require.Len(t, live.GetAnnotations(), 1, "the first owner keeps the object")
	require.Contains(t, live.GetAnnotations(), a.owner.Mark())
	require.Equal(t, apply.Unchanged, a.one(object).Action)

	b.one(object)
	b.prune(v1alpha1.DeletePolicy{Action: v1alpha1.OrphanObject})
	require.Equal(t, apply.Unchanged, a.one(object).Action, "the other owner keeps an orphaned shared object")

	a.prune(v1alpha1.DeletePolicy{})
	require.True(t, a.isGone(object.Manifest), "the last owner deletes the object")
}

func TestPrune_SharedObjectLosesOnlyOwnFields(t *testing.T) {
	t.Parallel()
	a := newFixture(t)
	b := a.other()
	a.one(a.configMap("a", "{k: v}"))
	more := a.configMap("a", "{k: v, l: w}")
	require.Equal(t, apply.Configured, b.one(more).Action, "another field is no conflict")
	require.Equal(t, apply.Unchanged, a.one(a.configMap("a", "{k: v}")).Action)
	b.prune(v1alpha1.DeletePolicy{})
	require.Equal(t, map[string]any{"k": "v"}, a.get(more.Manifest).Object["data"],
		"the field of the pruning owner is removed")
}

func TestOwners_Conflict(t *testing.T) {
	t.Parallel()
	a := newFixture(t)
	b := a.other()
	first, second := a.configMap("a", "{k: v}"), a.configMap("a", "{k: other}", takeover(v1alpha1.TakeoverAlways))
	a.one(first)
	change := b.one(second)
	require.Equal(t, apply.Conflict, change.Action)
	require.Equal(t, []apply.FieldConflict{{Field: ".data.k", Manager: a.owner.FieldOwner}}, change.Conflicts)
	require.Contains(t, change.Message, a.owner.FieldOwner)
	requireNoWrites(t, first, second, a, b)
	require.Equal(t, apply.Unchanged, a.one(first).Action)

	b.prune(v1alpha1.DeletePolicy{})
	require.Equal(t, "v", a.get(first.Manifest).Object["data"].(map[string]any)["k"],
		"an object of the other owner is not deleted")

	// The same later: both owners agree first, then one manifest changes.
	b.one(first)
	require.Equal(t, apply.Conflict, b.one(second).Action)
	requireNoWrites(t, first, second, a, b)
	require.Equal(t, apply.Unchanged, a.one(first).Action)
}

func TestOwners_ConflictWithDriftReport(t *testing.T) {
	t.Parallel()
	a := newFixture(t)
	b := a.other()
	a.one(a.configMap("a", "{k: v}"))
	b.one(a.configMap("a", "{k: v}", drift(v1alpha1.DriftReport)))
	change := b.one(a.configMap("a", "{k: other}", drift(v1alpha1.DriftReport)))
	require.Equal(t, apply.Conflict, change.Action, "a value of another owner is a conflict and not drift: %s",
		change.Message)
}

func TestPrune_KeepsObjectWithOtherOwnerReferences(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	object := f.configMap("a", "{k: v}")
	f.one(object)
	holder := f.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: holder, namespace: NS}}")
	live := f.get(object.Manifest)
	live.SetOwnerReferences(append(live.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap",
		Name: "holder", UID: holder.GetUID()}))
	require.NoError(t, f.Client.Update(t.Context(), live))
	f.prune(v1alpha1.DeletePolicy{})
	live = f.get(object.Manifest)
	require.Len(t, live.GetOwnerReferences(), 1)
	require.Empty(t, live.GetLabels())
}

// TestOwners checks that an owner can be in a namespace, in another cluster, or no object, that its objects can be
// anywhere, and that such owners are different from each other.
func TestOwners(t *testing.T) { testkit.Virtual(t, testOwners) }

func testOwners(t *testing.T) {
	first := newMemoryFixture(t)
	reference := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "App", Name: "shop", UID: "1"}
	owners := map[string]apply.Owner{
		"namespaced, of a kind that the cluster does not have": {Reference: reference, Namespace: "apps"},
		"in another cluster":     {Reference: reference, Namespace: "apps", Cluster: "other"},
		"in a third cluster":     {Reference: reference, Namespace: "apps", Cluster: "third"},
		"no object":              {},
		"another without object": {Cluster: "other"},
	}
	marks := map[string]string{}
	for name, owner := range owners {
		f := first.in(t)
		f.restart()
		owner.FieldOwner = "owner-" + strings.ReplaceAll(name[:3]+name[len(name)-3:], " ", "")
		f.owner = owner
		require.Empty(t, marks[owner.Mark()], "%s has the mark of another owner", name)
		marks[owner.Mark()] = name
		elsewhere := f.configMap(owner.FieldOwner, "{k: v}")
		elsewhere.Manifest.SetNamespace("default")
		here := f.configMap(owner.FieldOwner, "{k: v}")
		role := f.object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-" +
			owner.FieldOwner + "}, rules: []}")
		for _, change := range f.apply(elsewhere, here, role) {
			require.Equal(t, apply.Created, change.Action, "%s: %s %v", name, change.Message, change.Err)
		}
		require.Empty(t, f.get(here.Manifest).GetOwnerReferences(), name)
		f.restart()
		for _, change := range f.apply(elsewhere, here, role) {
			require.Equal(t, apply.Unchanged, change.Action, "%s: %s %v", name, change.Message, change.Err)
		}
		f.prune(v1alpha1.DeletePolicy{})
		require.True(t, f.isGone(elsewhere.Manifest), name)
	}
}

func TestOwner_Invalid(t *testing.T) { testkit.Virtual(t, testOwnerInvalid) }

func testOwnerInvalid(t *testing.T) {
	f := newMemoryFixture(t)
	for problem, owner := range map[string]apply.Owner{
		"owner.reference needs":                    {Reference: metav1.OwnerReference{Name: "a"}, FieldOwner: "x"},
		"owner.namespace requires owner.reference": {Namespace: "apps", FieldOwner: "x"},
		"owner.fieldOwner must have":               {},
	} {
		f.owner = owner
		_, err := f.engine.Apply(t.Context(), f.set(), nil)
		require.ErrorIs(t, err, apply.ErrInvalid)
		require.ErrorContains(t, err, problem)
	}
}
