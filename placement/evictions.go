package placement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/assume"
	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// evictionCache contains the PlacementEvictions that the watch has reported or that this process has written.
type evictionCache struct {
	mu      sync.Mutex
	objects assume.Cache[*v1alpha1.PlacementEviction]
	owned   map[key]map[types.UID]*v1alpha1.PlacementEviction
	timers  map[types.UID]evictionTimer
}

// evictionTimer enqueues a placement when the time to live of an eviction ends.
type evictionTimer struct {
	at   time.Time
	stop func()
}

func newEvictionCache() *evictionCache {
	return &evictionCache{owned: map[key]map[types.UID]*v1alpha1.PlacementEviction{},
		timers: map[types.UID]evictionTimer{}}
}

// placementOf returns the placement of an eviction. An eviction of a ClusterPlacement outside of
// [v1alpha1.ClusterScopeNamespace] yields the key of a placement that cannot exist.
func placementOf(object *v1alpha1.PlacementEviction) key {
	if object.Namespace == v1alpha1.ClusterScopeNamespace && object.Spec.ClusterPlacement != "" {
		return types.NamespacedName{Name: object.Spec.ClusterPlacement}.String()
	}
	return object.Namespace + "/" + object.Spec.Placement
}

// observe records an eviction that the watch reported, and returns the placements to decide again because of it.
func (o *evictionCache) observe(object *v1alpha1.PlacementEviction) []key {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.objects.Observe(object)
	placements := o.index(c)
	if c.Before != nil && c.Before.UID == object.UID &&
		(c.Before.DeletionTimestamp == nil) == (object.DeletionTimestamp == nil) { // the spec does not change
		return nil
	}
	return placements
}

// observeDeletion records that an eviction is deleted, and returns its placement.
func (o *evictionCache) observeDeletion(object *v1alpha1.PlacementEviction) []key {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.index(o.objects.ObserveDeletion(object))
}

// beginWrite records that the status of an eviction is about to be written. The returned function records the response;
// its argument is nil if the write failed.
func (o *evictionCache) beginWrite(object *v1alpha1.PlacementEviction) (end func(*v1alpha1.PlacementEviction)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	record := o.objects.BeginWrite(client.ObjectKeyFromObject(object))
	return func(object *v1alpha1.PlacementEviction) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.index(record(object))
	}
}

// index updates the evictions by placement, and returns the placements after and before a change. The timer of an
// eviction that does not exist any more ends.
func (o *evictionCache) index(c assume.Change[*v1alpha1.PlacementEviction]) []key {
	if !c.Any() {
		return nil
	}
	var placements []key
	if c.After != nil {
		k := placementOf(c.After)
		placements = append(placements, k)
		if o.owned[k] == nil {
			o.owned[k] = map[types.UID]*v1alpha1.PlacementEviction{}
		}
		o.owned[k][c.After.UID] = c.After
	}
	if c.Before == nil || c.After != nil && c.After.UID == c.Before.UID {
		return placements
	}
	k := placementOf(c.Before)
	if delete(o.owned[k], c.Before.UID); len(o.owned[k]) == 0 {
		delete(o.owned, k)
	}
	if timer, exists := o.timers[c.Before.UID]; exists {
		timer.stop()
		delete(o.timers, c.Before.UID)
	}
	return append(placements, k)
}

// wait starts the timer of an eviction with begin, and stops its earlier timer. It does nothing if a timer for this
// time exists, or if the eviction does not exist any more.
func (o *evictionCache) wait(object *v1alpha1.PlacementEviction, until time.Time, begin func() (stop func())) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.objects.Get(client.ObjectKeyFromObject(object))
	timer, exists := o.timers[object.UID]
	if known == nil || known.UID != object.UID || exists && timer.at.Equal(until) {
		return
	}
	if exists {
		timer.stop()
	}
	o.timers[object.UID] = evictionTimer{until, begin()}
}

// ofPlacement returns the evictions of a placement, the oldest first, without those that are being deleted.
func (o *evictionCache) ofPlacement(k key) []*v1alpha1.PlacementEviction {
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []*v1alpha1.PlacementEviction
	for _, object := range o.owned[k] {
		if object.DeletionTimestamp == nil {
			found = append(found, object)
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.PlacementEviction) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// waiting returns the number of evictions that are not executed, by reason.
func (o *evictionCache) waiting() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	counts := map[string]int{}
	for _, evictions := range o.owned {
		for _, object := range evictions {
			if c := executed(object); c.Status == metav1.ConditionFalse {
				counts[c.Reason]++
			}
		}
	}
	return counts
}

// executed returns the condition Executed of an eviction. Empty: the condition is not set yet.
func executed(object *v1alpha1.PlacementEviction) metav1.Condition {
	if c := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionExecuted); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// current returns the evictions of a placement. It deletes those whose time to live has ended.
func (d *decisionController) current(ctx context.Context, k key) ([]*v1alpha1.PlacementEviction, error) {
	var current []*v1alpha1.PlacementEviction
	for _, object := range d.evictions.ofPlacement(k) {
		if until := d.expires(k, object); until.IsZero() || d.Clock.Now().Before(until) {
			current = append(current, object)
			continue
		}
		err := d.api.client.Delete(ctx, object.DeepCopy(), precondition.Unchanged(object))
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete PlacementEviction %s/%s: %w", object.Namespace, object.Name, err)
		}
	}
	return current, nil
}

// expires returns the time at which the time to live of an eviction ends, and enqueues its placement for that time.
// Zero: the eviction has no time to live, or is not executed yet.
func (d *decisionController) expires(k key, object *v1alpha1.PlacementEviction) time.Time {
	ttl, c := object.Spec.TTLSecondsAfterExecution, executed(object)
	if ttl == nil || c.Status != metav1.ConditionTrue {
		return time.Time{}
	}
	until := c.LastTransitionTime.Add(time.Duration(*ttl) * time.Second)
	d.evictions.wait(object, until, func() func() { return d.requeueAt(k, until) })
	return until
}

// writeExecuted writes the condition Executed of an eviction if it changed, and an Event if its status or reason
// changed.
func (d *decisionController) writeExecuted(ctx context.Context, object *v1alpha1.PlacementEviction, reason,
	message string) error {
	before := executed(object)
	status := metav1.ConditionFalse
	if reason == v1alpha1.ReasonEvicted || reason == v1alpha1.ReasonNotPlaced {
		status = metav1.ConditionTrue
	}
	next := object.DeepCopy()
	if !meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionExecuted, Status: status, Reason: reason, Message: bounded.Text(message, maxMessage),
		ObservedGeneration: object.Generation, LastTransitionTime: metav1.NewTime(d.Clock.Now()),
	}) {
		return nil
	}
	end := d.evictions.beginWrite(object)
	err := d.api.client.Status().Patch(ctx, next,
		client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		end(nil)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the status of PlacementEviction %s/%s: %w", object.Namespace, object.Name, err)
	}
	end(next)
	d.expires(placementOf(next), next)
	if reason == v1alpha1.ReasonEvicted && before.Status != status {
		d.metrics.evictions.WithLabelValues(byHand).Inc()
	}
	if before.Status != status || before.Reason != reason {
		kind := corev1.EventTypeNormal
		if reason == v1alpha1.ReasonPickFixed {
			kind = corev1.EventTypeWarning
		}
		// +event:object=PlacementEviction
		// +event:reason=the reason of the condition Executed
		// +event:type=Warning if the reason is PickFixed, else Normal
		// +event:message=the message of the condition
		d.recorder.Eventf(next, nil, kind, reason, "Evict", "%s", bounded.Text(message, maxMessage))
	}
	return nil
}

// reportUndecided writes the reason why a placement cannot be decided into its evictions. Executed evictions are not
// changed.
func (d *decisionController) reportUndecided(ctx context.Context, k key, reason, message string) error {
	current, err := d.current(ctx, k)
	if err != nil {
		return err
	}
	for _, object := range current {
		if executed(object).Status == metav1.ConditionTrue {
			continue
		}
		if err := d.writeExecuted(ctx, object, reason, message); err != nil {
			return err
		}
	}
	return nil
}
