package placement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/assume"
	"github.com/muster-sdk/muster/internal/requeue"
	"github.com/muster-sdk/muster/internal/requiredkinds"
	"github.com/muster-sdk/muster/internal/tracing"
	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/queue"
)

// SetupWithManager adds the controller of Placements to a manager. The controller decides Placements, writes their
// PlacementDecisions and their status. It runs on the leader only. The manager's scheme must have placement/v1alpha1,
// and membership/v1alpha1 unless Options.Clusters is set. The CustomResourceDefinitions must be served when the manager
// starts.
//
// The permissions of the controller are in the folder rbac.
func SetupWithManager(mgr manager.Manager, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if err := requiredkinds.Check(mgr.GetScheme(), v1alpha1.GroupVersion.WithKind("PlacementDecision")); err != nil {
		return err
	}
	if o.Clusters == nil {
		o.Clusters = Members(mgr.GetCache())
	}
	d := &decisionController{
		Options: o, api: api{mgr.GetClient(), mgr.GetAPIReader(), mgr.GetCache()},
		log: mgr.GetLogger().WithName("muster-placement"), recorder: mgr.GetEventRecorder("muster-placement"),
		metrics:   newMetrics(),
		fleet:     fleetViews{counted: newCountedFleet(o.Clusters), taintTimes: newTaintTimes(o.Clock)},
		decisions: newDecisionCache(), evictions: newEvictionCache(),
		running:    running{synced: make(chan struct{}), stopped: make(chan struct{})},
		placements: placements{states: map[key]*placementState{}, on: map[string]map[key]bool{}},
		presence:   newPresence(),
	}
	d.queue = queue.New(queue.Options[key, scheduler.Event]{
		Hint: d.hint, Clock: o.Clock,
		OnPanic: func(plugin string, reason any) {
			d.log.Error(fmt.Errorf("panicked: %v", reason), "Plugin panicked in a queueing "+
				"hint", "plugin", plugin, "stack", string(debug.Stack()))
		},
	})
	return mgr.Add(d)
}

type key = string // namespace/name; the namespace of a ClusterPlacement is empty

// decisionController decides Placements.
type decisionController struct {
	Options

	api      api
	log      logr.Logger
	recorder events.EventRecorder
	metrics  *metrics

	fleet      fleetViews
	decisions  *decisionCache
	evictions  *evictionCache
	queue      *queue.Queue[key, scheduler.Event]
	running    running
	placements placements
	presence   presence
}

// api contains the clients and the cache of the hub's API server.
type api struct {
	client client.Client
	live   client.Reader // reads from the API server
	cache  cache.Cache
}

// fleetViews contains the fleet, and data that is derived from it.
type fleetViews struct {
	counted        *countedFleet
	taintTimes     *taintTimes
	withoutEvicted filteredFleets
	withoutDenied  filteredFleets // the candidates of each namespace
}

// running is the state of the controller's start and end.
type running struct {
	synced  chan struct{} // closed when all clusters are known
	once    sync.Once
	timers  sync.WaitGroup
	stopped chan struct{}
	polls   bool // Ready does not report changes
}

// placements contains the state of the placements that were decided.
type placements struct {
	mu     sync.Mutex
	states map[key]*placementState
	on     map[string]map[key]bool // by cluster: the placements on it, and those that would return to it
}

// NeedLeaderElection returns true: two controllers would overwrite each other's decisions.
func (d *decisionController) NeedLeaderElection() bool { return true }

// Start decides placements until the context ends, and waits for all goroutines that it started.
func (d *decisionController) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer func() {
		cancel(nil)
		running.Wait()
		close(d.running.stopped)
		d.running.timers.Wait()
	}()
	running.Go(func() {
		err := d.Clusters.Run(ctx, d)
		if err == nil && ctx.Err() == nil {
			err = errors.New("the source of clusters ended")
		}
		cancel(err)
	})
	// No decision is made before all existing objects are observed, because it could move placements.
	if d.Tenancy != nil {
		end, err := d.Tenancy.Watch(ctx, d.tenantChanged)
		if err != nil {
			return fmt.Errorf("watch the bindings of namespaces: %w", err)
		}
		defer end()
	}
	unwatch, err := d.watch(ctx)
	if err != nil {
		return err
	}
	defer unwatch()
	d.decisions.each(func(k key, laid []decision.Slice) {
		d.fleet.counted.place(k, slices.Collect(maps.Keys(namesOf(laid))))
	})
	unnotify, err := d.notify(ctx)
	if err != nil {
		return err
	}
	defer unnotify()
	hide, err := expose(d)
	if err != nil {
		return err
	}
	defer hide()
	select {
	case <-d.running.synced:
		for range d.Workers {
			running.Go(func() { d.work(ctx) })
		}
		<-ctx.Done()
	case <-ctx.Done():
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (d *decisionController) work(ctx context.Context) {
	for {
		item, err := d.queue.Pop(ctx)
		if err != nil {
			return
		}
		outcome, err := d.guarded(ctx, item.Key)
		if err != nil {
			outcome = queue.Failed()
			if ctx.Err() == nil && !apierrors.IsConflict(err) && !errors.Is(err, errStale) {
				d.log.Error(err, "Failed to decide a placement, retrying", "placement", item.Key, "failures",
					item.Failures+1)
			}
		}
		d.queue.Done(item.Key, outcome)
	}
}

// guarded decides a placement and converts a panic to an error, so that one placement does not stop the others.
func (d *decisionController) guarded(ctx context.Context, k key) (_ queue.Outcome, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("decide %s: panicked: %v\n%s", k, reason, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, d.Timeout+writeTimeout)
	defer cancel()
	namespace, name, _ := strings.Cut(k, "/")
	ctx, end := tracing.Start(ctx, "muster-placement", types.NamespacedName{Namespace: namespace, Name: name})
	defer func() { end(err) }()
	return d.decide(ctx, k)
}

// writeTimeout bounds the writes of one decision, which are at most a hundred PlacementDecisions.
const writeTimeout = time.Minute

// decide decides one placement: observe, decide, act, report.
func (d *decisionController) decide(ctx context.Context, k key) (queue.Outcome, error) {
	placement, err := d.read(ctx, k)
	if err != nil {
		return queue.Failed(), err
	}
	if placement == nil {
		d.drop(k) // the garbage collector deletes its PlacementDecisions
		return queue.Scheduled(), d.reportUndecided(ctx, k, v1alpha1.ReasonPlacementNotFound,
			"The placement does not exist in this namespace. The PlacementEviction of a ClusterPlacement must be in namespace "+
				v1alpha1.ClusterScopeNamespace)
	}
	result := resultWriteFailed
	defer func() { d.metrics.decisions.WithLabelValues(result).Inc() }()
	p := d.stateOf(k, placement)
	if p.spec.invalid != nil {
		// The decisions stay: an invalid policy must not remove running workloads.
		result = v1alpha1.ReasonInvalidPolicy
		return queue.Scheduled(), errors.Join(
			d.report(ctx, placement, p, failed(v1alpha1.ReasonInvalidPolicy, p.spec.invalid)),
			d.reportUndecided(ctx, k, v1alpha1.ReasonNotDecided,
				"The policy of the placement is invalid. See the condition Scheduled of the placement."))
	}
	if err := d.resume(ctx, k, placement, p); err != nil {
		result = v1alpha1.ReasonDecideFailed
		return queue.Failed(), errors.Join(err, d.report(ctx, placement, p, failed(v1alpha1.ReasonDecideFailed, err)))
	}
	a, s, err := d.scheduleWithRetry(ctx, k, placement, p)
	if a == nil {
		return queue.Failed(), err
	}
	if err != nil {
		result = v1alpha1.ReasonDecideFailed
		return queue.Failed(), errors.Join(err,
			d.report(ctx, placement, p, failed(v1alpha1.ReasonDecideFailed, err)),
			d.reportUndecided(ctx, k, v1alpha1.ReasonNotDecided,
				"The decision failed. See the condition Scheduled of the placement."))
	}
	d.recordRequest(a, &s)
	p.last.result = &s.result
	known := propertiesOf(p.spec.policy.Spec(), a.placement.Spec.DecisionGroups, a.snapshot)
	if len(known.unknown) > 0 {
		s.again = requeue.Earlier(s.again, a.request.Now.Add(propertiesInterval))
	}
	p.again()
	p.again = d.requeueAt(k, requeue.Earlier(s.result.Until, s.again))
	if d.outdated(a.snapshot, &s.result) {
		d.queue.Add(k, 0)
	}
	v := summarize(&s, "")
	v.properties, v.access, v.explanation = known, a.access, d.explanation(ctx, a, &s)
	v.message = d.message(ctx, a, &s, currentMessage(placement, v))
	if notBound := a.access.notBound(); notBound != "" && !v.scheduled {
		v.message = notBound
	}
	if err := d.act(ctx, a, &s, v); err != nil {
		return queue.Failed(), err
	}
	if s.soon {
		d.queue.Add(k, 0)
	}
	result = v.reason
	return outcome(&s.result), nil
}

// scheduleWithRetry computes a decision and records its clusters in the placement counts. If another decision changed
// these counts meanwhile, it computes the decision again, up to eight times for each worker. The result of the last try
// is accepted without this check.
func (d *decisionController) scheduleWithRetry(ctx context.Context, k key, placement *v1alpha1.Placement,
	p *placementState) (*attempt, step, error) {
	for tries := 8 * d.Workers; ; tries-- {
		a, err := d.attempt(ctx, k, placement, p)
		if err != nil {
			return nil, step{}, err
		}
		s, err := d.next(ctx, a)
		if err != nil {
			return a, s, err
		}
		decided := a.snapshot
		if tries == 0 || p.spec.policy.Spec().Type != v1alpha1.PickN { // other policies do not depend on the counts
			decided = nil
		}
		if d.fleet.counted.claim(k, s.names(), decided) {
			return a, s, nil
		}
		s.result.Unreserve(ctx)
	}
}

// act writes a decision and the status that follows from it.
func (d *decisionController) act(ctx context.Context, a *attempt, s *step, v summary) error {
	placement, p := a.placement, a.p
	if s.counts {
		// The evictions are written to the status before the clusters are left. If the process dies in between, the next
		// leader does not exceed the rate.
		if err := d.report(ctx, placement, p, v); err != nil {
			return err
		}
		placement = cmp.Or(p.latest, placement)
	}
	if len(a.evictions) > 0 {
		on := namesOf(p.last.slices)
		maps.Copy(on, p.unreported)
		p.unreported = on
	}
	laid := decision.Lay(p.last.slices, a.access.record(p.spec.groups.decisions(p.last.slices, s.all), s.all))
	confirmed := d.Clock.Now()
	if len(a.before) > 0 && len(changes(placement, a.before, laid)) > 0 {
		if err := d.confirm(ctx, placement); err != nil {
			return err
		}
	}
	defer d.dropAbsent(removedClusters(p.last.slices, laid))
	d.metrics.moved(p.last.slices, laid)
	d.metrics.failedOver(a, s)
	p.last.slices, p.last.generation = laid, placement.Generation
	p.withdrawals.add(&a.access)
	if err := d.write(ctx, placement, a.before, p.last.slices, confirmed); err != nil {
		if persistent(err) {
			err = errors.Join(err, d.report(ctx, placement, p, failed(v1alpha1.ReasonDecideFailed, err)))
		}
		return err
	}
	d.announce(placement, &p.withdrawals)
	v.access.left = p.withdrawals.written
	if err := errors.Join(d.report(ctx, placement, p, v), d.reportEvictions(ctx, a, s)); err != nil {
		return err
	}
	p.withdrawals = withdrawals{}
	p.unreported = nil
	return nil
}

// read returns a placement. Nil: the placement does not exist or is being deleted.
func (d *decisionController) read(ctx context.Context, k key) (*v1alpha1.Placement, error) {
	namespace, name, _ := toolscache.SplitMetaNamespaceKey(k)
	placement, err := scope.ReadPlacement(ctx, d.api.cache, client.ObjectKey{Namespace: namespace, Name: name})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read placement %s: %w", k, err)
	}
	d.placements.mu.Lock()
	p := d.placements.states[k]
	d.placements.mu.Unlock()
	if p != nil && p.latest != nil {
		if p.latest.UID == placement.UID && assume.Behind(placement, p.latest) {
			placement = p.latest
		} else {
			p.latest = nil // the cache contains it
		}
	}
	if placement.DeletionTimestamp != nil {
		return nil, nil
	}
	return placement, nil
}
