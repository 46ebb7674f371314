package workset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/internal/openqueue"
	"github.com/muster-sdk/muster/placement/internal/revision"
	"github.com/muster-sdk/muster/placement/internal/version"
	"github.com/muster-sdk/muster/placement/selection"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// controller keeps WorkSets.
type controller struct {
	Options

	client    client.Client
	live      client.Reader // not a cache
	discovery discovery.DiscoveryInterface
	cache     cache.Cache
	log       logr.Logger
	recorder  events.EventRecorder
	untold    bool // no event says when a cluster gets a namespace
	metrics   *metrics
	store     *revision.Store
	watcher   *selection.Watcher
	fleet     *fleet
	works     *works
	looks     *openqueue.Queue[reconcile.Request]
	orders    *openqueue.Queue[delivery]

	mu             sync.Mutex
	states         map[types.NamespacedName]*state
	unclaimedWorks map[types.NamespacedName]int // Works whose WorkSet does not exist

	conflicts workqueue.TypedRateLimiter[reconcile.Request] // the pauses after conflicts about WorkSets
	overtaken workqueue.TypedRateLimiter[delivery]          // the pauses after conflicts about Works
}

// known is the state of a WorkSet that was looked at; nil: none was.
func (c *controller) known(set types.NamespacedName) *state {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.states[set]
}

func (c *controller) state(set types.NamespacedName) *state {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.states[set]
	if s == nil {
		s = newState(set)
		c.states[set] = s
	}
	return s
}

func (c *controller) forget(set types.NamespacedName) {
	c.mu.Lock()
	delete(c.states, set)
	c.mu.Unlock()
	c.noteUnclaimed(set, 0)
	c.watcher.Forget(set)
	c.Readiness.set(set, standing{})
}

// lookAt has a WorkSet looked at: a new one at once, others together with what else happens to them in a moment. One that takes long to think about, since it has
// thousands of clusters, is looked at less often: no more than a tenth of the time goes into that.
func (c *controller) lookAt(set types.NamespacedName) {
	var after time.Duration
	if s := c.known(set); s != nil {
		s.mu.Lock()
		after = max(moment, 9*s.thinking)
		s.mu.Unlock()
	}
	c.looks.Add(reconcile.Request{NamespacedName: set}, 0, after)
}

// moment is how long events of a WorkSet are collected.
const moment = 100 * time.Millisecond

// Reconcile reconciles a WorkSet. A conflict with another client is not an error: the watch delivers its change.
func (c *controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := c.look(ctx, c.state(request.NamespacedName))
	c.Readiness.looked(request.NamespacedName)
	if !apierrors.IsConflict(err) {
		c.conflicts.Forget(request)
		return result, err
	}
	if s := c.known(request.NamespacedName); s != nil && c.conflicts.NumRequeues(request) >= maxConflicts {
		s.latest = nil // the store may have been restored to a version before this one
	}
	return reconcile.Result{RequeueAfter: c.conflicts.When(request)}, nil
}

// look looks at a WorkSet: observe, decide, report, act.
func (c *controller) look(ctx context.Context, s *state) (reconcile.Result, error) {
	set, err := c.read(ctx, s)
	if errors.Is(err, errElsewhere) {
		c.forget(s.key)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if set == nil {
		return c.unclaimed(ctx, s)
	}
	c.noteUnclaimed(s.key, 0)
	l := &look{controller: c, set: set, state: s, now: c.Clock.Now()}
	if set.DeletionTimestamp != nil {
		return l.end(ctx)
	}
	if !controllerutil.ContainsFinalizer(set, v1alpha1.WorkSetFinalizer) {
		if err := l.guard(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := l.resolve(ctx); err != nil {
		return reconcile.Result{}, err
	}
	began := c.Clock.Now()
	for _, step := range []func(context.Context) error{l.gather, l.inspect, l.decide} {
		if err := step(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	c.Readiness.set(s.key, l.standing())
	status := l.status()
	s.thought(c.Clock.Since(began))
	again, err := l.report(ctx, status)
	if err != nil {
		return reconcile.Result{}, err
	}
	l.act(ctx)
	if err := l.prune(ctx); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: earlier(earlier(again, l.rollout.After), l.after)}, nil
}

// earlier is the shorter of two times, of which zero is never.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// errElsewhere is the error of a WorkSet in a namespace that the manager does not see. Its Works are seen.
var errElsewhere = errors.New("it is for another manager")

// read returns a WorkSet, or nil if there is none. What was written is not forgotten because the cache does not have it yet.
func (c *controller) read(ctx context.Context, s *state) (*v1alpha1.WorkSet, error) {
	set := &v1alpha1.WorkSet{}
	err := c.cache.Get(ctx, s.key, set)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil && s.uid == "" && ctx.Err() == nil: // a cache of some namespaces has words of its own for what is in others
		return nil, errElsewhere
	case err != nil:
		return nil, fmt.Errorf("read WorkSet %s: %w", s.key, err)
	}
	if s.uid != set.UID {
		s.reset(set.UID)
	}
	if s.latest != nil && version.Behind(set, s.latest) {
		return s.latest, nil
	}
	s.latest = nil
	return set, nil
}

// guard puts the finalizer on a WorkSet, before there are Works that must not outlive it.
func (l *look) guard(ctx context.Context) error {
	next := l.set.DeepCopy()
	controllerutil.AddFinalizer(next, v1alpha1.WorkSetFinalizer)
	if err := l.client.Patch(ctx, next, client.MergeFromWithOptions(l.set, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("put the finalizer on WorkSet %s: %w", l.state.key, err)
	}
	l.set, l.state.latest = next, next
	if l.set.Status.Revision == "" {
		l.state.read = true // the finalizer comes before the first revision, so there is none yet
	}
	return nil
}
