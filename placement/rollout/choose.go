package rollout

import "github.com/muster-sdk/muster/placement/v1alpha1"

// choose says of each target that is not at the goal whether it is to be updated now, or why not.
func (r *rollout) choose() {
	r.plan.Revision = r.goal()
	if r.count[pending] == 0 {
		return
	}
	r.plan.Hold = make([]Hold, 0, r.count[pending])
	c := &chooser{plan: &r.plan, all: slots{r.limit(), r.taken, r.going}, stable: r.hasForNewcomers()}
	if r.memory.Rollback == nil {
		for i := range r.stages {
			c.choose(&r.stages[i], r.reason(i), anyMember)
		}
		return
	}
	// On the way back no order is kept and no gate asked, and what hurts goes first.
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
	stable bool // there is something for those that are held and have nothing
}

// slots for targets that are on their way.
type slots struct {
	limit int
	taken int // by all of them
	going int // by those that are on their way to the goal
}

// free reports whether a target may go. One that has a slot needs no other, but no more than the limit ever go to the
// goal, also where more than that have slots because they fell ill by themselves, or because the limit was more.
func (s *slots) free(m *member) bool {
	if m.holds {
		return s.going < s.limit
	}
	return s.taken < s.limit
}

func (s *slots) take(m *member) {
	s.going++
	if !m.holds {
		s.taken++
	}
}

// choose goes through the targets of a stage that are not at the goal. An empty reason: they may be updated while there
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
			c.all.take(m)
			s.slots.take(m)
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

// reason to hold the targets of a stage; empty: there is none but that slots may be wanting.
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

// blockedAll is the reason to hold all targets, if there is one.
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

// hasForNewcomers reports whether there is a revision for targets that are held and have nothing. One that is on its
// way itself is not, but when all are there and nothing but a person holds it.
func (r *rollout) hasForNewcomers() bool {
	if r.memory.StableRevision == r.goal() {
		return r.ended() && !r.running()
	}
	return r.memory.StableRevision != ""
}
