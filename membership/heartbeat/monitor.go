package heartbeat

import (
	"slices"
	"time"
)

// Monitor judges members by the heartbeats that the hub observes. It is pure: it does no I/O, starts
// nothing and reads no clock; whoever calls it says what time it is. [Watcher] is one that runs.
//
// Pass in times of one clock that does not go backwards, as those of time.Now. The methods that return
// names return those of the members whose verdict has changed (State or HeldBack, not merely
// LastHeard), sorted and each once; nil if there are none, as for nearly every heartbeat.
//
// A Monitor must not be used by several goroutines at once.
type Monitor struct {
	policy Policy
	epoch  time.Time // all times are counted from the first that came in

	// The Monitor's watch is the time since the epoch, less blind, all the time for which it was paused.
	blind    time.Duration
	pausedAt time.Duration
	paused   bool

	members map[string]*member // tracked, and others with a Lease
	queue   queue              // those tracked that silence can change; none wakes later than it is due
	count   [states]int
	tracked int
	late    int
	beats   uint64

	affected int // tracked members that are late or not ready
	doubtful int // these, and those that are Awaited
	outage   bool
	doubt    bool
	since    time.Duration // epoch: when the outage began
}

// NewMonitor returns a Monitor that tracks nobody yet.
func NewMonitor(policy Policy) *Monitor {
	return &Monitor{policy: policy.withDefaults(), members: map[string]*member{}}
}

// Track begins to judge a member, or changes its period: 0 means [DefaultPeriod], and others are moved
// into [MinPeriod] to [MaxPeriod].
//
// A member that is new is Awaited for its grace from now on; Healthy at once if it was heard within that
// time. A longer period counts from the last heartbeat on; a shorter one from now on, because the agent
// has yet to hear of it, but does not move the end of the grace back. The name is not returned among the
// changed: ask for its Verdict.
func (m *Monitor) Track(name string, period time.Duration, now time.Time) []string {
	at := m.clock(now)
	e := m.members[name]
	if e == nil {
		e = m.add(name)
	}
	period = bounded(period)
	grace := m.policy.Grace(period)

	if e.tracked {
		e.anchor = max(e.anchor, min(at, e.anchor+e.grace-grace))
		e.period, e.grace = period, grace
		m.queue.set(e, e.due())
		return nil
	}

	e.tracked, e.period, e.grace = true, period, grace
	e.state, e.since = Awaited, m.elapsed(now)
	if e.heard >= 0 && at-e.anchor < grace {
		e.state = Healthy
	} else {
		e.anchor = at
	}
	m.tracked++
	m.count[e.state]++
	m.tally(e, +1)
	m.queue.set(e, e.due())
	return m.suspect(now)
}

// Untrack stops to judge a member and forgets how it fared. Untracking a stranger does nothing.
func (m *Monitor) Untrack(name string, now time.Time) []string {
	e := m.members[name]
	if e == nil || !e.tracked {
		return nil
	}
	m.queue.set(e, never)
	m.tally(e, -1)
	e.tracked = false
	m.tracked--
	m.count[e.state]--
	m.setLate(e, false)
	delete(m.members, name)
	if e.renewed != 0 { // its Lease still tells the next heartbeat from a repetition
		kept := m.add(name)
		kept.renewed, kept.heard, kept.anchor = e.renewed, e.heard, e.anchor
	}
	return m.suspect(now)
}

// Observe takes in that a member's Lease was written: renewed is what the agent wrote as the time, which
// is compared with what it wrote before and nothing else. The same again is no heartbeat, and neither is
// zero, which stands for a Lease that has never been renewed.
//
// It may come before the member is tracked, and is remembered.
func (m *Monitor) Observe(name string, renewed, now time.Time) []string {
	entered, doubted := m.observe(name, renewed, now)
	var changed []string
	if doubted {
		changed = m.suspect(now)
	}
	if entered {
		changed = sorted(append(changed, name))
	}
	return changed
}

// observe is Observe without the suspicion of an outage; its results are those of beat.
func (m *Monitor) observe(name string, renewed, now time.Time) (entered, doubted bool) {
	e := m.members[name]
	if e == nil {
		e = m.add(name)
	}
	mark := markOf(renewed)
	if mark == 0 || mark == e.renewed {
		return false, false
	}
	e.renewed = mark
	return m.beat(e, now)
}

// Report takes in whether a member's agent finds its cluster ready. A member that is not ready counts for an outage
// as a silent one does: in push mode the agents of all members lose them when the hub's network fails. A member that
// is not tracked is ignored.
//
//nolint:revive // Readiness is what the agent reports, and no mode of the method.
func (m *Monitor) Report(name string, ready bool, now time.Time) []string {
	e := m.members[name]
	if e == nil || !e.tracked || ready == (e.affected&isNotReady == 0) {
		return nil
	}
	before := map[*member]bool{e: m.heldBack(e)}
	m.setAffected(e, isNotReady, !ready)
	return m.flipped(m.suspect(now), before)
}

// Gone takes in that a member's Lease was deleted. That is no sign of life, nor of death. What was
// remembered of a member that is not tracked is forgotten.
func (m *Monitor) Gone(name string) {
	switch e := m.members[name]; {
	case e == nil:
	case e.tracked:
		e.renewed = 0
	default:
		delete(m.members, name)
	}
}

// Relist takes in all Leases that there are: by member what the agent wrote as the time. It counts
// those that differ from what was observed before as heartbeats, like Observe. Others, which nothing is
// known of, may be ages old: they are remembered, so that the next change counts. Those that are missing
// are Gone. All Leases count as observed at the same time: an outage ends only after all of them have been taken in.
func (m *Monitor) Relist(leases map[string]time.Time, now time.Time) []string {
	var changed []string
	suspicion := false
	for name, renewed := range leases {
		e := m.members[name]
		switch {
		case e == nil:
			m.add(name).renewed = markOf(renewed)
		case e.renewed == 0:
			e.renewed = markOf(renewed)
		default:
			entered, doubted := m.observe(name, renewed, now)
			if entered {
				changed = append(changed, name)
			}
			suspicion = suspicion || doubted
		}
	}
	if suspicion {
		changed = append(changed, m.suspect(now)...)
	}
	for name := range m.members {
		if _, there := leases[name]; !there {
			m.Gone(name)
		}
	}
	return sorted(changed)
}

// Pause takes in that the hub can no longer observe heartbeats: nobody falls silent until Resume.
func (m *Monitor) Pause(now time.Time) {
	if !m.paused {
		m.paused, m.pausedAt = true, m.elapsed(now)
	}
}

// Resume takes in that the hub can observe heartbeats again. The time since Pause does not count as
// silence. A member whose period is no longer than that may have missed a heartbeat by no fault of its
// own, and be waiting for its next try: it has its whole grace again.
func (m *Monitor) Resume(now time.Time) []string {
	if !m.paused {
		return nil
	}
	gap := m.elapsed(now) - m.pausedAt
	m.blind += gap
	m.paused = false
	at := m.clock(now)
	for _, e := range m.members { // each by itself: the order is of no consequence
		if e.tracked && e.state != Lost && e.period <= gap {
			e.anchor = at
			m.setLate(e, false)
			m.queue.set(e, e.due())
		}
	}
	return m.suspect(now)
}

// Expire lets members fall silent whose time has come. Call it at [Monitor.Next]; calling it earlier does
// nothing, and later only makes the verdicts late.
func (m *Monitor) Expire(now time.Time) []string {
	if m.paused {
		return nil
	}
	var changed []string
	var lost []*member
	var released map[*member]bool // whether they were held back
	at := m.clock(now)
	for len(m.queue) > 0 && m.queue[0].wake <= at {
		e := m.queue[0].member
		switch {
		case e.due() > at: // heard of since
		case e.held > 0 && e.held <= at:
			if released == nil {
				released = map[*member]bool{}
			}
			released[e] = m.heldBack(e)
			e.held = 0
		case !e.late():
			m.setLate(e, true)
			if e.state == Unsteady {
				m.enter(e, Lost, now)
				changed = append(changed, e.name)
			}
		default:
			m.enter(e, Lost, now)
			lost = append(lost, e)
			changed = append(changed, e.name)
		}
		m.queue.set(e, e.due())
	}
	// Whether the hub suspects itself is settled with all that is late, before any loss is held against a member.
	flipped := m.flipped(m.suspect(now), released)
	changed = append(changed, flipped...)
	for _, e := range lost {
		m.blame(e, at)
	}
	return sorted(changed)
}

// Next returns when to call Expire, if there is anything to expire. Heartbeats that have come since it
// was last asked may turn out to have moved it.
func (m *Monitor) Next() (time.Time, bool) {
	if m.paused || len(m.queue) == 0 {
		return time.Time{}, false
	}
	return m.epoch.Add(m.queue[0].wake + m.blind), true
}

// Verdict returns what is known of a member as of the last call to Expire; false if it is not tracked.
func (m *Monitor) Verdict(name string) (Verdict, bool) {
	e := m.members[name]
	if e == nil || !e.tracked {
		return Verdict{}, false
	}
	v := Verdict{State: e.state, Since: m.epoch.Add(e.since), HeldBack: m.heldBack(e), Grace: e.grace}
	if e.held > 0 {
		v.HeldUntil = m.epoch.Add(e.held + m.blind)
	}
	if e.heard >= 0 {
		v.LastHeard = m.epoch.Add(e.heard)
		if e.renewed != 0 {
			v.Skew = time.UnixMicro(e.renewed).Sub(v.LastHeard)
		}
	}
	if e.state == Unsteady {
		v.Hold = m.policy.Hold(int(e.flaps), e.grace)
	}
	return v, true
}

// Outage returns the hub's suspicion of itself; false while it has none.
func (m *Monitor) Outage() (Outage, bool) {
	if !m.outage {
		return Outage{}, false
	}
	return Outage{Since: m.epoch.Add(m.since), Late: m.late, Affected: m.affected, Tracked: m.tracked}, true
}

// Stats returns the present counts.
func (m *Monitor) Stats() Stats {
	return Stats{
		Awaited: m.count[Awaited], Healthy: m.count[Healthy], Lost: m.count[Lost], Unsteady: m.count[Unsteady],
		Late: m.late, Affected: m.affected, Beats: m.beats,
	}
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
