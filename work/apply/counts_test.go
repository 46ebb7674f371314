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
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// watched is an [apply.Metadata] by an informer of the ConfigMaps of one namespace.
type watched struct{ informer cache.SharedIndexInformer }

func watch(t testing.TB, namespace string) watched {
	t.Helper()
	c, err := metadata.NewForConfig(plane.ForTest(t).Config())
	require.NoError(t, err)
	factory := metadatainformer.NewFilteredSharedInformerFactory(c, 0, namespace, func(o *metav1.ListOptions) {
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

// knows waits until the watch has observed the last version of an object.
func (w watched) knows(t *testing.T, live interface {
	client.Object
}) {
	t.Helper()
	require.Eventually(t, func() bool {
		object := w.Lookup(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, client.ObjectKeyFromObject(live))
		return object != nil && object.ResourceVersion == live.GetResourceVersion()
	}, deadline, 10*time.Millisecond)
}

func (w *world) many(n int, value string) []apply.Object {
	w.t.Helper()
	objects := make([]apply.Object, n)
	for i := range objects {
		objects[i] = w.configMap(fmt.Sprintf("many-%03d", i), "{k: "+value+"}")
	}
	return objects
}

func (w *world) costs(t *testing.T, reads, writes int, reason string) {
	t.Helper()
	gotReads, gotWrites := w.counted.take()
	require.Equal(t, []int{reads, writes}, []int{gotReads, gotWrites}, "reads and writes: %s", reason)
}

func TestRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := w.many(6, "v")
	w.counted.take()
	w.apply(objects...)
	w.costs(t, 1, 6, "fresh objects are one list and a write each")
	w.apply(objects...)
	w.costs(t, 1, 0, "unchanged ones are one list")
	w.restart()
	w.apply(objects...)
	w.costs(t, 1, 0, "for an engine that remembers nothing, too")
	objects[3] = w.configMap("many-003", "{k: changed}")
	w.apply(objects...)
	w.costs(t, 1, 1, "a change is one write")
	w.apply(objects[:2]...)
	w.costs(t, 2, 0, "few are read one by one")
}

func TestRequestsOfMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := w.many(520, "v")
	w.apply(objects...)
	w.counted.take()
	w.apply(objects...)
	w.costs(t, 2, 0, "a list of more than a page is read to its end where that pays")
}

func TestRequestsWithAWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := w.many(6, "v")
	w.apply(objects...)
	metadata := watch(t, w.namespace)
	w.engineWith(metadata)
	w.apply(objects...)
	w.costs(t, 0, 0, "who watches need not ask, after a restart either")

	objects[0] = w.configMap("many-000", "{k: changed}")
	w.apply(objects...)
	w.costs(t, 0, 1, "a change is one write")
	w.patch(objects[1].Manifest, "{data: {k: edited}}")
	metadata.knows(t, w.get(objects[1].Manifest))
	change := w.apply(objects...)[1]
	w.costs(t, 0, 1, "so is an edit")
	require.True(t, change.Drifted)

	require.NoError(t, w.admin.Delete(t.Context(), objects[2].Manifest.DeepCopy()))
	require.Eventually(t, func() bool {
		return metadata.Lookup(objects[2].Manifest.GroupVersionKind(), client.ObjectKeyFromObject(objects[2].Manifest)) == nil
	}, deadline, 10*time.Millisecond)
	require.Equal(t, apply.Created, w.apply(objects...)[2].Action)
	w.costs(t, 1, 1, "what a watch does not know is asked for")
}

// frozen is a watch that never catches up.
type frozen struct {
	objects map[string]*metav1.PartialObjectMetadata
}

func (f frozen) Lookup(_ schema.GroupVersionKind, key client.ObjectKey) *metav1.PartialObjectMetadata {
	return f.objects[key.Name]
}

func (w *world) freeze(objects ...apply.Object) frozen {
	w.t.Helper()
	f := frozen{map[string]*metav1.PartialObjectMetadata{}}
	for _, object := range objects {
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(object.Manifest.GroupVersionKind())
		require.NoError(w.t, w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(object.Manifest), metadata))
		f.objects[metadata.Name] = metadata
	}
	return f
}

func (w *world) engineWith(metadata apply.Metadata) {
	config := plane.ForTest(w.t).Config()
	config.Wrap(w.counted.wrap)
	w.engine = apply.New(newClient(w.t, config), apply.Options{Metadata: metadata})
	_, err := w.engine.Apply(w.t.Context(), w.set(), nil) // which asks what kinds there are
	require.NoError(w.t, err)
	w.counted.take()
}

func TestWatchThatIsBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	object := w.configMap("a", "{k: v}")
	w.one(object)
	w.engineWith(w.freeze(object))
	changed := w.configMap("a", "{k: changed}")
	require.Equal(t, apply.Configured, w.one(changed).Action)
	w.costs(t, 0, 1, "the change")
	require.Equal(t, apply.Unchanged, w.one(changed).Action)
	w.costs(t, 0, 0, "a watch that has not seen our write yet must not cause another one")

	// The object is made anew behind the watch.
	require.NoError(t, w.admin.Delete(t.Context(), object.Manifest.DeepCopy()))
	again := w.configMap("a", "{k: again}")
	change := w.one(again)
	require.Equal(t, apply.Created, change.Action, "%s", change.Message)
	require.Equal(t, change.Live.UID, w.get(object.Manifest).GetUID())
	w.counted.take()
	require.Equal(t, change.Live.UID, w.one(again).Live.UID, "the watch still has the one before")
	w.costs(t, 0, 0, "which is older than our write")

	// What a watch says is never a reason to forget an object.
	w.engineWith(frozen{map[string]*metav1.PartialObjectMetadata{"a": {ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "old",
		ResourceVersion: "2"}}}})
	w.prune(v1alpha1.DeletePolicy{})
	require.True(t, w.isGone(object.Manifest))
}
