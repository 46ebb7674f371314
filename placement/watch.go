package placement

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/queue"
)

// Set adds or updates a cluster.
func (d *decisionController) Set(cluster *scheduler.Cluster) {
	if cluster.Absent {
		d.lose(cluster.Name)
		return
	}
	d.presence.mu.Lock()
	d.presence.present[cluster.Name] = true
	delete(d.presence.removed, cluster.Name)
	delete(d.presence.missing, cluster.Name)
	d.presence.dropAnswers(func(q removalLookup) bool { return q.cluster == cluster.Name })
	event := d.fleet.counted.set(d.fleet.taintTimes.withTimes(cluster))
	d.presence.mu.Unlock()
	d.changed(event)
}

// Remove removes a cluster on request.
func (d *decisionController) Remove(name string) {
	d.fleet.taintTimes.remove(name)
	d.presence.mu.Lock()
	delete(d.presence.present, name)
	delete(d.presence.missing, name)
	d.presence.removed[name] = true
	event := d.fleet.counted.remove(name)
	d.presence.mu.Unlock()
	d.changed(event)
}

// lose removes a cluster that is missing without an observed request. The next decision of a placement on it adds it
// again as an absent cluster.
func (d *decisionController) lose(name string) {
	d.fleet.taintTimes.remove(name)
	d.presence.mu.Lock()
	delete(d.presence.present, name)
	delete(d.presence.missing, name) // it may be in the fleet as an absent cluster, which is removed as well
	event := d.fleet.counted.remove(name)
	d.presence.mu.Unlock()
	d.changed(event)
}

// Synced starts the workers.
func (d *decisionController) Synced() { d.running.once.Do(func() { close(d.running.synced) }) }

// changed enqueues the placements that a changed cluster may affect: those on it, and those that lack clusters and may
// select it now. The fleet contains the change already, so decisions from now on take it into account.
func (d *decisionController) changed(event scheduler.Event) {
	if event.Old == nil && event.New == nil || event.Old != nil && event.New != nil &&
		equality.Semantic.DeepEqual(event.Old, event.New) {
		return
	}
	if isSignificant(event) {
		for _, k := range d.placementsOn(nameOf(event)) {
			d.queue.Add(k, 0)
		}
	}
	d.queue.Event(event)
}

func (d *decisionController) placementsOn(cluster string) []key {
	d.placements.mu.Lock()
	defer d.placements.mu.Unlock()
	keys := make([]key, 0, len(d.placements.on[cluster]))
	for k := range d.placements.on[cluster] {
		keys = append(keys, k)
	}
	return keys
}

func nameOf(event scheduler.Event) string {
	if event.New != nil {
		return event.New.Name
	}
	return event.Old.Name
}

// isSignificant reports whether an event changes more than available resources, scores and the number of placements.
// These numbers change all the time, partly because of the placements themselves, so a change of them does not enqueue
// the placements on the cluster.
func isSignificant(event scheduler.Event) bool {
	if event.Old == nil || event.New == nil {
		return true
	}
	old := *event.Old
	old.Available, old.Scores, old.Placements = event.New.Available, event.New.Scores, event.New.Placements
	return !equality.Semantic.DeepEqual(&old, event.New)
}

// noPlugin is the queue's key for a decision that lacks clusters although no plugin rejected one.
const noPlugin = "(none)"

// outcome returns what the queue does with a placement until the next event.
func outcome(result *scheduler.Result) queue.Outcome {
	refusers := result.RejectedBy
	if len(refusers) == 0 {
		refusers = []string{noPlugin}
	}
	switch {
	case result.Missing() > 0:
		return queue.Unschedulable(refusers...)
	case result.Wanted < 0: // PickAll selects every new cluster
		return queue.Open(refusers...)
	default:
		return queue.Scheduled()
	}
}

// hint returns a function that reports whether an event may help a placement for which the plugin rejected clusters.
func (d *decisionController) hint(plugin string, event scheduler.Event) func(key) bool {
	name, lasts := nameOf(event), isSignificant(event)
	if plugin == noPlugin && !lasts {
		return nil
	}
	return func(k key) bool {
		request := d.requestAbout(k, name)
		if request == nil {
			return false
		}
		is, isNew := d.candidacy(k, event)
		return is && (isNew && d.Tenancy != nil || plugin == noPlugin || d.Decider.MayHelp(request, []string{plugin}, event))
	}
}

// requestAbout returns the request with which to ask the Decider about a cluster. Nil: the placement is on the cluster
// and is enqueued for that reason, or can never select the cluster.
func (d *decisionController) requestAbout(k key, cluster string) *scheduler.Request {
	d.placements.mu.Lock()
	defer d.placements.mu.Unlock()
	p := d.placements.states[k]
	if p == nil || p.events.request == nil || d.placements.on[cluster][k] || slices.Contains(p.events.excluded, cluster) ||
		!names(p.events.request.Policy.Spec(), cluster) {
		return nil
	}
	return p.events.request
}

// outdated reports whether a selected cluster has changed since the snapshot of the decision. The event of that change
// may have preceded the decision.
func (d *decisionController) outdated(decided *scheduler.Snapshot, result *scheduler.Result) bool {
	current := d.fleet.counted.fleet.Snapshot()
	if current == decided {
		return false
	}
	for _, choice := range result.Chosen {
		slot, there := current.Slot(choice.Cluster.Name)
		if !there || current.Cluster(slot) != choice.Cluster && isSignificant(scheduler.Event{Old: choice.Cluster,
			New: current.Cluster(slot)}) {
			return true
		}
	}
	return false
}

// watch enqueues placements when another client changes them, their evictions or their PlacementDecisions. It returns
// after all existing objects are observed.
func (d *decisionController) watch(ctx context.Context) (end func(), _ error) {
	add := func(object any) {
		if name, err := toolscache.DeletionHandlingObjectToName(object); err == nil {
			d.queue.Add(types.NamespacedName(name).String(), 0)
		}
	}
	addAll := func(keys []key) {
		for _, k := range keys {
			d.queue.Add(k, 0)
		}
	}
	endSlices, err := watchKind(ctx, d.api.cache, &v1alpha1.PlacementDecision{}, handlerFuncs(
		func(object *v1alpha1.PlacementDecision) { addAll(d.decisions.observe(object)) },
		func(object *v1alpha1.PlacementDecision) { addAll(d.decisions.observeDeletion(object)) },
	))
	if err != nil {
		return nil, fmt.Errorf("watch PlacementDecisions: %w", err)
	}
	endEvictions, err := watchKind(ctx, d.api.cache, &v1alpha1.PlacementEviction{}, handlerFuncs(
		func(object *v1alpha1.PlacementEviction) { addAll(d.evictions.observe(object)) },
		func(object *v1alpha1.PlacementEviction) { addAll(d.evictions.observeDeletion(object)) },
	))
	if err != nil {
		endSlices()
		return nil, fmt.Errorf("watch PlacementEvictions: %w", err)
	}
	endChildren := func() { endEvictions(); endSlices() }
	endPlacements, err := watchKind(ctx, d.api.cache, &v1alpha1.Placement{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc: add, DeleteFunc: add,
		UpdateFunc: func(before, after any) {
			if needsDecision(before.(*v1alpha1.Placement), after.(*v1alpha1.Placement)) {
				add(after)
			}
		},
	})
	if err != nil {
		endChildren()
		return nil, fmt.Errorf("watch Placements: %w", err)
	}
	if !scope.Watched(ctx, d.api.cache) {
		return func() { endPlacements(); endChildren() }, nil
	}
	clusterScoped := toolscache.ResourceEventHandlerFuncs{
		AddFunc: add, DeleteFunc: add,
		UpdateFunc: func(before, after any) {
			if needsDecision((*v1alpha1.Placement)(before.(*v1alpha1.ClusterPlacement)),
				(*v1alpha1.Placement)(after.(*v1alpha1.ClusterPlacement))) {
				add(after)
			}
		},
	}
	endClusterScoped, err := watchKind(ctx, d.api.cache, &v1alpha1.ClusterPlacement{}, clusterScoped)
	if err != nil {
		endPlacements()
		endChildren()
		return nil, fmt.Errorf("watch ClusterPlacements: %w", err)
	}
	return func() { endClusterScoped(); endPlacements(); endChildren() }, nil
}

// handlerFuncs returns a handler of objects of one type that treats additions and updates alike.
func handlerFuncs[T client.Object](saw, lost func(T)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { saw(object.(T)) },
		UpdateFunc: func(_, after any) { saw(after.(T)) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if gone, ok := object.(T); ok {
				lost(gone)
			}
		},
	}
}

// needsDecision reports whether a placement must be decided again after an update. A change of its status, which this
// controller writes, is ignored.
func needsDecision(before, after *v1alpha1.Placement) bool {
	return before.Generation != after.Generation || before.UID != after.UID ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		before.Annotations[v1alpha1.RescheduleAnnotation] != after.Annotations[v1alpha1.RescheduleAnnotation] ||
		before.Annotations[v1alpha1.ExplainAnnotation] != after.Annotations[v1alpha1.ExplainAnnotation]
}

// watchKind adds a handler for a kind, and returns after the handler has observed all existing objects.
func watchKind(ctx context.Context, c cache.Cache, kind client.Object,
	handler toolscache.ResourceEventHandler) (end func(), _ error) {
	informer, err := c.GetInformer(ctx, kind)
	if err != nil {
		return nil, err
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return nil, err
	}
	end = func() { _ = informer.RemoveEventHandler(registration) } // an error means that the informer has ended
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		end()
		return nil, context.Cause(ctx)
	}
	return end, nil
}
