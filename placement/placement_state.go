package placement

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// placementState is the state of a placement between decisions. One worker at a time uses it. The last four fields are
// protected by the lock of the controller, because events read them.
type placementState struct {
	uid        types.UID
	generation int64
	groups     groups
	policy     *scheduler.Policy
	invalid    error
	previous   *scheduler.Result
	decided    int64                      // the generation of the last decision; 0: none by this process
	slices     []decision.Slice           // the last decision, also if it could not be written
	latest     *v1alpha1.Placement        // after its status was written, until the cache contains it
	unreported map[string]bool            // the clusters at the time of the last report to its evictions
	delivered  []v1alpha1.ClusterDecision // the result of Options.Deliveries, until it is decided
	message    cachedMessage

	withdrawals withdrawals
	asking      <-chan struct{} // closed when the Decider has returned
	again       func()          // stops the timer of a decision that expires

	request *scheduler.Request // for the hints of the queue
	keptOff []string           // the evicted clusters
	awaits  bool               // it waits for clusters to become ready
	on      []string           // its clusters, and those to which it would return
}

// stateOf returns the state of a placement, with the parsed policy of its current generation.
func (d *decisionController) stateOf(k key, placement *v1alpha1.Placement) *placementState {
	d.mu.Lock()
	p := d.states[k]
	if p != nil && p.uid != placement.UID { // deleted and created again
		p.again()
		d.removeClusters(k, p)
		p = nil
	}
	if p == nil {
		p = &placementState{uid: placement.UID, again: func() {}}
		d.states[k] = p
	}
	d.mu.Unlock()
	if p.generation != placement.Generation {
		p.generation, p.previous, p.message = placement.Generation, nil, cachedMessage{}
		p.policy, p.invalid = scheduler.NewPolicy(&placement.Spec.Policy)
		if p.invalid == nil {
			p.groups, p.invalid = newGroups(&placement.Spec)
		}
		if f := placement.Spec.Failover; p.invalid == nil && f != nil {
			p.invalid = f.Validate(field.NewPath("spec", "failover")).ToAggregate()
		}
		if b := placement.Spec.DisruptionBudget; p.invalid == nil && b != nil {
			p.invalid = b.Validate(field.NewPath("spec", "disruptionBudget")).ToAggregate()
		}
	}
	return p
}

// recordRequest stores the request of a decision, for events that follow.
func (d *decisionController) recordRequest(a *attempt, s *step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setClusters(a.k, a.p, follows(a.placement, s.all))
	// Not the request itself: that one would keep the result before the last in memory.
	request := *a.request
	request.Previous = nil
	a.p.request = &request
	a.p.keptOff, a.p.awaits = s.keptOff, s.awaits
}

// soonest is the minimum time before a requeue, in case a Decider returns a time in the past.
const soonest = 100 * time.Millisecond

// requeueAt decides a placement again at a time, unless the time is zero. It returns a function that stops the timer.
func (d *decisionController) requeueAt(k key, at time.Time) (stop func()) {
	if at.IsZero() {
		return func() {}
	}
	timer, stopped := d.Clock.NewTimer(max(at.Sub(d.Clock.Now()), soonest)), make(chan struct{})
	d.timers.Go(func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			d.queue.Add(k, 0)
		case <-stopped:
		case <-d.stopped:
		}
	})
	return func() { close(stopped) }
}

// setClusters replaces the clusters whose changes have a placement decided again.
func (d *decisionController) setClusters(k key, p *placementState, on []string) {
	if slices.Equal(p.on, on) {
		return
	}
	d.removeClusters(k, p)
	p.on = on
	for _, cluster := range on {
		if d.on[cluster] == nil {
			d.on[cluster] = map[key]bool{}
		}
		d.on[cluster][k] = true
	}
}

// removeClusters removes the clusters whose changes have a placement decided again.
func (d *decisionController) removeClusters(k key, p *placementState) {
	for _, cluster := range p.on {
		if delete(d.on[cluster], k); len(d.on[cluster]) == 0 {
			delete(d.on, cluster)
		}
	}
	p.on = nil
}

func (d *decisionController) drop(k key) {
	d.withoutEvicted.keep(k, "")
	d.withoutDenied.keep(k, "")
	d.fleet.place(k, nil)
	d.mu.Lock()
	var left []string
	if p := d.states[k]; p != nil {
		left = p.on
		p.again()
		d.removeClusters(k, p)
		delete(d.states, k)
	}
	d.mu.Unlock()
	d.presence.mu.Lock()
	d.presence.dropAnswers(func(q asked) bool { return q.placement == k })
	d.presence.mu.Unlock()
	d.dropAbsent(left)
}
