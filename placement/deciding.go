package placement

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

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
		Options: o, client: mgr.GetClient(), cache: mgr.GetCache(), log: mgr.GetLogger().WithName("muster-placement"),
		recorder: mgr.GetEventRecorder("muster-placement"),
		synced:   make(chan struct{}), known: map[key]*placed{}, on: map[string]map[key]bool{},
	}
	d.queue = queue.New(queue.Options[string, scheduler.Event]{Hint: d.hint, Clock: o.Clock})
	return mgr.Add(d)
}

type key = string // namespace/name

// deciding decides placements.
type deciding struct {
	Options

	client   client.Client
	cache    cache.Cache
	log      logr.Logger
	recorder events.EventRecorder

	fleet  scheduler.Cache
	queue  *queue.Queue[key, scheduler.Event]
	synced chan struct{}
	once   sync.Once

	mu    sync.Mutex
	known map[key]*placed
	on    map[string]map[key]bool // the placements that are on a cluster
}

// placed is what is remembered of a placement. But for request and slices, which events ask for, it belongs to who has it in flight.
type placed struct {
	uid        types.UID
	generation int64
	groups     groups
	policy     *scheduler.Policy
	invalid    error
	previous   *scheduler.Result
	again      func() // stops the timer of a decision that ends by itself

	request *scheduler.Request
	slices  map[string][]v1alpha1.ClusterDecision // as written last, by the name of the PlacementDecision
}

// NeedLeaderElection is true: two deciders would undo each other's choices.
func (d *deciding) NeedLeaderElection() bool { return true }

// Start decides until the context ends.
func (d *deciding) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		if err := d.Clusters.Run(ctx, d); err != nil {
			cancel(err)
		}
	})
	if err := d.watch(ctx); err != nil {
		cancel(err)
		return err
	}
	select {
	case <-d.synced:
	case <-ctx.Done():
		return failure(ctx)
	}
	for range d.Workers {
		running.Go(func() { d.work(ctx) })
	}
	<-ctx.Done()
	return failure(ctx)
}

// failure is why a context ended, if that was no regular end.
func failure(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Set takes in a cluster.
func (d *deciding) Set(cluster *scheduler.Cluster) { d.changed(cluster.Name, d.fleet.Update(cluster)) }

// Remove takes out a cluster.
func (d *deciding) Remove(name string) { d.changed(name, d.fleet.Remove(name)) }

// Synced lets the decisions begin.
func (d *deciding) Synced() { d.once.Do(func() { close(d.synced) }) }

// changed has those placements decided anew that the change of a cluster may matter to: those that are on it, and those that lack
// clusters and could now have one.
func (d *deciding) changed(cluster string, event scheduler.Event) {
	if event.Old == nil && event.New == nil || reflect.DeepEqual(event.Old, event.New) {
		return
	}
	d.mu.Lock()
	var concerned []key
	for k := range d.on[cluster] {
		concerned = append(concerned, k)
	}
	d.mu.Unlock()
	for _, k := range concerned {
		d.queue.Add(k, 0)
	}
	d.queue.Event(event)
}

// hint tells which of the placements that a plugin has refused a cluster an event may help.
func (d *deciding) hint(plugin string, event scheduler.Event) func(key) bool {
	return func(k key) bool {
		d.mu.Lock()
		p := d.known[k]
		var request *scheduler.Request
		if p != nil {
			request = p.request
		}
		d.mu.Unlock()
		return request != nil && d.Decider.MayHelp(request, []string{plugin}, event)
	}
}

// watch has the queue learn of placements, and of PlacementDecisions that somebody else has changed.
func (d *deciding) watch(ctx context.Context) error {
	placements, err := d.cache.GetInformer(ctx, &v1alpha1.Placement{})
	if err != nil {
		return fmt.Errorf("watch Placements: %w", err)
	}
	decisions, err := d.cache.GetInformer(ctx, &v1alpha1.PlacementDecision{})
	if err != nil {
		return fmt.Errorf("watch PlacementDecisions: %w", err)
	}
	add := func(object any) {
		if k, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			d.queue.Add(k, 0)
		}
	}
	if _, err := placements.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: add, DeleteFunc: add,
		UpdateFunc: func(before, after any) {
			old, now := before.(*v1alpha1.Placement), after.(*v1alpha1.Placement)
			if old.Generation != now.Generation || old.UID != now.UID || (old.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) ||
				old.Annotations[v1alpha1.RescheduleAnnotation] != now.Annotations[v1alpha1.RescheduleAnnotation] {
				add(after)
			}
		},
	}); err != nil {
		return fmt.Errorf("watch Placements: %w", err)
	}
	_, err = decisions.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, after any) { d.disturbed(after.(*v1alpha1.PlacementDecision), true) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if gone, ok := object.(*v1alpha1.PlacementDecision); ok {
				d.disturbed(gone, false)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch PlacementDecisions: %w", err)
	}
	return nil
}

// disturbed has a placement decided anew whose PlacementDecision is not what was written last.
func (d *deciding) disturbed(object *v1alpha1.PlacementDecision, there bool) {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != "Placement" {
		return
	}
	k := object.Namespace + "/" + owner.Name
	d.mu.Lock()
	p := d.known[k]
	strange := p == nil
	if p != nil {
		wrote, expected := p.slices[object.Name]
		strange = expected != there || there && !slices.Equal(wrote, object.Decisions)
	}
	d.mu.Unlock()
	if strange {
		d.queue.Add(k, 0)
	}
}

// decideTimeout bounds one decision with all its writes.
const decideTimeout = time.Minute

func (d *deciding) work(ctx context.Context) {
	for {
		item, err := d.queue.Pop(ctx)
		if err != nil {
			return
		}
		outcome, err := d.decide(ctx, item.Key)
		if err != nil && ctx.Err() == nil {
			if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
				d.log.Error(err, "A placement could not be decided; trying again.", "placement", item.Key)
			}
			outcome = queue.Failed()
		}
		d.queue.Done(item.Key, outcome)
	}
}

// decide looks at one placement: observe, decide, act, report.
func (d *deciding) decide(ctx context.Context, k key) (queue.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, decideTimeout)
	defer cancel()
	namespace, name, _ := toolscache.SplitMetaNamespaceKey(k)
	placement := &v1alpha1.Placement{}
	err := d.cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, placement)
	if apierrors.IsNotFound(err) || err == nil && placement.DeletionTimestamp != nil {
		d.forget(k) // its PlacementDecisions go with their owner
		return queue.Scheduled(), nil
	}
	if err != nil {
		return queue.Failed(), fmt.Errorf("read Placement %s: %w", k, err)
	}
	p := d.placed(k, placement)
	if p.invalid != nil {
		return queue.Scheduled(), d.report(ctx, placement, verdict{reason: v1alpha1.ReasonInvalidPolicy, message: p.invalid.Error(),
			selected: int(placement.Status.SelectedClusters), desired: int(placement.Status.DesiredClusters)})
	}
	before, err := d.slices(ctx, placement)
	if err != nil {
		return queue.Failed(), err
	}

	request := &scheduler.Request{Name: k, Policy: p.policy, Bound: bound(before), Previous: p.previous, Now: d.Clock.Now()}
	if placement.Annotations[v1alpha1.RescheduleAnnotation] != placement.Status.Rescheduled {
		request.Bound, request.Previous = nil, nil
	}
	result, err := d.Decider.Schedule(ctx, d.fleet.Snapshot(), request)
	if err != nil {
		return queue.Failed(), errors.Join(err, d.report(ctx, placement, verdict{reason: v1alpha1.ReasonDecideFailed, message: err.Error(),
			selected: int(placement.Status.SelectedClusters), desired: int(placement.Status.DesiredClusters)}))
	}
	decisions := p.groups.decisions(result.Chosen)
	d.remember(k, p, request, &result)
	if err := d.write(ctx, placement, p, before, decision.Lay(slicesOf(before), decisions)); err != nil {
		return queue.Failed(), err
	}
	if err := d.report(ctx, placement, judge(&result, d.sentence(ctx, placement, &result))); err != nil {
		return queue.Failed(), err
	}
	if result.Wanted < 0 || result.Missing() > 0 {
		return queue.Unschedulable(result.RejectedBy...), nil
	}
	return queue.Scheduled(), nil
}

// placed is what is known of a placement as it is now.
func (d *deciding) placed(k key, placement *v1alpha1.Placement) *placed {
	d.mu.Lock()
	p := d.known[k]
	if p == nil || p.uid != placement.UID {
		p = &placed{uid: placement.UID, slices: map[string][]v1alpha1.ClusterDecision{}, again: func() {}}
		d.known[k] = p
	}
	d.mu.Unlock()
	if p.generation != placement.Generation {
		p.generation, p.previous = placement.Generation, nil
		p.policy, p.invalid = scheduler.NewPolicy(&placement.Spec.Policy)
		if p.invalid == nil {
			p.groups, p.invalid = newGroups(placement.Spec.DecisionGroups)
		}
	}
	return p
}

// remember takes down a decision, for events that come after it and for the next decision.
func (d *deciding) remember(k key, p *placed, request *scheduler.Request, result *scheduler.Result) {
	p.again()
	p.again = func() {}
	if !result.Until.IsZero() {
		timer := d.Clock.NewTimer(max(result.Until.Sub(d.Clock.Now()), 0))
		stop := make(chan struct{})
		go func() {
			select {
			case <-timer.C():
				d.queue.Add(k, 0)
			case <-stop:
				timer.Stop()
			}
		}()
		p.again = sync.OnceFunc(func() { close(stop) })
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leave(k, p)
	p.previous, p.request = result, request
	for _, choice := range result.Chosen {
		if d.on[choice.Cluster.Name] == nil {
			d.on[choice.Cluster.Name] = map[key]bool{}
		}
		d.on[choice.Cluster.Name][k] = true
	}
}

// leave takes a placement off the clusters that it was on.
func (d *deciding) leave(k key, p *placed) {
	if p.previous == nil {
		return
	}
	for _, choice := range p.previous.Chosen {
		if delete(d.on[choice.Cluster.Name], k); len(d.on[choice.Cluster.Name]) == 0 {
			delete(d.on, choice.Cluster.Name)
		}
	}
}

func (d *deciding) forget(k key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.known[k]; p != nil {
		p.again()
		d.leave(k, p)
		delete(d.known, k)
	}
}

// report writes a status that is not the one that is there, and tells when it has turned.
func (d *deciding) report(ctx context.Context, placement *v1alpha1.Placement, v verdict) error {
	status := v.status(placement, metav1.NewTime(d.Clock.Now()))
	if reflect.DeepEqual(placement.Status, status) {
		return nil
	}
	next := placement.DeepCopy()
	next.Status = status
	if err := d.client.Status().Patch(ctx, next, client.MergeFrom(placement)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of Placement %s/%s: %w", placement.Namespace, placement.Name, err)
	}
	if placement.Status.SelectedClusters != status.SelectedClusters || !slices.EqualFunc(placement.Status.Conditions, status.Conditions,
		func(a, b metav1.Condition) bool {
			return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
		}) {
		kind := corev1.EventTypeNormal
		if !v.scheduled {
			kind = corev1.EventTypeWarning
		}
		d.recorder.Eventf(placement, nil, kind, v.reason, "Decide", "%s", cut(v.message))
	}
	return nil
}

// sentence is what the scheduler has to say. To find it out costs a decision without any shortcut, so what was said before is said again
// while the numbers are the same.
func (d *deciding) sentence(ctx context.Context, placement *v1alpha1.Placement, result *scheduler.Result) string {
	diagnosis, err := result.Diagnose(ctx)
	if err != nil {
		return fmt.Sprintf("%d of %d clusters chosen", len(result.Chosen), result.Total)
	}
	_ = placement
	return diagnosis.String()
}
