package apply_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// watched is an [apply.Metadata] by an informer of the ConfigMaps of one namespace.
type watched struct{ informer cache.SharedIndexInformer }

func (f *fixture) watch() watched {
	t := f.T
	t.Helper()
	c, err := metadata.NewForConfig(rest.CopyConfig(f.Config))
	require.NoError(t, err)
	factory := metadatainformer.NewFilteredSharedInformerFactory(c, 0, f.Namespace, func(o *metav1.ListOptions) {
		o.LabelSelector = v1alpha1.AppliedLabel + "=true"
	})
	informer := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Informer()
	stop := make(chan struct{})
	factory.Start(stop)
	t.Cleanup(func() {
		close(stop)
		factory.Shutdown()
	})
	require.Eventually(t, informer.HasSynced, deadline, 10*time.Millisecond)
	return watched{informer}
}

func (w watched) Lookup(kind schema.GroupVersionKind, key client.ObjectKey) *metav1.PartialObjectMetadata {
	if kind.Kind != "ConfigMap" {
		return nil
	}
	item, found, _ := w.informer.GetStore().GetByKey(key.String())
	if !found {
		return nil
	}
	return item.(*metav1.PartialObjectMetadata)
}

// awaitObserved waits until the watch has observed the last version of an object.
func (w watched) awaitObserved(t *testing.T, live interface {
	client.Object
}) {
	t.Helper()
	require.Eventually(t, func() bool {
		object := w.Lookup(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, client.ObjectKeyFromObject(live))
		return object != nil && object.ResourceVersion == live.GetResourceVersion()
	}, deadline, 10*time.Millisecond)
}

func (f *fixture) many(n int, value string) []apply.Object {
	f.T.Helper()
	objects := make([]apply.Object, n)
	for i := range objects {
		objects[i] = f.configMap(fmt.Sprintf("many-%03d", i), "{k: "+value+"}")
	}
	return objects
}

// requireRequests checks the numbers of requests since the last call.
func (f *fixture) requireRequests(t *testing.T, reads, writes int, reason string) {
	t.Helper()
	gotReads, gotWrites := f.counted.take()
	require.Equal(t, []int{reads, writes}, []int{gotReads, gotWrites}, "reads and writes: %s", reason)
}

func TestRequests(t *testing.T) { testkit.Virtual(t, testRequests) }

func testRequests(t *testing.T) {
	f := newMemoryFixture(t)
	objects := f.many(6, "v")
	f.counted.take()
	f.apply(objects...)
	f.requireRequests(t, 1, 6, "new objects: one list, and a write for each object")
	f.apply(objects...)
	f.requireRequests(t, 1, 0, "unchanged objects: one list")
	f.restart()
	f.apply(objects...)
	f.requireRequests(t, 1, 0, "unchanged objects after a restart: one list")
	objects[3] = f.configMap("many-003", "{k: changed}")
	f.apply(objects...)
	f.requireRequests(t, 1, 1, "a change: one write")
	f.apply(objects[:2]...)
	f.requireRequests(t, 2, 0, "few objects: a read for each object")
}

func TestRequests_ListWithSeveralPages(t *testing.T) {
	testkit.Virtual(t, testRequestsListWithSeveralPages)
}

func testRequestsListWithSeveralPages(t *testing.T) {
	f := newMemoryFixture(t)
	objects := f.many(520, "v")
	f.apply(objects...)
	f.counted.take()
	f.apply(objects...)
	f.requireRequests(t, 2, 0, "two pages of a list instead of a read for each object")
}

func TestRequests_WithWatch(t *testing.T) { testkit.Virtual(t, testRequestsWithWatch) }

func testRequestsWithWatch(t *testing.T) {
	f := newMemoryFixture(t)
	objects := f.many(6, "v")
	f.apply(objects...)
	metadata := f.watch()
	f.engineWith(metadata)
	f.apply(objects...)
	f.requireRequests(t, 0, 0, "unchanged objects with a watch: no request, also after a restart")

	objects[0] = f.configMap("many-000", "{k: changed}")
	f.apply(objects...)
	f.requireRequests(t, 0, 1, "a change: one write")
	f.patch(objects[1].Manifest, "{data: {k: edited}}")
	metadata.awaitObserved(t, f.get(objects[1].Manifest))
	change := f.apply(objects...)[1]
	f.requireRequests(t, 0, 1, "an edit: one write")
	require.True(t, change.Drifted)

	require.NoError(t, f.Client.Delete(t.Context(), objects[2].Manifest.DeepCopy()))
	require.Eventually(t, func() bool {
		return metadata.Lookup(objects[2].Manifest.GroupVersionKind(), client.ObjectKeyFromObject(objects[2].Manifest)) == nil
	}, deadline, 10*time.Millisecond)
	require.Equal(t, apply.Created, f.apply(objects...)[2].Action)
	f.requireRequests(t, 1, 1, "an object that the watch does not have: a read and a write")
}

// frozen is a watch that never catches up.
type frozen struct {
	objects map[string]*metav1.PartialObjectMetadata
}

func (f frozen) Lookup(_ schema.GroupVersionKind, key client.ObjectKey) *metav1.PartialObjectMetadata {
	return f.objects[key.Name]
}

func (f *fixture) freeze(objects ...apply.Object) frozen {
	f.T.Helper()
	all := frozen{map[string]*metav1.PartialObjectMetadata{}}
	for _, object := range objects {
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(object.Manifest.GroupVersionKind())
		require.NoError(f.T, f.Client.Get(f.T.Context(), client.ObjectKeyFromObject(object.Manifest), metadata))
		all.objects[metadata.Name] = metadata
	}
	return all
}

func (f *fixture) engineWith(metadata apply.Metadata) {
	config := rest.CopyConfig(f.Config)
	config.Wrap(f.counted.wrap)
	f.engine = apply.New(newClient(f.T, config), apply.Options{Metadata: metadata})
	_, err := f.engine.Apply(f.T.Context(), f.set(), nil) // for discovery
	require.NoError(f.T, err)
	f.counted.take()
}

func TestApply_StaleWatch(t *testing.T) { testkit.Virtual(t, testApplyStaleWatch) }

func testApplyStaleWatch(t *testing.T) {
	f := newMemoryFixture(t)
	object := f.configMap("a", "{k: v}")
	f.one(object)
	f.engineWith(f.freeze(object))
	changed := f.configMap("a", "{k: changed}")
	require.Equal(t, apply.Configured, f.one(changed).Action)
	f.requireRequests(t, 0, 1, "a change: one write")
	require.Equal(t, apply.Unchanged, f.one(changed).Action)
	f.requireRequests(t, 0, 0, "a watch without the last write causes no other write")

	// The object is created again, and the watch does not observe it.
	require.NoError(t, f.Client.Delete(t.Context(), object.Manifest.DeepCopy()))
	again := f.configMap("a", "{k: again}")
	change := f.one(again)
	require.Equal(t, apply.Created, change.Action, "%s", change.Message)
	require.Equal(t, change.Live.UID, f.get(object.Manifest).GetUID())
	f.counted.take()
	require.Equal(t, change.Live.UID, f.one(again).Live.UID, "the watch still has the deleted object")
	f.requireRequests(t, 0, 0, "the state of the watch is older than the last write")

	// The state of a watch is never a reason to remove an object from the inventory.
	f.engineWith(frozen{map[string]*metav1.PartialObjectMetadata{"a": {ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "old",
		ResourceVersion: "2"}}}})
	f.prune(v1alpha1.DeletePolicy{})
	require.True(t, f.isGone(object.Manifest))
}
