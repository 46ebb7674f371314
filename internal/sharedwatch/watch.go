package sharedwatch

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Target is what a watch reports: one object by its name, or objects by their labels.
type Target struct {
	schema.GroupVersionResource
	// Namespace is the namespace of the objects. Empty: all namespaces, or the kind is not namespaced.
	Namespace string
	// Name is the name of the object. Empty: all objects that LabelSelector matches.
	Name string
	// LabelSelector is the label selector in its text form. Empty: all objects.
	LabelSelector string
}

func (t Target) narrow(o *metav1.ListOptions) {
	o.LabelSelector = t.LabelSelector
	if t.Name != "" {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, t.Name).String()
	}
}

// Requests are the requests of a watch.
type Requests struct {
	client any            // which may not support lists by watches
	object runtime.Object // of the type that the requests return
	list   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// Objects returns the requests for the whole objects of a target.
func Objects(client dynamic.Interface, t Target) Requests {
	var resource dynamic.ResourceInterface = client.Resource(t.GroupVersionResource)
	if t.Namespace != "" {
		resource = client.Resource(t.GroupVersionResource).Namespace(t.Namespace)
	}
	return requests(client, &unstructured.Unstructured{}, t, resource.List, resource.Watch)
}

// Metadata returns the requests for the metadata of the objects of a target.
func Metadata(client metadata.Interface, t Target) Requests {
	var resource metadata.ResourceInterface = client.Resource(t.GroupVersionResource)
	if t.Namespace != "" {
		resource = client.Resource(t.GroupVersionResource).Namespace(t.Namespace)
	}
	return requests(client, &metav1.PartialObjectMetadata{}, t, resource.List, resource.Watch)
}

// requests returns the requests of a client, narrowed to a target.
func requests[L runtime.Object](client any, object runtime.Object, t Target,
	list func(context.Context, metav1.ListOptions) (L, error),
	begin func(context.Context, metav1.ListOptions) (watch.Interface, error)) Requests {
	return Requests{
		client: client, object: object,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			t.narrow(&o)
			objects, err := list(ctx, o)
			if err != nil {
				return nil, err // not a nil pointer in an interface
			}
			return objects, nil
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			t.narrow(&o)
			return begin(ctx, o)
		},
	}
}

// Request is a request of a watch: a watch can be forbidden where a list is not.
type Request int

// The requests of a watch, in their order.
const (
	List Request = iota
	Watch
)

// Observer observes the requests of a watch. Its methods are called from one goroutine.
type Observer interface {
	// Lists is called before the store's Replace with the request that returned the objects.
	Lists(Request)
	// Watches is called when a watch has begun after a list.
	Watches()
	// Failed is called when a request has failed, which is repeated. It is not called for versions that have expired,
	// which belong to watches.
	Failed(Request, error)
}

// Run lists and watches objects into a store until ctx ends. Failed requests are repeated with growing pauses of up to
// half a minute. The store is called from one goroutine. It can be a [cache.TransformingStore].
func Run(ctx context.Context, name string, requests Requests, store cache.ReflectorStore, observer Observer) {
	failed := func(request Request, err error) {
		if ctx.Err() == nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			observer.Failed(request, err)
		}
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			observer.Lists(List)
			list, err := requests.list(ctx, o)
			if err != nil {
				failed(List, err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			events, err := requests.watch(ctx, o)
			switch lists := o.SendInitialEvents != nil; {
			case err != nil && !lists:
				failed(Watch, err)
			case err != nil:
				// The reflector repeats this request in two cases. Otherwise it sends a list, which can succeed.
				if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
					failed(List, err)
				}
			case lists:
				observer.Lists(Watch)
			default:
				observer.Watches()
			}
			return events, err
		},
	}
	lists := cache.ToListWatcherWithWatchListSemantics(source, requests.client)
	cache.NewReflectorWithOptions(lists, requests.object, store, cache.ReflectorOptions{
		Name: name, TypeDescription: name, Clock: endingClock{clock.RealClock{}, ctx},
	}).RunWithContext(klog.NewContext(ctx, logr.Discard())) // the observer knows the failures
}

// endingClock ends waiting with a context. A reflector whose connection was refused would wait for up to a minute.
type endingClock struct {
	clock.Clock
	ctx context.Context
}

func (c endingClock) After(d time.Duration) <-chan time.Time {
	over := make(chan time.Time)
	end := sync.OnceFunc(func() { close(over) })
	stop := context.AfterFunc(c.ctx, end)
	time.AfterFunc(d, func() {
		stop()
		end()
	})
	return over
}

// Deadline limits how long the first state of something shared is waited for, from its beginning on.
type Deadline struct {
	Clock   clock.Clock
	Began   time.Time
	Timeout time.Duration
	// Stopped ends all waiting when it is closed. Nil: it is never closed.
	Stopped <-chan struct{}
}

// Await waits until done is closed, the deadline has passed, or ctx ends.
func (d Deadline) Await(ctx context.Context, done <-chan struct{}) {
	left := d.Timeout - d.Clock.Since(d.Began)
	if left <= 0 {
		return
	}
	timer := d.Clock.NewTimer(left)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C():
	case <-d.Stopped:
	case <-ctx.Done():
	}
}
