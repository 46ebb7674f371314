package clusterprofile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/tracing"
)

const (
	workers   = 4
	firstWait = 50 * time.Millisecond // delay after the first failure; it doubles up to lastWait
	lastWait  = 5 * time.Minute
	written   = 4096 // maximum number of written objects that the watch has not reported yet
)

// key is the namespace and name of an exported object.
type key = toolscache.ObjectName

// kind describes one of the exported kinds.
type kind struct {
	resource  schema.GroupVersionResource
	namespace string // of the objects; empty: all
	source    client.Object
	keysOf    func(source metav1.Object) []key
	// prepare observes the additional state that sync needs, beyond the objects of the kind and of the source. It is
	// called before sync. All goroutines that it starts end with the context. It may be nil.
	prepare func(context.Context, *export) error
	// isOurs reports whether this export created an object.
	isOurs func(*unstructured.Unstructured) bool
	// seen is called with each added, changed or deleted object. It may be nil.
	seen func(*unstructured.Unstructured)
	// sync creates, updates or deletes one object so that it matches the desired one, or returns how long it has to wait.
	sync func(context.Context, *export, key) (time.Duration, error)
}

// export is the export of one kind while its definition exists.
type export struct {
	*exporter
	kind

	definition types.UID
	queue      workqueue.TypedRateLimitingInterface[key]
	store      toolscache.MutationCache // the informer's store, and the objects written since
	ready      atomic.Bool              // whether the store contains all existing objects
	running    sync.WaitGroup           // the goroutines that stop waits for
	stop       func()

	mu         sync.Mutex
	rateLimits map[key]rateLimit
	announced  map[key]types.UID // UIDs of the objects of other owners that were reported
}

// errOutdated is the error of a sync that is based on outdated objects. The sync is retried.
var errOutdated = errors.New("the cache is outdated")

// begin starts the export of a kind. The stop function of the result ends the export and waits for its goroutines.
func (e *exporter) begin(ctx context.Context, k kind, definition types.UID) *export {
	ctx, cancel := context.WithCancel(ctx)
	informer := dynamicinformer.NewFilteredDynamicInformer(e.dynamic, k.resource, k.namespace, 0, toolscache.Indexers{},
		nil).Informer()
	x := &export{
		exporter: e, kind: k, definition: definition, rateLimits: map[key]rateLimit{}, announced: map[key]types.UID{},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstWait, lastWait),
			workqueue.TypedRateLimitingQueueConfig[key]{Clock: e.Clock}),
		store: toolscache.NewIntegerResourceVersionMutationCacheWithOptions(e.log, informer.GetStore(),
			toolscache.MutationCacheOptions{MaxCacheSize: written}),
	}
	// These calls fail only if the informer runs already.
	_ = informer.SetTransform(func(object any) (any, error) { return x.removeUnused(object), nil })
	_ = informer.SetWatchErrorHandlerWithContext(e.failed(k.resource.GroupResource().String()))
	x.running.Go(func() { informer.RunWithContext(ctx) })
	x.running.Go(func() {
		if err := x.run(ctx, informer); err != nil && ctx.Err() == nil {
			e.fail(err)
		}
	})
	x.stop = func() {
		cancel()
		x.running.Wait()
	}
	return x
}

// removeUnused removes what the exporter does not read: managed fields, and the content of objects of other owners.
func (x *export) removeUnused(object any) any {
	if u, ok := object.(*unstructured.Unstructured); ok {
		u.SetManagedFields(nil)
		if !x.isOurs(u) {
			delete(u.Object, "status")
			delete(u.Object, "decisions")
		}
	}
	return object
}

// run exports until the context ends. It writes nothing before all existing objects are observed.
func (x *export) run(ctx context.Context, informer toolscache.SharedIndexInformer) error {
	defer x.queue.ShutDown()
	if err := follow(ctx, informer, func(object metav1.Object) {
		x.queue.Add(toolscache.MetaObjectToName(object))
		if u, ok := object.(*unstructured.Unstructured); ok && x.seen != nil {
			x.seen(u)
		}
	}); err != nil {
		return err
	}
	x.ready.Store(true)
	x.recheckDefinitions()
	if x.prepare != nil {
		if err := x.prepare(ctx, x); err != nil {
			return err
		}
	}
	source, err := x.cache.GetInformer(ctx, x.source)
	if err != nil {
		return fmt.Errorf("watch %T: %w", x.source, err)
	}
	if err := follow(ctx, source, func(object metav1.Object) {
		for _, k := range x.keysOf(object) {
			x.queue.Add(k)
		}
	}); err != nil {
		return err
	}
	var working sync.WaitGroup
	for range workers {
		working.Go(func() { x.work(ctx) })
	}
	<-ctx.Done()
	x.queue.ShutDown()
	working.Wait()
	return nil
}

// informer contains the methods that the informers of a manager's cache and of client-go share.
type informer interface {
	AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error)
	RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error
}

// follow calls a function with each added, changed or deleted object until the context ends. It returns when the
// function was called with all existing objects.
func follow(ctx context.Context, from informer, notify func(metav1.Object)) error {
	announced := func(object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if object, ok := object.(metav1.Object); ok {
			notify(object)
		}
	}
	registration, err := from.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: announced, DeleteFunc: announced, UpdateFunc: func(_, after any) { announced(after) },
	})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = from.RemoveEventHandler(registration) }) // fails only if the informer has ended
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return context.Cause(ctx)
	}
	return nil
}

func (x *export) work(ctx context.Context) {
	for {
		k, shutdown := x.queue.Get()
		if shutdown {
			return
		}
		wait, err := x.traced(ctx, k)
		switch {
		case err != nil:
			if ctx.Err() == nil && !isConcurrentChange(err) {
				x.log.Error(err, "Failed to export an object, retrying", "resource", x.resource.GroupResource().String(), "object",
					k.String())
			}
			x.queue.AddRateLimited(k)
		case wait > 0:
			x.queue.Forget(k)
			x.queue.AddAfter(k, wait)
		default:
			x.queue.Forget(k)
		}
		x.queue.Done(k)
	}
}

// traced calls sync in a span.
func (x *export) traced(ctx context.Context, k key) (wait time.Duration, err error) {
	ctx, end := tracing.Start(ctx, "muster-clusterprofile", types.NamespacedName{Namespace: k.Namespace, Name: k.Name})
	defer func() { end(err) }()
	return x.sync(ctx, x, k)
}

// isConcurrentChange reports whether an error means only that an object changed concurrently. The watches report such a
// change.
func isConcurrentChange(err error) bool {
	return errors.Is(err, errOutdated) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) ||
		apierrors.IsNotFound(err)
}

// get returns an object as it was last observed or written, or nil if it does not exist. The store owns the object.
func (x *export) get(k key) *unstructured.Unstructured {
	object, _, _ := x.store.GetByKey(k.String()) // fails only with an index
	u, _ := object.(*unstructured.Unstructured)
	return u
}

func (x *export) objects(k key) dynamic.ResourceInterface {
	return x.dynamic.Resource(x.resource).Namespace(k.Namespace)
}
