package apply_test

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

func (f *fixture) pruneOnce(policy v1alpha1.DeletePolicy) []apply.Change {
	f.T.Helper()
	pruned, err := f.engine.Prune(f.T.Context(), f.owner, f.inventory, policy)
	require.NoError(f.T, err)
	f.inventory = pruned.Inventory
	return pruned.Changes
}

func TestPrune_HighestWaveFirst(t *testing.T) { testkit.Virtual(t, testPruneHighestWaveFirst) }

func testPruneHighestWaveFirst(t *testing.T) {
	f := newMemoryFixture(t)
	low, high := f.configMap("low", "{k: v}", wave(1)), f.configMap("high", "{k: v}", wave(2))
	high.Manifest.SetFinalizers([]string{"example.com/a", "example.com/b"})
	f.apply(low, high)
	f.pruneOnce(v1alpha1.DeletePolicy{})
	changes := f.pruneOnce(v1alpha1.DeletePolicy{})
	require.Equal(t, apply.Skipped, changes[0].Action, "the lower wave waits")
	require.Contains(t, changes[0].Message, "Waiting for the deletion of ConfigMap "+f.Namespace+"/high.")
	require.Equal(t, apply.Deleting, changes[1].Action)
	require.Contains(t, changes[1].Message, "example.com/a, example.com/b", "the message names the finalizers")
	require.Contains(t, f.one(high).Message, "waits for finalizers", "an apply reports the finalizers as well")
	require.Zero(t, f.get(low.Manifest).GetDeletionTimestamp())

	f.patch(high.Manifest, "{metadata: {finalizers: null}}")
	f.prune(v1alpha1.DeletePolicy{})
	require.True(t, f.isGone(low.Manifest))
}

func TestPrune_Propagation(t *testing.T) { testkit.Virtual(t, testPrunePropagation) }

func testPrunePropagation(t *testing.T) {
	for name, want := range map[metav1.DeletionPropagation]string{"Foreground": "Foreground", "Background": "Background",
		"": "Foreground"} {
		f := newMemoryFixture(t)
		f.one(f.configMap("a", "{k: v}"))
		var sent string
		f.intercept(func(r *http.Request) {
			if r.Method == http.MethodDelete {
				body, err := r.GetBody()
				require.NoError(t, err)
				data, err := io.ReadAll(body)
				require.NoError(t, err)
				sent = string(data)
			}
		})
		f.pruneOnce(v1alpha1.DeletePolicy{Propagation: name})
		require.Contains(t, sent, want)
		require.Contains(t, sent, string(f.inventory[0].UID), "the deletion has the observed UID as a precondition")
	}
}

func TestPrune_OrphanRestoresTheObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	object := f.configMap("a", "{k: v}", takeover(v1alpha1.TakeoverAlways))
	createByKubectl(t, f, f.configMap("a", "{k: v}"))
	before := f.get(object.Manifest)
	f.one(object)
	f.prune(v1alpha1.DeletePolicy{Action: v1alpha1.OrphanObject})
	after := f.get(object.Manifest)
	require.Equal(t, state(t, before), state(t, after))
	for _, entry := range after.GetManagedFields() {
		require.NotEqual(t, f.owner.FieldOwner, entry.Manager, "the owner manages no field of the orphaned object")
	}
	require.NotEmpty(t, after.GetManagedFields(), "kubectl still manages its fields")

	alone := f.configMap("alone", "{k: v}")
	f.one(alone)
	f.prune(v1alpha1.DeletePolicy{Action: v1alpha1.OrphanObject})
	require.Empty(t, f.get(alone.Manifest).GetManagedFields(), "an object that only the owner has applied has no managers")
}

func TestPrune_ObjectReplacedConcurrently(t *testing.T) {
	testkit.Virtual(t, testPruneObjectReplacedConcurrently)
}

func testPruneObjectReplacedConcurrently(t *testing.T) {
	for _, action := range []v1alpha1.DeleteAction{v1alpha1.DeleteObject, v1alpha1.OrphanObject} {
		f := newMemoryFixture(t)
		object := f.configMap("a", "{k: v}")
		f.one(object)
		done := false
		f.intercept(func(r *http.Request) {
			if r.Method == http.MethodDelete && !done || r.Method == http.MethodPatch && !done {
				done = true // between the read and the write, a client creates the object again
				require.NoError(t, f.Client.Delete(t.Context(), object.Manifest.DeepCopy()))
				require.NoError(t, f.Client.Create(t.Context(), sameNamed(object)))
			}
		})
		f.prune(v1alpha1.DeletePolicy{Action: action})
		require.True(t, done)
		require.Equal(t, "found", f.get(object.Manifest).Object["data"].(map[string]any)["k"], "the new object is kept")
	}
}

func TestPrune_SharedObjectDeletedConcurrently(t *testing.T) {
	testkit.Virtual(t, testPruneSharedObjectDeletedConcurrently)
}

func testPruneSharedObjectDeletedConcurrently(t *testing.T) {
	a := newMemoryFixture(t)
	b := a.other()
	object := a.configMap("a", "{k: v}")
	a.one(object)
	b.one(object)
	done := false
	b.intercept(func(r *http.Request) {
		if r.Method == http.MethodPatch && !done {
			done = true
			require.NoError(t, a.Client.Delete(t.Context(), object.Manifest.DeepCopy()))
		}
	})
	b.prune(v1alpha1.DeletePolicy{})
	require.True(t, done && a.isGone(object.Manifest))
}

func TestPrune_KindIsNotServed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	definition, resource := f.custom("gone", "Namespaced")
	f.apply(definition, resource)
	require.NoError(t, f.Client.Delete(t.Context(), definition.Manifest.DeepCopy()))
	require.Eventually(t, func() bool { return f.isGone(definition.Manifest) }, deadline, 50*time.Millisecond)
	f.prune(v1alpha1.DeletePolicy{})

	f.inventory = []v1alpha1.AppliedResource{{ResourceIdentifier: v1alpha1.ResourceIdentifier{Group: "never.example.com",
		Version: "v1", Kind: "Never", Name: "x"}}}
	f.prune(v1alpha1.DeletePolicy{})
}

func TestPrune_RefusedObjects(t *testing.T) { testkit.Virtual(t, testPruneRefusedObjects) }

func testPruneRefusedObjects(t *testing.T) {
	f := newMemoryFixture(t)
	inner := f.object("{apiVersion: v1, kind: Namespace, metadata: {name: NS-inner}}")
	f.one(inner)
	kept := f.inventory
	f.inventory = nil
	var refused []apply.Object
	for _, text := range []string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NS}}",
		"{apiVersion: nobody.example.com/v1, kind: X, metadata: {name: a}}",
	} {
		refused = append(refused, f.object(text))
	}
	for _, change := range f.apply(refused...) {
		require.Equal(t, apply.Failed, change.Action)
	}
	f.inventory = append(f.inventory, v1alpha1.AppliedResource{ // as recorded by earlier releases
		ResourceIdentifier: v1alpha1.ResourceIdentifier{Version: "v1", Kind: "Namespace", Namespace: f.Namespace,
			Name: f.Namespace + "-inner"},
	})
	f.prune(v1alpha1.DeletePolicy{})
	require.Zero(t, f.get(inner.Manifest).GetDeletionTimestamp(),
		"an entry with a namespace does not identify the cluster-scoped object")
	f.inventory = kept
	f.prune(v1alpha1.DeletePolicy{})
}

func TestPrune_RecordedVersionIsNotServed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.one(f.object(hpa))
	require.NotEmpty(t, f.inventory[0].UID)
	f.inventory[0].Version = "v2beta2" // no longer served
	f.restart()
	f.prune(v1alpha1.DeletePolicy{})
	require.True(t, f.isGone(f.object(hpa).Manifest))
}

// TestPrune_DefinitionChangesVersion checks that objects are found after their definition has stopped serving the
// version with which they were applied.
func TestPrune_DefinitionChangesVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	definition, resource := f.custom("moved", "Namespaced")
	f.apply(definition, resource)
	require.Len(t, f.inventory, 2)
	crd := f.get(definition.Manifest)
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	require.NoError(t, err)
	old := versions[0].(map[string]any)
	next := runtime.DeepCopyJSON(old)
	next["name"] = "v2"
	old["served"], old["storage"] = false, false
	require.NoError(t, unstructured.SetNestedSlice(crd.Object, []any{old, next}, "spec", "versions"))
	require.NoError(t, f.Client.Update(t.Context(), crd))
	moved := resource.Manifest.DeepCopy()
	moved.SetAPIVersion(moved.GroupVersionKind().Group + "/v2")
	require.Eventually(t, func() bool { // served in the new version, and no longer in the old one
		fresh := newClient(t, plane.ForTest(t).Config())
		stale := resource.Manifest.DeepCopy()
		return fresh.Get(t.Context(), client.ObjectKeyFromObject(moved), moved) == nil && fresh.Get(t.Context(),
			client.ObjectKeyFromObject(stale), stale) != nil
	}, deadline, 100*time.Millisecond)

	f.inventory = slices.DeleteFunc(f.inventory, func(r v1alpha1.AppliedResource) bool { return r.Kind != "Thing" })
	// In the foreground, the object waits for the garbage collector, which looks for new kinds only twice a minute.
	f.prune(v1alpha1.DeletePolicy{Propagation: metav1.DeletePropagationBackground})
	require.True(t, apierrors.IsNotFound(newClient(t, plane.ForTest(t).Config()).Get(t.Context(),
		client.ObjectKeyFromObject(moved), moved)))
}

// custom returns a definition and a custom resource of it.
func (f *fixture) custom(name, scope string) (definition, resource apply.Object) {
	f.T.Helper()
	group := name + "." + f.Namespace + ".example.com"
	definition = f.object(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.` + group + `}
spec:
  group: ` + group + `
  scope: ` + scope + `
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions:
  - {name: v1, served: true, storage: true,
     schema: {openAPIV3Schema: {type: object,
       properties: {spec: {type: object, properties: {a: {type: string}, amount: {x-kubernetes-int-or-string: true},
         free: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}}`)
	resource = f.object(`{apiVersion: ` + group + `/v1, kind: Thing, metadata: {name: thing, namespace: NS}, spec: {a: ` +
		`b, amount: 5, free: {list: [{a: 1.5}, [2]], deep: {er: {}}}}}`)
	if scope == "Cluster" {
		unstructured.RemoveNestedField(resource.Manifest.Object, "metadata", "namespace")
	}
	return definition, resource
}

const hpa = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: NS},
    spec: {minReplicas: 1, maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web},
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}`

func TestStale_Namespaces(t *testing.T) {
	t.Parallel()
	entry := func(namespace string) v1alpha1.AppliedResource {
		return v1alpha1.AppliedResource{ResourceIdentifier: v1alpha1.ResourceIdentifier{Version: "v1", Kind: "Thing",
			Namespace: namespace, Name: "x"}}
	}
	object := func(namespace string, mode v1alpha1.ApplyMode) apply.Object {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("v1")
		u.SetKind("Thing")
		u.SetNamespace(namespace)
		u.SetName("x")
		return apply.Object{Manifest: u, Mode: mode}
	}
	for name, tc := range map[string]struct {
		reason   string
		recorded string
		object   apply.Object
		want     int
		action   v1alpha1.DeleteAction
	}{
		"wanted":    {"the object is still in the set", "a", object("a", ""), 0, ""},
		"elsewhere": {"another namespace is another object", "a", object("b", ""), 1, ""},
		"lost": {"a manifest without its namespace is invalid, and the object is kept", "a",
			object("", ""), 0, ""},
		"superfluous": {"a cluster-scoped manifest with a namespace keeps the object", "", object("a", ""), 0, ""},
		"observed":    {"an observed object is released", "a", object("a", v1alpha1.Observe), 1, v1alpha1.OrphanObject},
	} {
		stale := apply.Stale([]v1alpha1.AppliedResource{entry(tc.recorded)}, []apply.Object{tc.object})
		require.Len(t, stale, tc.want, "%s: %s", name, tc.reason)
		for _, resource := range stale {
			require.Equal(t, tc.action, resource.Delete, tc.reason)
		}
	}
}
