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

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// watches keeps metadata watches of exactly what Works have on the member: one of each kind that was applied, over the
// objects with our label, and one of each object that is only observed and has no label. It is the engines'
// [apply.Metadata].
type watches struct {
	client metadata.Interface
	jobs   jobs
	log    logr.Logger
	notify func(work string) // called when an object of a Work has changed

	mu      sync.Mutex
	running map[target]*watch
	wanted  map[string][]target                                     // by Work
	of      map[objectKey][]string                                  // the Works of an object
	objects map[string][]objectKey                                  // by Work
	kinds   map[schema.GroupVersionKind]schema.GroupVersionResource // of all that was ever watched
	closed  bool
	ended   sync.WaitGroup // of those that run
}

// jobs are what is known of Jobs but their metadata.
type jobs struct {
	client  dynamic.Interface
	deleted map[objectKey]*unstructured.Unstructured // the last states of deleted Jobs that Works have
}

// target is what is watched: the labeled objects of a resource, one object of it, or all that are in a namespace.
type target struct {
	resource        schema.GroupVersionResource
	which           selection
	namespace, name string
}

type selection int

const (
	labeled selection = iota
	single
	everything
)

// manySingles is how many objects of a resource in a namespace are watched one by one; more are watched together, with
// whatever else is there.
const manySingles = 8

// objectKey tells an object from all others.
type objectKey struct {
	schema.GroupKind
	namespace, name string
}

func newWatches(client metadata.Interface, jobClient dynamic.Interface, log logr.Logger,
	notify func(work string)) *watches {
	return &watches{
		client: client, jobs: jobs{jobClient, map[objectKey]*unstructured.Unstructured{}}, log: log, notify: notify,
		running: map[target]*watch{}, wanted: map[string][]target{}, of: map[objectKey][]string{},
		objects: map[string][]objectKey{},
		kinds:   map[schema.GroupVersionKind]schema.GroupVersionResource{},
	}
}

// watched is an object that a Work wants to hear of.
type watched struct {
	id      v1alpha1.ResourceIdentifier // with its resource
	labeled bool
}

// want replaces the objects whose changes trigger a Work. Watches that no Work needs any more are ended.
func (w *watches) want(work string, objects []watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	former := w.objects[work]
	for _, key := range former {
		if w.of[key] = slices.DeleteFunc(w.of[key], func(other string) bool { return other == work }); len(w.of[key]) == 0 {
			delete(w.of, key)
		}
	}
	delete(w.objects, work)
	for _, object := range objects {
		key := keyOf(object.id)
		w.of[key] = append(w.of[key], work)
		w.objects[work] = append(w.objects[work], key)
		w.kinds[object.id.GroupVersionKind()] = resourceOf(object.id)
	}
	for _, key := range former {
		if w.of[key] == nil {
			delete(w.jobs.deleted, key)
		}
	}
	before, targets := w.wanted[work], targetsOf(objects)
	for t, kind := range targets {
		if w.running[t] == nil {
			w.running[t] = w.start(t, kind)
		}
		if !slices.Contains(before, t) {
			w.running[t].users++
		}
	}
	delete(w.wanted, work)
	for t := range targets {
		w.wanted[work] = append(w.wanted[work], t)
	}
	for _, t := range before {
		if _, still := targets[t]; still {
			continue
		}
		if w.running[t].users--; w.running[t].users == 0 {
			w.running[t].stop()
			delete(w.running, t)
		}
	}
}

// targetsOf is what has to be watched to hear of the objects, each with its kind.
func targetsOf(objects []watched) map[target]schema.GroupVersionKind {
	singles := map[target]int{}
	inNamespace := func(id v1alpha1.ResourceIdentifier) target {
		return target{resource: resourceOf(id), which: everything, namespace: id.Namespace}
	}
	for _, object := range objects {
		if !object.labeled {
			singles[inNamespace(object.id)]++
		}
	}
	targets := map[target]schema.GroupVersionKind{}
	for _, object := range objects {
		t := target{resource: resourceOf(object.id), which: labeled}
		switch {
		case object.labeled:
		case singles[inNamespace(object.id)] > manySingles:
			t = inNamespace(object.id)
		default:
			t.which, t.namespace, t.name = single, object.id.Namespace, object.id.Name
		}
		targets[t] = object.id.GroupVersionKind()
	}
	return targets
}

func resourceOf(id v1alpha1.ResourceIdentifier) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: id.Group, Version: id.Version, Resource: id.Resource}
}

// deletedJob records the last state of a deleted Job that a Work has.
func (w *watches) deletedJob(key objectKey, job *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[key] != nil {
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
	works := slices.Clone(w.of[key])
	w.mu.Unlock()
	for _, work := range works {
		w.notify(work)
	}
}

// syncTimeout is how long a new watch is waited for. One that fails, such as of a kind that the agent may not list, or
// is not there by then, only costs reads.
const syncTimeout = 5 * time.Second

// synced waits until all watches of a Work have their first list or have failed, but for none longer than timeout since
// it began.
func (w *watches) synced(ctx context.Context, work string, timeout time.Duration) {
	w.mu.Lock()
	var waiting []*watch
	for _, t := range w.wanted[work] {
		waiting = append(waiting, w.running[t])
	}
	w.mu.Unlock()
	for _, watch := range waiting {
		if watch.informer.HasSynced() {
			continue
		}
		timer := time.NewTimer(timeout - time.Since(watch.began))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-watch.failed:
		case <-watch.informer.HasSyncedChecker().Done():
		}
		timer.Stop()
	}
}

// Lookup returns the metadata of an object that is watched.
func (w *watches) Lookup(kind schema.GroupVersionKind, key client.ObjectKey) *metav1.PartialObjectMetadata {
	w.mu.Lock()
	resource := w.kinds[kind]
	watches := [...]*watch{
		w.running[target{resource, labeled, "", ""}],
		w.running[target{resource, single, key.Namespace, key.Name}],
		w.running[target{resource, everything, key.Namespace, ""}],
	}
	w.mu.Unlock()
	name := key.Name
	if key.Namespace != "" {
		name = key.Namespace + "/" + key.Name
	}
	for _, watch := range watches {
		if watch == nil {
			continue
		}
		if object, exists, err := watch.informer.GetStore().GetByKey(name); err == nil && exists {
			if job, ok := object.(*unstructured.Unstructured); ok {
				return meta.AsPartialObjectMetadata(job)
			}
			return object.(*metav1.PartialObjectMetadata)
		}
	}
	return nil
}

// close ends all watches and waits for them.
func (w *watches) close() {
	w.mu.Lock()
	w.closed = true
	for _, watch := range w.running {
		watch.stop()
	}
	w.running = map[target]*watch{}
	w.mu.Unlock()
	w.ended.Wait()
}
