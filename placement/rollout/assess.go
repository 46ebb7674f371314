package rollout

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

const defaultDeadline = 600 // seconds

// state is how far a target is on its way to the goal.
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

// tally counts the targets of a stage, or of all.
type tally struct {
	count  [states]int
	taken  int // slots, by targets on their way
	going  int // those of them that are on their way to the goal
	busy   int // those of them that are not well
	open   int // to be updated, or on their way at the goal: not done
	blamed int // failed or timed out, by the rollout
}

func (t *tally) add(m *member) {
	t.count[m.state]++
	if m.holds {
		t.taken++
		if m.state != pending {
			t.going++
		}
		if m.state != soaking {
			t.busy++
		}
	}
	if m.state == pending || m.holds {
		t.open++
	}
	if m.blame {
		t.blamed++
	}
}

// assess says of each target how far it is, and counts.
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
		s.slots.taken, s.slots.going = s.taken, s.going
	}
}

// evaluate says how far a target is, whether it holds a slot, and whether it is to be blamed on the rollout.
//
// Only what was told something since the last rollout was over can be: all else was as it is before.
func (r *rollout) evaluate(s *stage, m *member) {
	since := m.Since
	if m.HealthSince.After(since) {
		since = m.HealthSince // or it would have had to soak, or to be well, before it was told
	}
	soaked := since
	if r.memory.Rollback == nil { // what is gone back to has soaked before
		soaked = since.Add(seconds(r.Strategy.MinSuccessSeconds))
	}
	deadline := since.Add(r.deadline())
	late := !r.Now.Before(deadline)
	unwell := m.Health != Succeeded && m.Health != Failed
	moved := m.Revision != "" && !before(m.Since, r.memory.StableSince)
	// Its stage was done with it before its health changed: it is not waited for again.
	finished := before(m.Since, s.finishedAt) && !before(m.HealthSince, s.finishedAt)

	m.hurt = m.Health == Failed || moved && unwell && late
	m.state, m.holds, m.blame = pending, false, false
	switch {
	case m.Revision != r.goal():
		// It was on its way to another revision, and is not well yet: it holds its slot, which is there for it to go on.
		m.holds = moved && unwell && !late
	case m.Health == Failed:
		m.state, m.blame = failed, moved
	case unwell && late:
		m.state, m.blame = timedOut, moved
	case unwell:
		m.state, m.holds = progressing, moved && !finished
	case moved && !finished && r.Now.Before(soaked):
		m.state, m.holds = soaking, true
		r.wake(soaked)
	default:
		m.state = succeeded
	}
	if m.holds && m.state != soaking || m.state == progressing {
		r.wake(deadline)
	}
}

func (r *rollout) deadline() time.Duration {
	if r.Strategy.ProgressDeadlineSeconds == 0 {
		return seconds(defaultDeadline)
	}
	return seconds(r.Strategy.ProgressDeadlineSeconds)
}

// limit is how many targets may be on their way at a time.
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

// tolerated is how many targets may fail where no group is mandatory.
func (r *rollout) tolerated() int {
	return share(r.Strategy.MaxFailures, len(r.members), 0)
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

func before(t time.Time, mark *metav1.Time) bool { return mark != nil && t.Before(mark.Time) }

// stamp is a time as the API stores it: in whole seconds, rounded down. What happens in the same second is then taken
// for later, which is the side to err on.
func stamp(now time.Time) *metav1.Time {
	return new(metav1.NewTime(now.Truncate(time.Second)))
}
