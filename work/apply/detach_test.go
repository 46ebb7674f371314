package apply_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// asEarlierRelease gives an object the marks that earlier releases put on it by the same field manager: an owner
// reference, and an annotation whose name is derived from the UID of the owner.
func (w *world) asEarlierRelease(object *unstructured.Unstructured) {
	w.t.Helper()
	live := w.get(object)
	config := object.DeepCopy()
	config.SetOwnerReferences([]metav1.OwnerReference{w.owner.Reference})
	config.SetLabels(map[string]string{v1alpha1.AppliedLabel: "true"})
	config.SetAnnotations(
		map[string]string{apply.FormerMark(w.owner.Reference.UID): live.GetAnnotations()[w.owner.Mark()]})
	require.NoError(w.t, w.admin.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(config),
		client.FieldOwner(w.owner.FieldOwner), client.ForceOwnership))
	live = w.get(object)
	require.Len(w.t, live.GetOwnerReferences(), 1)
	require.NotContains(w.t, live.GetAnnotations(), w.owner.Mark())
}

// TestApply_RemovesOwnerReferencesOfEarlierReleases checks that the next apply removes owner references of an earlier
// release, and changes nothing else.
func TestApply_RemovesOwnerReferencesOfEarlierReleases(t *testing.T) {
	testkit.Virtual(t, testApplyRemovesOwnerReferencesOfEarlierReleases)
}

func testApplyRemovesOwnerReferencesOfEarlierReleases(t *testing.T) {
	for name, options := range map[string][]func(*apply.Object){
		"apply": nil, "report": {drift(v1alpha1.DriftReport)}, "create-only": {func(o *apply.Object) {
			o.Mode = v1alpha1.CreateOnly
		}},
	} {
		for _, edit := range []bool{false, true} {
			w := newWorldInMemory(t)
			object := w.configMap("a", "{k: v}", options...)
			w.one(object)
			before := w.get(object.Manifest)
			w.asEarlierRelease(object.Manifest)
			if edit {
				w.patch(object.Manifest, "{data: {k: edited}}")
			}
			w.restart()
			w.one(object)
			live := w.get(object.Manifest)
			require.Empty(t, live.GetOwnerReferences(), name)
			require.Equal(t, before.GetAnnotations(), live.GetAnnotations(), name)
			require.Equal(t, before.GetLabels(), live.GetLabels(), name)
			require.Equal(t, before.GetUID(), live.GetUID(), name)
			if !edit {
				require.Equal(t, before.Object["data"], live.Object["data"], name)
				require.Equal(t, apply.Unchanged, w.one(object).Action, name)
			} else if name != "apply" {
				require.Equal(t, "edited", live.Object["data"].(map[string]any)["k"], name)
			}
			version := live.GetResourceVersion()
			w.one(object)
			require.Equal(t, version, w.get(object.Manifest).GetResourceVersion(), "%s: the second apply writes nothing", name)

			w.prune(v1alpha1.DeletePolicy{})
			require.True(t, w.isGone(object.Manifest), "%s: the owner prunes the object", name)
		}
	}
}

// TestDetach checks that Detach removes owner references of an earlier release from objects that are not applied any
// more.
func TestDetach(t *testing.T) { testkit.Virtual(t, testDetach) }

func testDetach(t *testing.T) {
	w := newWorldInMemory(t)
	object, foreign := w.configMap("a", "{k: v}"), w.configMap("foreign", "{k: v}")
	w.one(object)
	w.asEarlierRelease(object.Manifest)
	w.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, namespace: NS}}")
	before := w.get(foreign.Manifest).GetResourceVersion()
	resources := append(w.inventory,
		v1alpha1.AppliedResource{ResourceIdentifier: v1alpha1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap",
			Namespace: w.namespace, Name: "foreign"}},
		v1alpha1.AppliedResource{ResourceIdentifier: v1alpha1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap",
			Namespace: w.namespace, Name: "missing"}},
		v1alpha1.AppliedResource{ResourceIdentifier: v1alpha1.ResourceIdentifier{Group: "never.example.com", Version: "v1",
			Kind: "Never", Name: "x"}})
	require.NoError(t, w.engine.Detach(t.Context(), w.owner, resources))
	live := w.get(object.Manifest)
	require.Empty(t, live.GetOwnerReferences())
	require.Contains(t, live.GetAnnotations(), w.owner.Mark())
	require.Equal(t, before, w.get(foreign.Manifest).GetResourceVersion())
	w.restart()
	require.Equal(t, apply.Unchanged, w.one(object).Action, "Detach changes no other field")
}

// TestOwner_DeletionKeepsObjects checks that Kubernetes does not delete objects with their owner, and that an owner
// which is created again with its name still owns them.
func TestOwner_DeletionKeepsObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	object := w.configMap("a", "{k: v}")
	w.one(object)
	before := w.get(object.Manifest)
	require.NoError(t, w.admin.Delete(t.Context(), w.appliedWork(),
		client.PropagationPolicy(metav1.DeletePropagationForeground)))
	require.Eventually(t, func() bool { return w.isGone(w.appliedWork()) }, deadline, 50*time.Millisecond)
	uid := w.owner.Reference.UID
	w.owner = w.newOwner(w.namespace)
	require.NotEqual(t, uid, w.owner.Reference.UID)
	w.inventory = nil
	w.restart()
	require.Equal(t, apply.Unchanged, w.one(object).Action)
	live := w.get(object.Manifest)
	require.Equal(t, before.GetResourceVersion(), live.GetResourceVersion())
	w.prune(v1alpha1.DeletePolicy{})
	require.True(t, w.isGone(object.Manifest))
}

func (w *world) appliedWork() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(w.owner.Reference.APIVersion)
	u.SetKind(w.owner.Reference.Kind)
	u.SetName(w.owner.Reference.Name)
	return u
}

// TestPrune_DeletesOnlyTheObservedVersion checks that a deletion has the observed resourceVersion as a precondition,
// because the metadata decide whether an object has other owners.
func TestPrune_DeletesOnlyTheObservedVersion(t *testing.T) {
	testkit.Virtual(t, testPruneDeletesOnlyTheObservedVersion)
}

func testPruneDeletesOnlyTheObservedVersion(t *testing.T) {
	a := newWorldInMemory(t)
	b := a.other()
	object := a.configMap("a", "{k: v}")
	a.one(object)
	done := false
	a.intercept(func(r *http.Request) {
		if r.Method == http.MethodDelete && !done {
			done = true
			b.one(object)
		}
	})
	a.prune(v1alpha1.DeletePolicy{})
	require.True(t, done)
	require.Equal(t, apply.Unchanged, b.one(object).Action, "the other owner has applied the object in between")
}
