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
func (f *fixture) asEarlierRelease(object *unstructured.Unstructured) {
	f.T.Helper()
	live := f.get(object)
	config := object.DeepCopy()
	config.SetOwnerReferences([]metav1.OwnerReference{f.owner.Reference})
	config.SetLabels(map[string]string{v1alpha1.AppliedLabel: "true"})
	config.SetAnnotations(
		map[string]string{apply.FormerMark(f.owner.Reference.UID): live.GetAnnotations()[f.owner.Mark()]})
	require.NoError(f.T, f.Client.Apply(f.T.Context(), client.ApplyConfigurationFromUnstructured(config),
		client.FieldOwner(f.owner.FieldOwner), client.ForceOwnership))
	live = f.get(object)
	require.Len(f.T, live.GetOwnerReferences(), 1)
	require.NotContains(f.T, live.GetAnnotations(), f.owner.Mark())
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
			f := newMemoryFixture(t)
			object := f.configMap("a", "{k: v}", options...)
			f.one(object)
			before := f.get(object.Manifest)
			f.asEarlierRelease(object.Manifest)
			if edit {
				f.patch(object.Manifest, "{data: {k: edited}}")
			}
			f.restart()
			f.one(object)
			live := f.get(object.Manifest)
			require.Empty(t, live.GetOwnerReferences(), name)
			require.Equal(t, before.GetAnnotations(), live.GetAnnotations(), name)
			require.Equal(t, before.GetLabels(), live.GetLabels(), name)
			require.Equal(t, before.GetUID(), live.GetUID(), name)
			if !edit {
				require.Equal(t, before.Object["data"], live.Object["data"], name)
				require.Equal(t, apply.Unchanged, f.one(object).Action, name)
			} else if name != "apply" {
				require.Equal(t, "edited", live.Object["data"].(map[string]any)["k"], name)
			}
			version := live.GetResourceVersion()
			f.one(object)
			require.Equal(t, version, f.get(object.Manifest).GetResourceVersion(), "%s: the second apply writes nothing", name)

			f.prune(v1alpha1.DeletePolicy{})
			require.True(t, f.isGone(object.Manifest), "%s: the owner prunes the object", name)
		}
	}
}

// TestDetach checks that Detach removes owner references of an earlier release from objects that are not applied any
// more.
func TestDetach(t *testing.T) { testkit.Virtual(t, testDetach) }

func testDetach(t *testing.T) {
	f := newMemoryFixture(t)
	object, foreign := f.configMap("a", "{k: v}"), f.configMap("foreign", "{k: v}")
	f.one(object)
	f.asEarlierRelease(object.Manifest)
	f.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, namespace: NS}}")
	before := f.get(foreign.Manifest).GetResourceVersion()
	resources := append(f.inventory,
		v1alpha1.AppliedResource{ResourceIdentifier: v1alpha1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap",
			Namespace: f.Namespace, Name: "foreign"}},
		v1alpha1.AppliedResource{ResourceIdentifier: v1alpha1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap",
			Namespace: f.Namespace, Name: "missing"}},
		v1alpha1.AppliedResource{ResourceIdentifier: v1alpha1.ResourceIdentifier{Group: "never.example.com", Version: "v1",
			Kind: "Never", Name: "x"}})
	require.NoError(t, f.engine.Detach(t.Context(), f.owner, resources))
	live := f.get(object.Manifest)
	require.Empty(t, live.GetOwnerReferences())
	require.Contains(t, live.GetAnnotations(), f.owner.Mark())
	require.Equal(t, before, f.get(foreign.Manifest).GetResourceVersion())
	f.restart()
	require.Equal(t, apply.Unchanged, f.one(object).Action, "Detach changes no other field")
}

// TestOwner_DeletionKeepsObjects checks that Kubernetes does not delete objects with their owner, and that an owner
// which is created again with its name still owns them.
func TestOwner_DeletionKeepsObjects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	object := f.configMap("a", "{k: v}")
	f.one(object)
	before := f.get(object.Manifest)
	require.NoError(t, f.Client.Delete(t.Context(), f.appliedWork(),
		client.PropagationPolicy(metav1.DeletePropagationForeground)))
	require.Eventually(t, func() bool { return f.isGone(f.appliedWork()) }, deadline, 50*time.Millisecond)
	uid := f.owner.Reference.UID
	f.owner = f.newOwner(f.Namespace)
	require.NotEqual(t, uid, f.owner.Reference.UID)
	f.inventory = nil
	f.restart()
	require.Equal(t, apply.Unchanged, f.one(object).Action)
	live := f.get(object.Manifest)
	require.Equal(t, before.GetResourceVersion(), live.GetResourceVersion())
	f.prune(v1alpha1.DeletePolicy{})
	require.True(t, f.isGone(object.Manifest))
}

func (f *fixture) appliedWork() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(f.owner.Reference.APIVersion)
	u.SetKind(f.owner.Reference.Kind)
	u.SetName(f.owner.Reference.Name)
	return u
}

// TestPrune_DeletesOnlyTheObservedVersion checks that a deletion has the observed resourceVersion as a precondition,
// because the metadata decide whether an object has other owners.
func TestPrune_DeletesOnlyTheObservedVersion(t *testing.T) {
	testkit.Virtual(t, testPruneDeletesOnlyTheObservedVersion)
}

func testPruneDeletesOnlyTheObservedVersion(t *testing.T) {
	a := newMemoryFixture(t)
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
