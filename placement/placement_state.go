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

// placementState is the state of a placement that is kept between decisions. Only one worker at a time uses it. Events
// use eventState.
type placementState struct {
	uid        types.UID
	spec       parsedSpec
	last       lastDecision
	latest     *v1alpha1.Placement        // after its status was written, until the cache contains it
	unreported map[string]bool            // the clusters at the time of the last report to the placement's evictions
	delivered  []v1alpha1.ClusterDecision // the result of Options.Deliveries, until the placement is decided
	message    cachedMessage

	withdrawals withdrawals
	deciderCall <-chan struct{} // closed when the Decider has returned
	again       func()          // stops the timer of a decision that expires

	events eventState
}

// parsedSpec is the spec of a placement.
type parsedSpec struct {
	generation int64
	groups     groups
	policy     *scheduler.Policy
	invalid    error
}

// lastDecision is the last decision of a placement.
type lastDecision struct {
	result     *scheduler.Result
	generation int64            // zero: this process has not decided the placement
	slices     []decision.Slice // also if writing them failed
}

// eventState contains the data that determines whether an event affects a placement. The lock of the controller
// protects it.
type eventState struct {
	request  *scheduler.Request // for the hints of the queue
	excluded []string           // the evicted clusters
	awaits   bool               // the placement waits for clusters to become ready
	on       []string           // the current clusters, and those to which the placement would return
}

// stateOf returns the state of a placement, with the parsed policy of its current generation.
func (d *decisionController) stateOf(k key, placement *v1alpha1.Placement) *placementState {
	d.placements.mu.Lock()
	p := d.placements.states[k]
	if p != nil && p.uid != placement.UID { // deleted and created again
		p.again()
		d.removeClusters(k, p)
		p = nil
	}
	if p == nil {
		p = &placementState{uid: placement.UID, again: func() {}}
		d.placements.states[k] = p
	}
	d.placements.mu.Unlock()
	if p.spec.generation != placement.Generation {
		p.spec.generation, p.last.result, p.message = placement.Generation, nil, cachedMessage{}
		p.spec.policy, p.spec.invalid = scheduler.NewPolicy(&placement.Spec.Policy)
		if p.spec.invalid == nil {
			p.spec.groups, p.spec.invalid = newGroups(&placement.Spec)
		}
		if f := placement.Spec.Failover; p.spec.invalid == nil && f != nil {
			p.spec.invalid = f.Validate(field.NewPath("spec", "failover")).ToAggregate()
		}
		if b := placement.Spec.DisruptionBudget; p.spec.invalid == nil && b != nil {
			p.spec.invalid = b.Validate(field.NewPath("spec", "disruptionBudget")).ToAggregate()
		}
	}
	return p
}

// recordRequest stores the request of a decision, for events that follow.
func (d *decisionController) recordRequest(a *attempt, s *step) {
	d.placements.mu.Lock()
	defer d.placements.mu.Unlock()
	d.setClusters(a.k, a.p, follows(a.placement, s.all))
	// A copy without Previous: the request itself would keep the result before the last one in memory.
	request := *a.request
	request.Previous = nil
	a.p.events.request = &request
	a.p.events.excluded, a.p.events.awaits = s.excluded, s.awaits
}

// soonest is the minimum time before a requeue, in case a Decider returns a time in the past.
const soonest = 100 * time.Millisecond

// requeueAt enqueues a placement at a time, unless the time is zero. It returns a function that stops the timer.
func (d *decisionController) requeueAt(k key, at time.Time) (stop func()) {
	if at.IsZero() {
		return func() {}
	}
	timer, stopped := d.Clock.NewTimer(max(at.Sub(d.Clock.Now()), soonest)), make(chan struct{})
	d.running.timers.Go(func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			d.queue.Add(k, 0)
		case <-stopped:
		case <-d.running.stopped:
		}
	})
	return func() { close(stopped) }
}

// setClusters replaces the clusters whose changes enqueue a placement. The caller holds the lock.
func (d *decisionController) setClusters(k key, p *placementState, on []string) {
	if slices.Equal(p.events.on, on) {
		return
	}
	d.removeClusters(k, p)
	p.events.on = on
	for _, cluster := range on {
		if d.placements.on[cluster] == nil {
			d.placements.on[cluster] = map[key]bool{}
		}
		d.placements.on[cluster][k] = true
	}
}

// removeClusters removes the clusters whose changes enqueue a placement. The caller holds the lock.
func (d *decisionController) removeClusters(k key, p *placementState) {
	for _, cluster := range p.events.on {
		if delete(d.placements.on[cluster], k); len(d.placements.on[cluster]) == 0 {
			delete(d.placements.on, cluster)
		}
	}
	p.events.on = nil
}

func (d *decisionController) drop(k key) {
	d.fleet.withoutEvicted.keep(k, "")
	d.fleet.withoutDenied.keep(k, "")
	d.fleet.counted.place(k, nil)
	d.placements.mu.Lock()
	var left []string
	if p := d.placements.states[k]; p != nil {
		left = p.events.on
		p.again()
		d.removeClusters(k, p)
		delete(d.placements.states, k)
	}
	d.placements.mu.Unlock()
	d.presence.mu.Lock()
	d.presence.dropAnswers(func(q removalLookup) bool { return q.placement == k })
	d.presence.mu.Unlock()
	d.dropAbsent(left)
}
