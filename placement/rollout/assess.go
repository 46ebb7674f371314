package rollout

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

const defaultDeadline = 600 // seconds

// state is the progress of a target towards the goal.
type state int

const (
	pending state = iota
	progressing
	soaking
	succeeded
	failed
	timedOut
	states
)

// tally contains the numbers of targets of a stage, or of all stages.
type tally struct {
	count    [states]int
	taken    int // slots that targets hold
	updating int // targets with a slot that are being updated to the goal
	busy     int // targets with a slot that are not soaking
	open     int // targets that are pending or hold a slot, so that the stage is not done
	failures int // targets that failed or timed out because of the rollout
}

func (t *tally) add(m *member) {
	t.count[m.state]++
	if m.hasSlot {
		t.taken++
		if m.state != pending {
			t.updating++
		}
		if m.state != soaking {
			t.busy++
		}
	}
	if m.state == pending || m.hasSlot {
		t.open++
	}
	if m.countsAsFailure {
		t.failures++
	}
}

// assess determines the state of each target, and counts the targets.
func (r *rollout) assess() {
	r.tally, r.next = tally{}, time.Time{}
	for i := range r.stages {
		s := &r.stages[i]
		s.tally = tally{}
		for j := range s.members {
			m := &s.members[j]
			r.evaluate(s, m)
			s.add(m)
			r.add(m)
		}
		s.slots.taken, s.slots.updating = s.taken, s.updating
	}
}

// evaluate determines the state of a target, whether it holds a slot, and whether its failure is attributed to the
// rollout.
//
// A failure is attributed to the rollout only if a revision was assigned to the target after the last rollout was over.
// All other targets are in the state that they were in before.
func (r *rollout) evaluate(s *stage, m *member) {
	since := m.Since
	if m.HealthSince.After(since) {
		since = m.HealthSince // otherwise the times would begin before the assignment
	}
	soaked := since
	if r.memory.Rollback == nil { // the stable revision has soaked before
		soaked = since.Add(seconds(r.Strategy.MinSuccessSeconds))
	}
	deadline := since.Add(r.deadline())
	late := !r.Now.Before(deadline)
	unwell := m.Health != Succeeded && m.Health != Failed
	moved := m.Revision != "" && !before(m.Since, r.memory.StableSince)
	// Its stage was done before its health changed: the stage does not wait for it again.
	finished := before(m.Since, s.finishedAt) && !before(m.HealthSince, s.finishedAt)

	m.hurt = m.Health == Failed || moved && unwell && late
	m.state, m.hasSlot, m.countsAsFailure = pending, false, false
	switch {
	case m.Revision != r.goal():
		// The target is still being updated to another revision. It holds a slot, and can be updated to the goal within it.
		m.hasSlot = moved && unwell && !late
	case m.Health == Failed:
		m.state, m.countsAsFailure = failed, moved
	case unwell && late:
		m.state, m.countsAsFailure = timedOut, moved
	case unwell:
		m.state, m.hasSlot = progressing, moved && !finished
	case moved && !finished && r.Now.Before(soaked):
		m.state, m.hasSlot = soaking, true
		r.evaluateAt(soaked)
	default:
		m.state = succeeded
	}
	if m.hasSlot && m.state != soaking || m.state == progressing {
		r.evaluateAt(deadline)
	}
}

func (r *rollout) deadline() time.Duration {
	if r.Strategy.ProgressDeadlineSeconds == 0 {
		return seconds(defaultDeadline)
	}
	return seconds(r.Strategy.ProgressDeadlineSeconds)
}

// limit returns the maximum number of targets that may be updated at a time.
func (r *rollout) limit() int {
	all := len(r.members)
	switch {
	case r.Strategy.MaxConcurrency != nil:
		return max(1, share(r.Strategy.MaxConcurrency, all, all))
	case r.Strategy.Type == v1alpha1.RolloutProgressive:
		return max(1, all/4)
	}
	return all
}

// tolerated returns the maximum number of targets that may fail outside of mandatory groups.
func (r *rollout) tolerated() int {
	return share(r.Strategy.MaxFailures, len(r.members), 0)
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

func before(t time.Time, mark *metav1.Time) bool { return mark != nil && t.Before(mark.Time) }

// stamp returns a time as the API stores it: in whole seconds, rounded down. An event in the same second is then
// treated as a later one, which is the safe direction.
func stamp(now time.Time) *metav1.Time {
	return new(metav1.NewTime(now.Truncate(time.Second)))
}
