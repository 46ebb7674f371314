package placement

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/placement/decision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/queue"
)

// SetupWithManager adds the controller of Placements to a manager: it decides each, keeps its PlacementDecisions and says how it
// stands. It runs on the leader alone. The manager's scheme knows placement/v1alpha1, and membership/v1alpha1 unless there is another
// [ClusterSource]; the CustomResourceDefinitions are installed by the time that the manager starts.
//
// The permissions that it needs are in the folder rbac.
func SetupWithManager(mgr manager.Manager, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if !mgr.GetScheme().Recognizes(v1alpha1.GroupVersion.WithKind("PlacementDecision")) {
		return errors.New("the manager's scheme does not know placement.muster.dev: call AddToScheme of placement/v1alpha1 before")
	}
	if o.Clusters == nil {
		o.Clusters = Members(mgr.GetCache())
	}
	d := &deciding{
		Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(), cache: mgr.GetCache(),
		log: mgr.GetLogger().WithName("muster-placement"), recorder: mgr.GetEventRecorder("muster-placement"),
		ledger: newLedger(), synced: make(chan struct{}), stopped: make(chan struct{}), known: map[key]*placed{}, on: map[string]map[key]bool{},
	}
	d.queue = queue.New(queue.Options[key, scheduler.Event]{
		Hint: d.hint, Clock: o.Clock,
		OnPanic: func(plugin string, reason any) {
			d.log.Error(fmt.Errorf("panicked: %v", reason), "A hint panicked.", "plugin", plugin, "stack", string(debug.Stack()))
		},
	})
	return mgr.Add(d)
}

type key = string // namespace/name

// deciding decides placements.
type deciding struct {
	Options

	client   client.Client
	live     client.Reader // not a cache
	cache    cache.Cache
	log      logr.Logger
	recorder events.EventRecorder

	fleet   scheduler.Cache
	ledger  *ledger
	queue   *queue.Queue[key, scheduler.Event]
	synced  chan struct{} // closed once all clusters are known
	once    sync.Once
	timers  sync.WaitGroup
	stopped chan struct{}

	mu    sync.Mutex
	known map[key]*placed
	on    map[string]map[key]bool // the placements that are on a cluster, or would return to it
}

// NeedLeaderElection is true: two deciders would undo each other's choices.
func (d *deciding) NeedLeaderElection() bool { return true }

// Start decides until the context ends. It waits for all that it has started.
func (d *deciding) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer func() {
		cancel(nil)
		running.Wait()
		close(d.stopped)
		d.timers.Wait()
	}()
	running.Go(func() {
		err := d.Clusters.Run(ctx, d)
		if err == nil && ctx.Err() == nil {
			err = errors.New("the source of clusters has ended")
		}
		cancel(err)
	})
	// Who decides before all is known that there is chooses anew what was chosen already.
	unwatch, err := d.watch(ctx)
	if err != nil {
		return err
	}
	defer unwatch()
	select {
	case <-d.synced:
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

func (d *deciding) work(ctx context.Context) {
	for {
		item, err := d.queue.Pop(ctx)
		if err != nil {
			return
		}
		outcome, err := d.guarded(ctx, item.Key)
		if err != nil {
			outcome = queue.Failed()
			if ctx.Err() == nil && !apierrors.IsConflict(err) && !errors.Is(err, errStale) {
				d.log.Error(err, "A placement could not be decided; trying again.", "placement", item.Key, "failures", item.Failures+1)
			}
		}
		d.queue.Done(item.Key, outcome)
	}
}

// guarded decides, and turns a panic into an error: one placement must not stop the others.
func (d *deciding) guarded(ctx context.Context, k key) (_ queue.Outcome, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("decide %s: panicked: %v\n%s", k, reason, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, d.Timeout+writeTimeout)
	defer cancel()
	return d.decide(ctx, k)
}

// writeTimeout bounds what one decision writes, which is a hundred PlacementDecisions at most.
const writeTimeout = time.Minute

// decide looks at one placement: observe, decide, act, report.
func (d *deciding) decide(ctx context.Context, k key) (queue.Outcome, error) {
	placement, err := d.read(ctx, k)
	if err != nil {
		return queue.Failed(), err
	}
	if placement == nil {
		d.forget(k) // its PlacementDecisions go with their owner
		return queue.Scheduled(), nil
	}
	p := d.placed(k, placement)
	if p.invalid != nil {
		// What was chosen stays: a mistake in a policy must not take down what runs.
		return queue.Scheduled(), d.report(ctx, placement, p, failed(v1alpha1.ReasonInvalidPolicy, p.invalid))
	}
	before := d.ledger.slices(k, placement.UID)
	if p.decided == 0 { // from now on p.laid is what was decided, whatever others do to the objects
		p.laid = slicesOf(placement.Name, before)
	}
	snapshot := d.fleet.Snapshot()
	request := &scheduler.Request{Name: k, Policy: p.policy, Bound: p.bound(placement, snapshot), Previous: p.previous, Now: d.Clock.Now()}
	if reschedule(placement) {
		request.Bound, request.Previous = nil, nil
	}
	result, err := d.ask(ctx, p, snapshot, request)
	if err != nil {
		return queue.Failed(), errors.Join(err, d.report(ctx, placement, p, failed(v1alpha1.ReasonDecideFailed, err)))
	}
	all, again := d.publish(placement, p, snapshot, &result)
	d.remember(k, p, request, follows(placement, all))
	p.previous = &result
	p.again()
	p.again = d.lookAgain(k, earliest(result.Until, again))
	if d.overtaken(snapshot, &result) {
		d.queue.Add(k, 0)
	}
	p.laid, p.decided = decision.Lay(p.laid, p.groups.decisions(all)), placement.Generation
	if err := d.write(ctx, placement, before, p.laid); err != nil {
		if lasts(err) {
			err = errors.Join(err, d.report(ctx, placement, p, failed(v1alpha1.ReasonDecideFailed, err)))
		}
		return queue.Failed(), err
	}
	v := judge(&result, all, "")
	v.message = d.sentence(ctx, p, &result, standing(placement, v))
	if err := d.report(ctx, placement, p, v); err != nil {
		return queue.Failed(), err
	}
	return outcome(&result), nil
}

// read returns a placement, or nil if there is none to decide.
func (d *deciding) read(ctx context.Context, k key) (*v1alpha1.Placement, error) {
	namespace, name, _ := toolscache.SplitMetaNamespaceKey(k)
	placement := &v1alpha1.Placement{}
	err := d.cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, placement)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Placement %s: %w", k, err)
	}
	d.mu.Lock()
	p := d.known[k]
	d.mu.Unlock()
	if p != nil && p.latest != nil {
		if p.latest.UID == placement.UID && newer(p.latest, placement) {
			placement = p.latest
		} else {
			p.latest = nil // the cache has it too
		}
	}
	if placement.DeletionTimestamp != nil {
		return nil, nil
	}
	return placement, nil
}

// ask has the Decider decide. One that panics has failed, and so has one that takes too long: it is left behind, and not asked about
// the placement again before it has come back.
func (d *deciding) ask(ctx context.Context, p *placed, snapshot *scheduler.Snapshot, request *scheduler.Request) (scheduler.Result, error) {
	if p.asking != nil {
		select {
		case <-p.asking:
			p.asking = nil
		default:
			return scheduler.Result{}, errors.New("the decider has not come back since it was asked before")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	var result scheduler.Result
	err := errors.New("the decider has ended its goroutine")
	back := make(chan struct{})
	go func() {
		defer close(back)
		defer func() {
			if reason := recover(); reason != nil {
				err = fmt.Errorf("the decider panicked: %v", reason)
				d.log.Error(err, "A decider panicked.", "placement", request.Name, "stack", string(debug.Stack()))
			}
		}()
		result, err = d.Decider.Schedule(ctx, snapshot, request)
	}()
	select {
	case <-back:
		return result, err
	case <-ctx.Done():
	}
	select {
	case <-back:
		return result, err
	case <-time.After(grace): // most come back as soon as their context has ended
		p.asking = back
		return scheduler.Result{}, fmt.Errorf("the decider has not come back: %w", ctx.Err())
	}
}

// grace is how long a Decider may take to notice that its context has ended.
const grace = 100 * time.Millisecond
