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

// placed is what is remembered of a placement. But for the last four fields, which events ask for, it belongs to who has it in flight.
type placementState struct {
	uid        types.UID
	generation int64
	groups     groups
	policy     *scheduler.Policy
	invalid    error
	previous   *scheduler.Result
	decided    int64                      // the generation that was decided last; 0: none yet
	slices     []decision.Slice           // what was decided then, whether it could be written or not
	latest     *v1alpha1.Placement        // as it was when its status was written, until the cache has that too
	unreported map[string]bool            // the clusters that it was on when its evictions were told of it last
	delivered  []v1alpha1.ClusterDecision // where it is according to Options.Deliveries, until it is decided
	message    cachedMessage

	withdrawals withdrawals
	asking      <-chan struct{} // closed when the Decider has come back
	again       func()          // stops the timer of a decision that ends by itself

	request *scheduler.Request // what to ask about events
	keptOff []string           // the clusters that evictions keep it off
	awaits  bool               // it waits for clusters to become ready
	on      []string           // the clusters that it is on, or would return to
}

// placed is what is known of a placement as it is now.
func (d *decisionController) stateOf(k key, placement *v1alpha1.Placement) *placementState {
	d.mu.Lock()
	p := d.states[k]
	if p != nil && p.uid != placement.UID { // deleted, and made anew under its name
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
			p.groups, p.invalid = newGroups(placement.Spec.DecisionGroups)
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

// remember takes down a decision, for events that come after it.
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

// soonest is how soon a decision that ends by itself is made again, in case that a Decider gives a time that is over.
const soonest = 100 * time.Millisecond

// lookAgain has a placement decided anew at a time, if it is one. It returns what stops that.
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

// come puts a placement on clusters, and takes it off those that it was on.
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

// leave takes a placement off the clusters that it was on.
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
