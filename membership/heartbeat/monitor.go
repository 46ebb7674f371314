package heartbeat

import (
	"cmp"
	"slices"
	"time"
)

// Monitor evaluates the state of members by the heartbeats that the hub observes. It performs no I/O, starts no
// goroutine and reads no clock; the caller passes the time. [Watcher] runs a Monitor.
//
// Pass times of one clock that does not go backwards, such as time.Now. Methods that return names return the members
// whose State or Suspended has changed, sorted and without duplicates. A new LastHeard is not a change. The result is
// nil if there are none, as for nearly every heartbeat.
//
// A Monitor must not be used concurrently.
type Monitor struct {
	policy Policy
	epoch  time.Time // the first time that was passed; all times are relative to it

	// The time for decisions is the time since the epoch minus blind, which is the total time of all pauses.
	blind    time.Duration
	pausedAt time.Duration
	paused   bool

	members map[string]*member // tracked members, and others with a Lease
	queue   queue              // tracked members that change with time; none has a wake later than its due time
	count   [states]int
	beats   uint64

	fleet guard // of all tracked members
	push  guard // of those to which the hub connects
}

// NewMonitor returns a Monitor without tracked members.
func NewMonitor(policy Policy) *Monitor {
	return &Monitor{policy: policy.withDefaults(), members: map[string]*member{}}
}

// Track starts to evaluate a member, or changes its period: 0 means [DefaultPeriod], and other values are limited to
// [MinPeriod] to [MaxPeriod].
//
// A new member is Awaited for its grace period from now on, or Healthy if a heartbeat was observed within that time. A
// longer period applies from the last heartbeat on. A shorter one applies from now on, because the agent has not
// received it yet, but it does not extend the current grace period. The result does not contain the name itself: call
// Health for this member.
func (m *Monitor) Track(name string, period time.Duration, now time.Time) []string {
	at := m.clock(now)
	e := m.members[name]
	if e == nil {
		e = m.add(name)
	}
	period = bounded(period)
	grace := m.policy.Grace(period)

	if e.tracked {
		e.watch.anchor = max(e.watch.anchor, min(at, e.watch.anchor+e.grace-grace))
		e.period, e.grace = period, grace
		m.queue.set(e, e.due())
		return nil
	}

	e.tracked, e.period, e.grace = true, period, grace
	e.state, e.since = Awaited, m.elapsed(now)
	if e.heard >= 0 && at-e.watch.anchor < grace {
		e.state = Healthy
	} else {
		e.watch.anchor = at
	}
	m.count[e.state]++
	m.tally(e, +1)
	m.queue.set(e, e.due())
	return m.suspect(now)
}

// Untrack stops the evaluation of a member and drops its state. It does nothing for an unknown member.
func (m *Monitor) Untrack(name string, now time.Time) []string {
	e := m.members[name]
	if e == nil || !e.tracked {
		return nil
	}
	m.queue.set(e, never)
	m.tally(e, -1)
	e.tracked = false
	m.count[e.state]--
	delete(m.members, name)
	if e.renewed != 0 { // keep the last renewTime, to distinguish the next heartbeat from a repetition
		kept := m.add(name)
		kept.renewed, kept.heard, kept.watch.anchor = e.renewed, e.heard, e.watch.anchor
	}
	return m.suspect(now)
}

// Observe records a write of a member's Lease. Renewed is the agent's renewTime. It is only compared with the previous
// value: an equal value is not a heartbeat, and neither is zero, which means that the Lease was never renewed.
//
// Observe may be called before Track. The heartbeat is then stored for Track.
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

// observe is Observe without the outage guard. Its results are those of beat.
func (m *Monitor) observe(name string, renewed, now time.Time) (entered, doubted bool) {
	e := m.members[name]
	if e == nil {
		e = m.add(name)
	}
	mark := markOf(renewed)
	if mark == 0 && e.renewed == 0 {
		e.renewed = unrenewed
	}
	if mark == 0 || mark == e.renewed {
		return false, false
	}
	e.renewed = mark
	return m.beat(e, now)
}

// Report records whether a member's agent reports that its cluster is ready. For the outage guard a member that is not
// ready counts like a late one: in push mode the agents of all members lose the connection to their clusters if the
// hub's network fails. A member that is not tracked is ignored.
//
//nolint:revive // Readiness is what the agent reports, and no mode of the method.
func (m *Monitor) Report(name string, ready bool, now time.Time) []string {
	e := m.members[name]
	if e == nil || !e.tracked || ready == (e.flags&isNotReady == 0) {
		return nil
	}
	before := map[*member]bool{e: m.isWithheld(e)}
	m.set(e, isNotReady, !ready)
	return m.flipped(m.suspect(now), before)
}

// SetPush records whether the hub connects to a member (joinMode Push), whose agent then runs on the hub. These
// members are also evaluated for an outage as a separate group, because the hub may lose its network path to all of
// them while it receives the heartbeats of others. A member that is not tracked is ignored.
//
//nolint:revive // The value is what the member has.
func (m *Monitor) SetPush(name string, push bool, now time.Time) []string {
	e := m.members[name]
	if e == nil || !e.tracked || push == (e.flags&isPush != 0) {
		return nil
	}
	before := map[*member]bool{e: m.isWithheld(e)}
	m.set(e, isPush, push)
	return m.flipped(m.suspect(now), before)
}

// Gone records that a member's Lease was deleted. A deletion is neither a heartbeat nor a loss. The state of a member
// that is not tracked is dropped.
func (m *Monitor) Gone(name string) {
	switch e := m.members[name]; {
	case e == nil:
	case e.tracked:
		e.renewed = 0
	default:
		delete(m.members, name)
	}
}

// Missing reports whether a tracked member has no Lease, according to Observe, Gone and Relist.
func (m *Monitor) Missing(name string) bool {
	e := m.members[name]
	return e != nil && e.tracked && e.renewed == 0
}

// Relist records all existing Leases: the renewTime by member. A time that differs from the last observed one is a
// heartbeat, as in Observe. The first time of a member may be old: it is stored, and only its next change is a
// heartbeat. Missing Leases are Gone. All Leases are observed at the same time: an outage ends only after all of them
// were recorded.
func (m *Monitor) Relist(leases map[string]time.Time, now time.Time) []string {
	var changed []string
	suspicion := false
	for name, renewed := range leases {
		e := m.members[name]
		switch {
		case e == nil:
			m.add(name).renewed = cmp.Or(markOf(renewed), unrenewed)
		case e.renewed <= 0:
			e.renewed = cmp.Or(markOf(renewed), unrenewed)
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

// Pause records that the hub can no longer observe heartbeats: no member is late or lost until Resume.
func (m *Monitor) Pause(now time.Time) {
	if !m.paused {
		m.paused, m.pausedAt = true, m.elapsed(now)
	}
}

// Resume records that the hub can observe heartbeats again. The time since Pause does not count as missing heartbeats.
// A member whose period is not longer than the pause may have missed a heartbeat because of the pause, and may wait
// for its next attempt: it gets a full grace period.
func (m *Monitor) Resume(now time.Time) []string {
	if !m.paused {
		return nil
	}
	gap := m.elapsed(now) - m.pausedAt
	m.blind += gap
	m.paused = false
	at := m.clock(now)
	for _, e := range m.members { // the order does not matter
		if e.tracked && e.state != Lost && e.period <= gap {
			e.watch.anchor = at
			m.setLate(e, false)
			m.queue.set(e, e.due())
		}
	}
	return m.suspect(now)
}

// Expire marks members as late or lost at their deadlines. Call it at [Monitor.Next]; an earlier call does nothing,
// and a later one only delays the changes.
func (m *Monitor) Expire(now time.Time) []string {
	if m.paused {
		return nil
	}
	var changed []string
	var lost []*member
	var released map[*member]bool // whether they were withheld before
	at := m.clock(now)
	for len(m.queue) > 0 && m.queue[0].wake <= at {
		e := m.queue[0].member
		switch {
		case e.due() > at: // there was a heartbeat in the meantime
		case e.watch.withheldUntil > 0 && e.watch.withheldUntil <= at:
			if released == nil {
				released = map[*member]bool{}
			}
			released[e] = m.isWithheld(e)
			e.watch.withheldUntil = 0
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
	// The outage guard is updated with all late members before a loss counts as a flap of a member.
	flipped := m.flipped(m.suspect(now), released)
	changed = append(changed, flipped...)
	for _, e := range lost {
		m.blame(e, at)
	}
	return sorted(changed)
}

// Next returns the time of the next call of Expire; false if no member can expire. Heartbeats since the last call may
// change the time.
func (m *Monitor) Next() (time.Time, bool) {
	if m.paused || len(m.queue) == 0 {
		return time.Time{}, false
	}
	return m.epoch.Add(m.queue[0].wake + m.blind), true
}

// Health returns the state of a member as of the last call to Expire; false if it is not tracked.
func (m *Monitor) Health(name string) (Health, bool) {
	e := m.members[name]
	if e == nil || !e.tracked {
		return Health{}, false
	}
	v := Health{State: e.state, Since: m.epoch.Add(e.since), Suspended: m.isWithheld(e), Grace: e.grace}
	if e.watch.withheldUntil > 0 {
		v.SuspendedUntil = m.epoch.Add(e.watch.withheldUntil + m.blind)
	}
	if e.heard >= 0 {
		v.LastHeard = m.epoch.Add(e.heard)
		if e.renewed > 0 {
			v.Skew = time.UnixMicro(e.renewed).Sub(v.LastHeard)
		}
	}
	if e.state == Unsteady {
		v.Hold = m.policy.Hold(int(e.flaps), e.grace)
	}
	return v, true
}

// Outage returns the current outage of the whole fleet, or else that of the members with joinMode Push; false if there
// is none.
func (m *Monitor) Outage() (Outage, bool) {
	g, push := &m.fleet, false
	if !g.outage {
		g, push = &m.push, true
	}
	if !g.outage {
		return Outage{}, false
	}
	return Outage{
		Since: m.epoch.Add(g.since), Late: g.late, Affected: g.affected, Tracked: g.tracked, Push: push,
	}, true
}

// Stats returns the current counters.
func (m *Monitor) Stats() Stats {
	return Stats{
		Awaited: m.count[Awaited], Healthy: m.count[Healthy], Lost: m.count[Lost], Unsteady: m.count[Unsteady],
		Late: m.fleet.late, Affected: m.fleet.affected, Beats: m.beats,
	}
}

// sorted returns nil for no names.
func sorted(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return slices.Compact(names)
}
