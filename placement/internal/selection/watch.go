package selection

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// watch is one of a target. The lock of its Watcher guards what changes.
type watch struct {
	*Watcher
	audience
	target Target
	labels labels.Selector
	began  time.Time
	done   chan struct{} // closed when there is a list, or a request has failed
	stop   context.CancelFunc

	entries   map[string]*entry // by name; nil: there has been no list
	sorted    []*entry          // the entries by name; nil: they are to be sorted
	streaming bool              // the next list is the beginning of a watch
	problem   problem
	failing   time.Time // since when; zero: it is not
	cause     request   // what fails, a watch rather than a list
}

// request is what a watch needs of the API server: a watch can be forbidden where a list is not.
type request int

const (
	listing request = iota
	watching
)

func (t *watch) heard() audience { return t.audience }
func (t *watch) close()          { t.stop() }

// wantWatches has an owner want watches for the asks, and returns them.
func (w *Watcher) wantWatches(owner types.NamespacedName, asks []ask) []*watch {
	var keys []Target
	selectors := map[Target]labels.Selector{}
	for i := range asks {
		if a := &asks[i]; a.problem.none() && !slices.Contains(keys, a.target) {
			keys = append(keys, a.target)
			selectors[a.target] = a.labels
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.watches.want(owner, keys, func(target Target) *watch {
		// it is more talkative about failures than is of use
		ctx, stop := context.WithCancel(klog.NewContext(w.life, logr.Discard()))
		t := &watch{
			Watcher: w, audience: audience{}, target: target, labels: selectors[target], began: w.options.Clock.Now(),
			done: make(chan struct{}), stop: stop,
			problem: unlisted(target),
		}
		w.ended.Go(func() { t.run(ctx) })
		return t
	})
	return w.watches.wanted(owner)
}

func (t *watch) run(ctx context.Context) {
	var resource dynamic.ResourceInterface = t.client.Resource(t.target.GroupVersionResource)
	if t.target.Namespace != "" {
		resource = t.client.Resource(t.target.GroupVersionResource).Namespace(t.target.Namespace)
	}
	narrow := func(o *metav1.ListOptions) {
		o.LabelSelector = t.target.LabelSelector
		if t.target.Name != "" {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, t.target.Name).String()
		}
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			narrow(&o)
			t.streams(false)
			list, err := resource.List(ctx, o)
			if err != nil {
				t.failed(ctx, listing, err)
				return nil, err
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			narrow(&o)
			events, err := resource.Watch(ctx, o)
			lists := o.SendInitialEvents != nil
			switch {
			case err != nil && !lists:
				t.failed(ctx, watching, err)
			case err != nil:
				// The reflector tries that again in these cases, else it lists in the other way.
				if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
					t.failed(ctx, listing, err)
				}
			case lists:
				t.streams(true)
			default:
				t.change(t.audience, func() bool { return t.recovered(watching) })
			}
			if err != nil {
				return nil, err
			}
			return events, nil
		},
	}
	cache.NewReflectorWithOptions(source, &unstructured.Unstructured{}, t, cache.ReflectorOptions{
		Name: t.target.String(), Clock: mortalClock{clock.RealClock{}, ctx},
	}).RunWithContext(ctx)
}

// mortalClock ends waiting with the context. A reflector whose connection was refused would not, for up to a minute.
type mortalClock struct {
	clock.Clock
	life context.Context
}

func (c mortalClock) After(d time.Duration) <-chan time.Time {
	over := make(chan time.Time)
	end := sync.OnceFunc(func() { close(over) })
	leave := context.AfterFunc(c.life, end)
	time.AfterFunc(d, func() {
		leave()
		end()
	})
	return over
}

func (t *watch) streams(is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streaming = is
}

// failed takes in that a request has failed.
func (t *watch) failed(ctx context.Context, what request, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // that belongs to watches
	}
	t.change(t.audience, func() bool {
		now := t.options.Clock.Now()
		if t.failing.IsZero() {
			t.failing = now
		}
		t.cause = max(t.cause, what)
		first := t.settle()
		problem := unwatched(t.target, t.entries != nil, now.Sub(t.failing), err)
		if problem.none() || problem.reason == t.problem.reason && !first {
			return false
		}
		if problem.reason == ReasonUnknownKind {
			t.lookAgain()
		}
		t.problem = problem
		t.options.Log.Info("What WorkSets select cannot be watched; trying again.", "target", t.target.String(), "reason",
			problem.reason, "error", err.Error())
		return true
	})
}

// recovered takes in that a request has not failed, and says whether that ended a trouble. The lock is held.
func (t *watch) recovered(what request) bool {
	t.settle()
	if what < t.cause {
		return false
	}
	had := t.problem
	t.failing, t.cause, t.problem = time.Time{}, listing, problem{}
	if !had.none() && had != unlisted(t.target) {
		t.options.Log.Info("What WorkSets select is watched again.", "target", t.target.String())
	}
	return !had.none()
}

// settle says whether it is the first to know more than nothing. The lock is held.
func (t *watch) settle() bool {
	select {
	case <-t.done:
		return false
	default:
		close(t.done)
		return true
	}
}
