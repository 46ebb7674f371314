package apply_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// quiet has both owners pass several times, and neither may write.
func quiet(t *testing.T, aObject, bObject apply.Object, a, b *world) {
	t.Helper()
	version := a.get(aObject.Manifest).GetResourceVersion()
	for range 5 {
		a.one(aObject)
		b.one(bObject)
	}
	require.Equal(t, version, a.get(aObject.Manifest).GetResourceVersion(), "they must not fight")
}

func TestOwnersThatAgreeShare(t *testing.T) {
	t.Parallel()
	a := newWorld(t)
	b := a.other()
	object := a.configMap("a", "{k: v}")
	require.Equal(t, apply.Created, a.one(object).Action)
	require.Equal(t, apply.Configured, b.one(object).Action, "takeover has no say in it")
	require.Equal(t, apply.Unchanged, a.one(object).Action)
	quiet(t, object, object, a, b)

	a.patch(object.Manifest, "{data: {k: edited}}")
	require.Equal(t, apply.Configured, a.one(object).Action,
		"an edit is taken back, though it is not by force over the other owner")
	require.Equal(t, apply.Configured, b.one(object).Action, "and both have the field again")
	quiet(t, object, object, a, b)
	require.Equal(t, "v", a.get(object.Manifest).Object["data"].(map[string]any)["k"])

	b.prune(v1alpha1.DeletePolicy{})
	live := a.get(object.Manifest)
	require.Empty(t, live.GetOwnerReferences())
	require.Len(t, live.GetAnnotations(), 1, "the first one's object stays with it")
	require.Contains(t, live.GetAnnotations(), a.owner.Mark())
	require.Equal(t, apply.Unchanged, a.one(object).Action)

	b.one(object)
	b.prune(v1alpha1.DeletePolicy{Action: v1alpha1.OrphanObject})
	require.Equal(t, apply.Unchanged, a.one(object).Action, "to orphan a shared object takes nothing from the other")

	a.prune(v1alpha1.DeletePolicy{})
	require.True(t, a.isGone(object.Manifest), "the last one deletes it")
}

func TestPruneTakesWhatIsOursAlone(t *testing.T) {
	t.Parallel()
	a := newWorld(t)
	b := a.other()
	a.one(a.configMap("a", "{k: v}"))
	more := a.configMap("a", "{k: v, l: w}")
	require.Equal(t, apply.Configured, b.one(more).Action, "another field takes nothing from anybody")
	require.Equal(t, apply.Unchanged, a.one(a.configMap("a", "{k: v}")).Action)
	b.prune(v1alpha1.DeletePolicy{})
	require.Equal(t, map[string]any{"k": "v"}, a.get(more.Manifest).Object["data"], "and goes with whom it was of")
}

func TestOwnersThatDisagree(t *testing.T) {
	t.Parallel()
	a := newWorld(t)
	b := a.other()
	first, second := a.configMap("a", "{k: v}"), a.configMap("a", "{k: other}", takeover(v1alpha1.TakeoverAlways))
	a.one(first)
	change := b.one(second)
	require.Equal(t, apply.Conflict, change.Action)
	require.Equal(t, []apply.FieldConflict{{Field: ".data.k", Manager: a.owner.FieldOwner}}, change.Conflicts)
	require.Contains(t, change.Message, a.owner.FieldOwner)
	quiet(t, first, second, a, b)
	require.Equal(t, apply.Unchanged, a.one(first).Action)

	b.prune(v1alpha1.DeletePolicy{})
	require.Equal(t, "v", a.get(first.Manifest).Object["data"].(map[string]any)["k"], "what is not ours is not deleted")

	// The same in the middle: both agree, then one changes its mind.
	b.one(first)
	require.Equal(t, apply.Conflict, b.one(second).Action)
	quiet(t, first, second, a, b)
	require.Equal(t, apply.Unchanged, a.one(first).Action)
}

func TestOwnerThatDisagreesUnderReport(t *testing.T) {
	t.Parallel()
	a := newWorld(t)
	b := a.other()
	a.one(a.configMap("a", "{k: v}"))
	b.one(a.configMap("a", "{k: v}", drift(v1alpha1.DriftReport)))
	change := b.one(a.configMap("a", "{k: other}", drift(v1alpha1.DriftReport)))
	require.Equal(t, apply.Conflict, change.Action, "another owner is no edit on the member: %s", change.Message)
}

func TestPruneLeavesWhatOthersOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	object := w.configMap("a", "{k: v}")
	w.one(object)
	holder := w.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: holder, namespace: NS}}")
	live := w.get(object.Manifest)
	live.SetOwnerReferences(append(live.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap",
		Name: "holder", UID: holder.GetUID()}))
	require.NoError(t, w.admin.Update(t.Context(), live))
	w.prune(v1alpha1.DeletePolicy{})
	live = w.get(object.Manifest)
	require.Len(t, live.GetOwnerReferences(), 1)
	require.Empty(t, live.GetLabels())
}

func TestNamespacedOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	holder := w.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: holder, namespace: NS}}")
	w.owner.Reference = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "holder", UID: holder.GetUID()}
	_, err := w.engine.Apply(t.Context(), w.set(w.configMap("a", "{k: v}")), nil)
	require.ErrorIs(t, err, apply.ErrInvalid, "an owner of a namespaced kind needs a namespace")

	w.owner.Namespace = w.namespace
	elsewhere := w.configMap("a", "{k: v}")
	elsewhere.Manifest.SetNamespace("default")
	changes := w.apply(w.configMap("a", "{k: v}"), elsewhere,
		w.object("{apiVersion: v1, kind: Namespace, metadata: {name: x}}"))
	require.Equal(t, apply.Created, changes[0].Action)
	require.Equal(t, "metadata.namespace: must be "+w.namespace+", where its owner is", changes[1].Message)
	require.Equal(t, v1alpha1.ReasonInvalid, changes[2].Reason)
}

func TestKindOfTheOwnerMustBeKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.owner.Reference.Kind = "Nothing"
	_, err := w.engine.Apply(t.Context(), w.set(), nil)
	require.ErrorContains(t, err, "find the kind of the owner")
}
