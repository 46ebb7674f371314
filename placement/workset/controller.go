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

	"github.com/muster-sdk/muster/internal/assume"
	"github.com/muster-sdk/muster/internal/openqueue"
	"github.com/muster-sdk/muster/internal/requeue"
	"github.com/muster-sdk/muster/placement/internal/revision"
	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/internal/selection"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// controller reconciles WorkSets and writes their Works.
type controller struct {
	Options

	api             api
	log             logr.Logger
	recorder        events.EventRecorder
	metrics         *metrics
	store           *revision.Store
	watcher         *selection.Watcher
	fleet           *fleet
	pollsNamespaces bool // no event reports that a cluster gets a namespace
	works           *workCache
	queues          queues
	sets            knownSets
}

// api contains the clients of the hub's API server.
type api struct {
	client    client.Client
	live      client.Reader // not a cache
	discovery discovery.DiscoveryInterface
	cache     cache.Cache
}

// queues are the queues of WorkSets and of the clusters whose Works must be written.
type queues struct {
	requests       *openqueue.Queue[reconcile.Request]
	deliveries     *openqueue.Queue[delivery]
	conflicts      workqueue.TypedRateLimiter[reconcile.Request] // the pauses after conflicts about WorkSets
	conflictDelays workqueue.TypedRateLimiter[delivery]          // the pauses after conflicts about Works
}

func newQueues() queues {
	return queues{
		requests: &openqueue.Queue[reconcile.Request]{}, deliveries: &openqueue.Queue[delivery]{},
		conflicts: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minConflictDelay,
			maxConflictDelay),
		conflictDelays: workqueue.NewTypedItemExponentialFailureRateLimiter[delivery](minConflictDelay, maxConflictDelay),
	}
}

// knownSets are the WorkSets that were reconciled.
type knownSets struct {
	mu             sync.Mutex
	states         map[types.NamespacedName]*state
	unclaimedWorks map[types.NamespacedName]int // Works whose WorkSet does not exist
}

// stateIfKnown returns the state of a WorkSet. Nil: it was not reconciled yet.
func (c *controller) stateIfKnown(set types.NamespacedName) *state {
	c.sets.mu.Lock()
	defer c.sets.mu.Unlock()
	return c.sets.states[set]
}

func (c *controller) state(set types.NamespacedName) *state {
	c.sets.mu.Lock()
	defer c.sets.mu.Unlock()
	s := c.sets.states[set]
	if s == nil {
		s = newState(set)
		c.sets.states[set] = s
	}
	return s
}

func (c *controller) drop(set types.NamespacedName) {
	c.sets.mu.Lock()
	delete(c.sets.states, set)
	c.sets.mu.Unlock()
	c.recordUnclaimed(set, 0)
	c.watcher.Forget(set)
	c.Readiness.set(set, availability{})
}

// enqueue enqueues a WorkSet. A new WorkSet is reconciled immediately, others after batchPeriod, in which further
// events are collected. A WorkSet with thousands of clusters, whose reconcile takes long, is delayed further, so that
// its reconciles take at most a tenth of the time.
func (c *controller) enqueue(set types.NamespacedName) {
	var after time.Duration
	if s := c.stateIfKnown(set); s != nil {
		s.shared.mu.Lock()
		after = max(batchPeriod, 9*s.shared.decisionTime)
		s.shared.mu.Unlock()
	}
	c.queues.requests.Add(reconcile.Request{NamespacedName: set}, 0, after)
}

// batchPeriod is how long events of a WorkSet are collected.
const batchPeriod = 100 * time.Millisecond

// Reconcile reconciles a WorkSet. A conflict with another client is not an error: the watch delivers its change.
func (c *controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := c.reconcile(ctx, c.state(request.NamespacedName))
	c.Readiness.reconciled(request.NamespacedName)
	if !apierrors.IsConflict(err) {
		c.queues.conflicts.Forget(request)
		return result, err
	}
	if s := c.stateIfKnown(request.NamespacedName); s != nil && c.queues.conflicts.NumRequeues(request) >= maxConflicts {
		s.latest = nil // the store may have been restored to a version before this one
	}
	return reconcile.Result{RequeueAfter: c.queues.conflicts.When(request)}, nil
}

// reconcile runs the steps of one reconcile: observe, decide, report and act.
func (c *controller) reconcile(ctx context.Context, s *state) (reconcile.Result, error) {
	set, err := c.read(ctx, s)
	if errors.Is(err, errOtherManager) {
		c.drop(s.key)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if set == nil {
		return c.unclaimed(ctx, s)
	}
	c.recordUnclaimed(s.key, 0)
	l := &reconciliation{controller: c, set: set, state: s, now: c.Clock.Now()}
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
	for _, step := range []func(context.Context) error{l.observeClusters, l.observeWorks, l.decide} {
		if err := step(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	c.Readiness.set(s.key, l.availability())
	status := l.status()
	s.recordDecisionTime(c.Clock.Since(began))
	again, err := l.report(ctx, status)
	if err != nil {
		return reconcile.Result{}, err
	}
	l.act(ctx)
	if err := l.prune(ctx); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: requeue.Sooner(requeue.Sooner(again, l.rollout.After), l.after)}, nil
}

// errOtherManager is the error for a WorkSet in a namespace that the manager does not watch. Its Works are watched.
var errOtherManager = errors.New("another manager reconciles the WorkSet")

// read returns a WorkSet, or nil if it does not exist. If the cache lags behind the last write, it returns the written
// version.
func (c *controller) read(ctx context.Context, s *state) (*v1alpha1.WorkSet, error) {
	if s.key.Namespace == "" && s.uid == "" && !scope.Watched(ctx, c.api.cache) && ctx.Err() == nil {
		return nil, errOtherManager
	}
	set, err := scope.ReadWorkSet(ctx, c.api.cache, s.key)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil && s.uid == "" && ctx.Err() == nil: // a cache of some namespaces returns its own error for others
		return nil, errOtherManager
	case err != nil:
		return nil, fmt.Errorf("read WorkSet %s: %w", s.key, err)
	}
	if s.uid != set.UID {
		s.reset(set.UID)
	}
	if s.latest != nil && assume.Behind(set, s.latest) {
		return s.latest, nil
	}
	s.latest = nil
	return set, nil
}

// guard adds the finalizer to a WorkSet before its first Work exists.
func (l *reconciliation) guard(ctx context.Context) error {
	next := l.set.DeepCopy()
	controllerutil.AddFinalizer(next, v1alpha1.WorkSetFinalizer)
	if err := l.api.client.Patch(ctx, scope.WorkSetObject(next), client.MergeFromWithOptions(scope.WorkSetObject(l.set),
		client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("add the finalizer to WorkSet %s: %w", l.state.key, err)
	}
	l.set, l.state.latest = next, next
	if l.set.Status.Revision == "" {
		l.state.revisions.read = true // the finalizer precedes the first revision, so none exists
	}
	return nil
}
