package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/sharedwatch"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// watches runs watches of the objects that Works have on the member: one for the labeled objects of each applied kind,
// and one for each object that is only observed and has no label. It is the [apply.Metadata] of the engines.
type watches struct {
	client metadata.Interface
	jobs   jobs
	log    logr.Logger
	notify func(work string) // called when an object of a Work has changed

	mu      sync.Mutex
	running sharedwatch.Registry[string, sharedwatch.Target, *watch] // by Work
	worksOf map[objectKey][]string                                   // the Works of an object
	objects map[string][]objectKey                                   // by Work
	kinds   map[schema.GroupVersionKind]schema.GroupVersionResource  // of all watches so far
	closed  bool
	ended   sync.WaitGroup // of the running watches
}

// jobs is the state about Jobs in addition to their metadata.
type jobs struct {
	client  dynamic.Interface
	deleted map[objectKey]*unstructured.Unstructured // the last states of deleted Jobs that Works have
}

// manySingles is the maximum number of objects of a resource in a namespace that are watched individually. If there
// are more, the agent watches all objects of the resource in the namespace.
const manySingles = 8

// objectKey identifies an object.
type objectKey struct {
	schema.GroupKind
	namespace, name string
}

func newWatches(client metadata.Interface, jobClient dynamic.Interface, log logr.Logger,
	notify func(work string)) *watches {
	return &watches{
		client: client, jobs: jobs{jobClient, map[objectKey]*unstructured.Unstructured{}}, log: log, notify: notify,
		worksOf: map[objectKey][]string{}, objects: map[string][]objectKey{},
		kinds: map[schema.GroupVersionKind]schema.GroupVersionResource{},
	}
}

// watched is an object whose changes concern a Work.
type watched struct {
	id      v1alpha1.ResourceIdentifier // with its resource
	labeled bool
}

// setObjects replaces the objects whose changes concern a Work. It ends watches that no Work needs any more.
func (w *watches) setObjects(work string, objects []watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	former := w.objects[work]
	for _, key := range former {
		w.worksOf[key] = slices.DeleteFunc(w.worksOf[key], func(other string) bool { return other == work })
		if len(w.worksOf[key]) == 0 {
			delete(w.worksOf, key)
		}
	}
	delete(w.objects, work)
	for _, object := range objects {
		key := keyOf(object.id)
		w.worksOf[key] = append(w.worksOf[key], work)
		w.objects[work] = append(w.objects[work], key)
		w.kinds[object.id.GroupVersionKind()] = resourceOf(object.id)
	}
	for _, key := range former {
		if w.worksOf[key] == nil {
			delete(w.jobs.deleted, key)
		}
	}
	targets, kinds := targetsOf(objects)
	w.running.Want(work, targets, func(t sharedwatch.Target) *watch { return w.start(t, kinds[t]) })
}

// labeledTarget returns the target of the labeled objects of a resource.
func labeledTarget(resource schema.GroupVersionResource) sharedwatch.Target {
	return sharedwatch.Target{GroupVersionResource: resource, LabelSelector: v1alpha1.AppliedLabel + "=true"}
}

// singleTarget returns the target of one object of a resource. Without a name, it selects all objects in the
// namespace.
func singleTarget(resource schema.GroupVersionResource, namespace, name string) sharedwatch.Target {
	return sharedwatch.Target{GroupVersionResource: resource, Namespace: namespace, Name: name}
}

// targetsOf returns the targets that contain the objects, and their kinds.
func targetsOf(objects []watched) (targets []sharedwatch.Target, kinds map[sharedwatch.Target]schema.GroupKind) {
	singles := map[sharedwatch.Target]int{}
	inNamespace := func(id v1alpha1.ResourceIdentifier) sharedwatch.Target {
		return singleTarget(resourceOf(id), id.Namespace, "")
	}
	for _, object := range objects {
		if !object.labeled {
			singles[inNamespace(object.id)]++
		}
	}
	kinds = map[sharedwatch.Target]schema.GroupKind{}
	for _, object := range objects {
		t := labeledTarget(resourceOf(object.id))
		switch {
		case object.labeled:
		case singles[inNamespace(object.id)] > manySingles:
			t = inNamespace(object.id)
		default:
			t = singleTarget(resourceOf(object.id), object.id.Namespace, object.id.Name)
		}
		if _, known := kinds[t]; !known {
			kinds[t] = object.id.GroupVersionKind().GroupKind()
			targets = append(targets, t)
		}
	}
	return targets, kinds
}

func resourceOf(id v1alpha1.ResourceIdentifier) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: id.Group, Version: id.Version, Resource: id.Resource}
}

// deletedJob records the last state of a deleted Job that a Work has.
func (w *watches) deletedJob(key objectKey, job *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.worksOf[key] != nil {
		w.jobs.deleted[key] = job
	}
}

// lastState returns the last state of a Job that was deleted. Nil: it is not known.
func (w *watches) lastState(key objectKey) *unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.jobs.deleted[key]
}

func (w *watches) emit(key objectKey) {
	w.mu.Lock()
	works := slices.Clone(w.worksOf[key])
	w.mu.Unlock()
	for _, work := range works {
		w.notify(work)
	}
}

// syncTimeout is how long the agent waits for a new watch. A watch that is slower or fails, for example because the
// agent may not list the kind, only costs reads.
const syncTimeout = 5 * time.Second

// synced waits until all watches of a Work have their first list or have failed, but for each watch no longer than
// timeout since it began.
func (w *watches) synced(ctx context.Context, work string, timeout time.Duration) {
	w.mu.Lock()
	waiting := w.running.Wanted(work)
	w.mu.Unlock()
	for _, watch := range waiting {
		watch.await(ctx, timeout)
	}
}

// Lookup returns the metadata of an object that is watched. Nil: the object is not watched or does not exist.
func (w *watches) Lookup(kind schema.GroupVersionKind, key client.ObjectKey) *metav1.PartialObjectMetadata {
	w.mu.Lock()
	resource := w.kinds[kind]
	var watches [3]*watch
	watches[0], _ = w.running.Get(labeledTarget(resource))
	watches[1], _ = w.running.Get(singleTarget(resource, key.Namespace, key.Name))
	watches[2], _ = w.running.Get(singleTarget(resource, key.Namespace, ""))
	w.mu.Unlock()
	for _, watch := range watches {
		if watch == nil {
			continue
		}
		switch object := watch.get(key).(type) {
		case *metav1.PartialObjectMetadata:
			return object
		case *unstructured.Unstructured:
			return meta.AsPartialObjectMetadata(object)
		}
	}
	return nil
}

// close ends all watches and waits for them.
func (w *watches) close() {
	w.mu.Lock()
	w.closed = true
	for _, watch := range w.running.All() {
		watch.stop()
	}
	w.running = sharedwatch.Registry[string, sharedwatch.Target, *watch]{}
	w.mu.Unlock()
	w.ended.Wait()
}
