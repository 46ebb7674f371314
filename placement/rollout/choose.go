package rollout

import "github.com/muster-sdk/muster/placement/v1alpha1"

// choose adds each target that is not at the goal to the plan: to be updated, or to be held with a reason.
func (r *rollout) choose() {
	r.plan.Revision = r.goal()
	if r.count[pending] == 0 {
		return
	}
	r.plan.Hold = make([]Hold, 0, r.count[pending])
	c := &chooser{plan: &r.plan, all: slots{r.limit(), r.taken, r.updating}, stable: r.hasForNewcomers()}
	if r.memory.Rollback == nil {
		for i := range r.stages {
			c.choose(&r.stages[i], r.reason(i), anyMember)
		}
		return
	}
	// During a rollback there is no order and no gate, and failed targets go first.
	for _, eligible := range []func(*member) bool{hurt, well} {
		for i := range r.stages {
			c.choose(&r.stages[i], r.blockedAll(), eligible)
		}
	}
}

// chooser fills a plan while there are slots.
type chooser struct {
	plan   *Plan
	all    slots
	stable bool // held targets without a revision get the stable revision
}

// slots is the use of the slots of a stage, or of all stages.
type slots struct {
	limit    int
	taken    int // slots that targets hold
	updating int // targets that are being updated to the goal
}

// free reports whether a target may be updated. A target that holds a slot needs no other one. The number of targets
// that are being updated to the goal never exceeds the limit, even if more targets hold slots because they became
// unhealthy for another reason, or because the limit was higher before.
func (s *slots) free(m *member) bool {
	if m.hasSlot {
		return s.updating < s.limit
	}
	return s.taken < s.limit
}

func (s *slots) occupy(m *member) {
	s.updating++
	if !m.hasSlot {
		s.taken++
	}
}

// choose goes through the targets of a stage that are not at the goal. If reason is empty, they are updated while there
// are slots.
func (c *chooser) choose(s *stage, reason HoldReason, eligible func(*member) bool) {
	for i := range s.members {
		m := &s.members[i]
		if m.state != pending || !eligible(m) {
			continue
		}
		switch {
		case reason != "":
			c.hold(m, reason)
		case c.all.free(m) && s.slots.free(m):
			c.all.occupy(m)
			s.slots.occupy(m)
			c.plan.Update = append(c.plan.Update, m.Name)
		default:
			c.hold(m, HoldConcurrency)
		}
	}
}

func (c *chooser) hold(m *member, reason HoldReason) {
	c.plan.Hold = append(c.plan.Hold, Hold{m.Name, reason})
	if c.stable && m.Revision == "" {
		c.plan.Stable = append(c.plan.Stable, m.Name)
	}
}

func anyMember(*member) bool { return true }
func hurt(m *member) bool    { return m.hurt }
func well(m *member) bool    { return !m.hurt }

// reason returns the reason to hold the targets of a stage. Empty: only the number of slots limits them.
func (r *rollout) reason(i int) HoldReason {
	switch reason := r.blockedAll(); {
	case reason != "":
		return reason
	case i != r.current:
		return HoldOrder
	}
	switch r.stages[i].waiting {
	case v1alpha1.PhaseWaitingForApproval:
		return HoldApproval
	case v1alpha1.PhaseWaitingForTime:
		return HoldTime
	}
	return ""
}

// blockedAll returns the reason to hold all targets. Empty: none.
func (r *rollout) blockedAll() HoldReason {
	switch {
	case r.Strategy.State == v1alpha1.RolloutStop:
		return HoldStopped
	case r.Strategy.State == v1alpha1.RolloutPause:
		return HoldPaused
	case r.memory.Rollback == nil && r.halted:
		return HoldFailures
	case r.blocked != "":
		return HoldOrder
	}
	return ""
}

// hasForNewcomers reports whether held targets without a revision get the stable revision. If the stable revision is
// the goal itself, they get it only after the rollout has ended or during a rollback, while the state is Pause or Stop.
func (r *rollout) hasForNewcomers() bool {
	if r.memory.StableRevision == r.goal() {
		return r.ended() && !r.running()
	}
	return r.memory.StableRevision != ""
}
