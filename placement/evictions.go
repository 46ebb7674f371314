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

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/placement/internal/version"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// evictionCache contains the PlacementEvictions by placement. Of two versions of an object it keeps the newer one, from
// the watch or from a write. The objects are shared with the informer's cache and must not be modified.
type evictionCache struct {
	mu      sync.Mutex
	records map[types.NamespacedName]*cachedEviction
	of      map[key]map[types.NamespacedName]*cachedEviction
}

// cachedEviction is one eviction.
type cachedEviction struct {
	object *v1alpha1.PlacementEviction
	until  time.Time // the time of the timer, if there is one
	stop   func()    // stops the timer
}

func newEvictionCache() *evictionCache {
	return &evictionCache{records: map[types.NamespacedName]*cachedEviction{},
		of: map[key]map[types.NamespacedName]*cachedEviction{}}
}

// placementOf returns the placement of an eviction. One of a ClusterPlacement outside of
// [v1alpha1.ClusterScopeNamespace] names a placement that cannot exist.
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
	name := client.ObjectKeyFromObject(object)
	r := o.records[name]
	if r == nil {
		r = &cachedEviction{stop: func() {}}
		o.records[name] = r
	}
	before := r.object
	if before != nil && before.UID == object.UID {
		if version.Newer(object, before) {
			r.object = object
		}
		if (before.DeletionTimestamp == nil) == (object.DeletionTimestamp == nil) { // the spec does not change
			return nil
		}
		return []key{placementOf(object)}
	}
	affected := []key{placementOf(object)}
	if before != nil {
		affected = append(affected, placementOf(before))
		o.take(name)
		r = &cachedEviction{stop: func() {}}
		o.records[name] = r
	}
	r.object = object
	k := placementOf(object)
	if o.of[k] == nil {
		o.of[k] = map[types.NamespacedName]*cachedEviction{}
	}
	o.of[k][name] = r
	return affected
}

// observeDeletion records that an eviction is deleted, and returns its placement.
func (o *evictionCache) observeDeletion(object *v1alpha1.PlacementEviction) []key {
	o.mu.Lock()
	defer o.mu.Unlock()
	name := client.ObjectKeyFromObject(object)
	if r := o.records[name]; r == nil || r.object.UID != object.UID {
		return nil
	}
	o.take(name)
	return []key{placementOf(object)}
}

func (o *evictionCache) take(name types.NamespacedName) {
	r := o.records[name]
	r.stop()
	delete(o.records, name)
	k := placementOf(r.object)
	if delete(o.of[k], name); len(o.of[k]) == 0 {
		delete(o.of, k)
	}
}

// written records an eviction after its status was written.
func (o *evictionCache) written(object *v1alpha1.PlacementEviction) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.records[client.ObjectKeyFromObject(object)]; r != nil && r.object.UID == object.UID && version.Newer(object,
		r.object) {
		r.object = object
	}
}

// wait starts a timer with begin, unless one for this time exists.
func (o *evictionCache) wait(object *v1alpha1.PlacementEviction, until time.Time, begin func() (stop func())) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.records[client.ObjectKeyFromObject(object)]; r != nil && r.object.UID == object.UID &&
		!r.until.Equal(until) {
		r.stop()
		r.until, r.stop = until, begin()
	}
}

// ofPlacement returns the evictions of a placement, the oldest first, without those that are being deleted.
func (o *evictionCache) ofPlacement(k key) []*v1alpha1.PlacementEviction {
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []*v1alpha1.PlacementEviction
	for _, r := range o.of[k] {
		if r.object.DeletionTimestamp == nil {
			found = append(found, r.object)
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.PlacementEviction) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// waiting counts the evictions that are not executed by reason.
func (o *evictionCache) waiting() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	counts := map[string]int{}
	for _, r := range o.records {
		if c := executed(r.object); c.Status == metav1.ConditionFalse {
			counts[c.Reason]++
		}
	}
	return counts
}

// executed returns the condition Executed of an eviction; empty: it is not set yet.
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
		err := d.client.Delete(ctx, object.DeepCopy(), precondition.Unchanged(object))
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete PlacementEviction %s/%s: %w", object.Namespace, object.Name, err)
		}
	}
	return current, nil
}

// expires returns when the time to live of an eviction ends, and has its placement decided again then. Zero: unknown.
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
	err := d.client.Status().Patch(ctx, next, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the status of PlacementEviction %s/%s: %w", object.Namespace, object.Name, err)
	}
	d.evictions.written(next)
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

// reportUndecided writes into the evictions of a placement that cannot be decided what they wait for. Evictions that
// are executed stay so.
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
