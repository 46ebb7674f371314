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
type placed struct {
	uid        types.UID
	generation int64
	groups     groups
	policy     *scheduler.Policy
	invalid    error
	previous   *scheduler.Result
	decided    int64                      // the generation that was decided last; 0: none yet
	laid       []decision.Slice           // what was decided then, whether it could be written or not
	latest     *v1alpha1.Placement        // as it was when its status was written, until the cache has that too
	unsettled  map[string]bool            // the clusters that it was on when its evictions were told of it last
	delivered  []v1alpha1.ClusterDecision // where it is according to Options.Deliveries, until it is decided
	said       said

	withdrawals withdrawals
	asking      <-chan struct{} // closed when the Decider has come back
	again       func()          // stops the timer of a decision that ends by itself

	request *scheduler.Request // what to ask about events
	keptOff []string           // the clusters that evictions keep it off
	awaits  bool               // it waits for clusters to become ready
	on      []string           // the clusters that it is on, or would return to
}

// placed is what is known of a placement as it is now.
func (d *deciding) placed(k key, placement *v1alpha1.Placement) *placed {
	d.mu.Lock()
	p := d.known[k]
	if p != nil && p.uid != placement.UID { // deleted, and made anew under its name
		p.again()
		d.leave(k, p)
		p = nil
	}
	if p == nil {
		p = &placed{uid: placement.UID, again: func() {}}
		d.known[k] = p
	}
	d.mu.Unlock()
	if p.generation != placement.Generation {
		p.generation, p.previous, p.said = placement.Generation, nil, said{}
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
func (d *deciding) remember(a *attempt, s *step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.come(a.k, a.p, follows(a.placement, s.all))
	// Not the request itself: that one would keep the result before the last in memory.
	request := *a.request
	request.Previous = nil
	a.p.request = &request
	a.p.keptOff, a.p.awaits = s.keptOff, s.awaits
}

// soonest is how soon a decision that ends by itself is made again, in case that a Decider gives a time that is over.
const soonest = 100 * time.Millisecond

// lookAgain has a placement decided anew at a time, if it is one. It returns what stops that.
func (d *deciding) lookAgain(k key, at time.Time) (stop func()) {
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
func (d *deciding) come(k key, p *placed, on []string) {
	if slices.Equal(p.on, on) {
		return
	}
	d.leave(k, p)
	p.on = on
	for _, cluster := range on {
		if d.on[cluster] == nil {
			d.on[cluster] = map[key]bool{}
		}
		d.on[cluster][k] = true
	}
}

// leave takes a placement off the clusters that it was on.
func (d *deciding) leave(k key, p *placed) {
	for _, cluster := range p.on {
		if delete(d.on[cluster], k); len(d.on[cluster]) == 0 {
			delete(d.on, cluster)
		}
	}
	p.on = nil
}

func (d *deciding) forget(k key) {
	d.without.keep(k, "")
	d.tenants.keep(k, "")
	d.census.place(k, nil)
	d.mu.Lock()
	var left []string
	if p := d.known[k]; p != nil {
		left = p.on
		p.again()
		d.leave(k, p)
		delete(d.known, k)
	}
	d.mu.Unlock()
	d.presence.mu.Lock()
	d.presence.dropAnswers(func(q asked) bool { return q.placement == k })
	d.presence.mu.Unlock()
	d.dropAbsent(left)
}
