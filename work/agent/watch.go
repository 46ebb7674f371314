package agent

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/internal/sharedwatch"
)

// watch is the watch of a target. It stores the objects of the target, and observes its requests. If a kind is not
// served, or the agent may not watch it, the watch is retried while a Work needs it.
type watch struct {
	*watches
	users      sharedwatch.Users[string] // Works
	target     sharedwatch.Target
	kind       schema.GroupKind
	began      time.Time
	done       chan struct{} // closed after the first list, or the first request that failed
	markSynced func()        // closes done
	stop       context.CancelFunc

	objectsMu sync.RWMutex
	objects   map[types.NamespacedName]metav1.Object
}

var (
	_ sharedwatch.Shared[string] = &watch{}
	_ sharedwatch.Observer       = &watch{}
	_ cache.ReflectorStore       = &watch{}
)

// start starts the watch of a target.
func (w *watches) start(target sharedwatch.Target, kind schema.GroupKind) *watch {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	t := &watch{
		watches: w, users: sharedwatch.Users[string]{}, target: target, kind: kind, began: time.Now(),
		done: done, markSynced: sync.OnceFunc(func() { close(done) }), stop: stop,
		objects: map[types.NamespacedName]metav1.Object{},
	}
	w.ended.Go(func() { sharedwatch.Run(ctx, target.Resource, w.requests(target, kind), t, t) })
	return t
}

var jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}

// requests returns the requests for the metadata of objects, and for whole Jobs: the result of a Job with
// ttlSecondsAfterFinished can be read only from the event of its deletion, if the Job is deleted at once.
func (w *watches) requests(target sharedwatch.Target, kind schema.GroupKind) sharedwatch.Requests {
	if kind == jobKind {
		return sharedwatch.Objects(w.jobs.client, target)
	}
	return sharedwatch.Metadata(w.client, target)
}

// Users implements [sharedwatch.Shared].
func (t *watch) Users() sharedwatch.Users[string] { return t.users }

// Close implements [sharedwatch.Shared].
func (t *watch) Close() { t.stop() }

// await waits until the watch has its first list or has failed, but no longer than timeout since it began.
func (t *watch) await(ctx context.Context, timeout time.Duration) {
	sharedwatch.Deadline{Clock: clock.RealClock{}, Began: t.began, Timeout: timeout}.Await(ctx, t.done)
}

// get returns an object. Nil: it does not exist, or was not observed yet.
func (t *watch) get(name types.NamespacedName) metav1.Object {
	t.objectsMu.RLock()
	defer t.objectsMu.RUnlock()
	return t.objects[name]
}

// Lists implements [sharedwatch.Observer].
func (*watch) Lists(sharedwatch.Request) {}

// Watches implements [sharedwatch.Observer].
func (*watch) Watches() {}

// Failed implements [sharedwatch.Observer].
func (t *watch) Failed(_ sharedwatch.Request, err error) {
	if !errors.Is(err, io.EOF) {
		t.log.Info("Watch failed; retrying", "at", "member", "of", t.target.GroupResource().String(), "error",
			err.Error())
	}
	t.markSynced()
}

// Add implements [cache.ReflectorStore].
func (t *watch) Add(object any) error { return t.Update(object) }

// Update implements [cache.ReflectorStore].
func (t *watch) Update(object any) error {
	after := object.(metav1.Object)
	name := nameOf(after)
	t.objectsMu.Lock()
	before := t.objects[name]
	t.objects[name] = after
	t.objectsMu.Unlock()
	if before == nil || before.GetResourceVersion() != after.GetResourceVersion() {
		t.changed(name)
	}
	return nil
}

// Delete implements [cache.ReflectorStore].
func (t *watch) Delete(object any) error {
	gone := object.(metav1.Object)
	name := nameOf(gone)
	if job, whole := object.(*unstructured.Unstructured); whole {
		t.deletedJob(t.key(name), job)
	}
	t.objectsMu.Lock()
	delete(t.objects, name)
	t.objectsMu.Unlock()
	t.changed(name)
	return nil
}

// Replace implements [cache.ReflectorStore]. The last state of Jobs that were deleted between two lists is unknown.
func (t *watch) Replace(list []any, _ string) error {
	objects := make(map[types.NamespacedName]metav1.Object, len(list))
	var changed []types.NamespacedName
	t.objectsMu.Lock()
	for _, object := range list {
		after := object.(metav1.Object)
		name := nameOf(after)
		objects[name] = after
		if before := t.objects[name]; before == nil || before.GetResourceVersion() != after.GetResourceVersion() {
			changed = append(changed, name)
		}
	}
	for name := range t.objects {
		if objects[name] == nil {
			changed = append(changed, name)
		}
	}
	t.objects = objects
	t.objectsMu.Unlock()
	for _, name := range changed {
		t.changed(name)
	}
	t.markSynced()
	return nil
}

// Resync implements [cache.ReflectorStore].
func (*watch) Resync() error { return nil }

func (t *watch) changed(name types.NamespacedName) { t.emit(t.key(name)) }

func (t *watch) key(name types.NamespacedName) objectKey {
	return objectKey{t.kind, name.Namespace, name.Name}
}

func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// logFailures returns a handler that logs failed watches. It ignores errors that are normal for a watch: an expired
// resource version and the end of the connection.
func logFailures(log logr.Logger, at string) cache.WatchErrorHandlerWithContext {
	return func(_ context.Context, reflector *cache.Reflector, err error) {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) {
			return
		}
		log.Info("Watch failed; retrying", "at", at, "of", reflector.TypeDescription(), "error", err.Error())
	}
}
