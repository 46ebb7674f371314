package heartbeat

import "time"

// elapsed returns the real time since the epoch, for output.
func (m *Monitor) elapsed(now time.Time) time.Duration {
	if m.epoch.IsZero() {
		m.epoch = now
	}
	return now.Sub(m.epoch)
}

// clock returns the time for decisions, which stops while the Monitor is paused.
func (m *Monitor) clock(now time.Time) time.Duration {
	at := m.elapsed(now)
	if m.paused {
		at = m.pausedAt
	}
	return at - m.blind
}

func (m *Monitor) add(name string) *member {
	e := &member{name: name, heard: -1, watch: watchTimes{lost: -1}, index: -1}
	m.members[name] = e
	return e
}

// beat records a heartbeat and reports whether the state of the member has changed. If doubted is true, the heartbeat
// may end an outage, and the caller must call suspect afterwards.
func (m *Monitor) beat(e *member, now time.Time) (entered, doubted bool) {
	at := m.clock(now)
	e.heard, e.watch.anchor = m.elapsed(now), at
	if !e.tracked {
		return false, false
	}
	m.beats++

	before := e.state
	switch e.state {
	case Awaited:
		m.enter(e, Healthy, now)
	case Lost:
		e.watch.steady = at
		m.enter(e, Unsteady, now)
	}
	if e.state == Unsteady && at-e.watch.steady >= m.policy.Hold(int(e.flaps), e.grace) {
		m.enter(e, Healthy, now)
	}

	doubted = before == Awaited // the member counts for the outage guard now
	if e.late() {
		m.setLate(e, false)
		m.queue.set(e, e.due()) // the member can be late again before it would have been lost
		doubted = true
	}
	return e.state != before, doubted
}

// blame counts a loss as a flap if the previous loss was a short time ago. It does not count a loss during an outage,
// which is probably caused by the hub.
func (m *Monitor) blame(e *member, at time.Duration) {
	if e.watch.lost < 0 || at-e.watch.lost > flapWindow*e.grace {
		e.flaps = 0
	} else if !m.inOutage(e) && e.flaps < maxFlaps {
		e.flaps++
	}
	if !m.inOutage(e) {
		e.watch.lost = at
	}
}

func (m *Monitor) enter(e *member, state State, now time.Time) {
	m.tally(e, -1)
	m.count[e.state]--
	m.count[state]++
	e.state, e.since = state, m.elapsed(now)
	m.tally(e, +1)
}

func (m *Monitor) setLate(e *member, late bool) {
	if e.late() != late {
		m.set(e, isLate, late)
	}
}

// markOf converts the agent's renewTime to a comparable number; 0 is the zero time.
func markOf(renewed time.Time) int64 {
	if renewed.IsZero() {
		return 0
	}
	return renewed.UnixMicro()
}
