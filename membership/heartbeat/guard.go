package heartbeat

import (
	"slices"
	"time"
)

// The flags of a member.
const (
	isLate     uint8 = 1 << iota // it has missed a heartbeat
	isNotReady                   // its agent reports that the cluster is not ready
	isPush                       // the hub connects to it
)

// isAffected reports whether the outage guard counts the member as affected.
func (m *member) isAffected() bool { return m.flags&(isLate|isNotReady) != 0 }

// suspects reports whether the outage guard is active for a number of affected members. An active guard stays active
// until the share is lower by the hysteresis.
func (p Policy) suspects(affected, tracked int, already bool) bool {
	if affected == 0 || affected < min(p.OutageMinimum, tracked) {
		return false
	}
	share := float64(affected) / float64(tracked)
	if already {
		return share > p.outageEnds()
	}
	return share >= p.OutageShare
}

// guard counts the members of a fleet, or of a part of it, and stores whether they have an outage.
type guard struct {
	tracked, late int
	affected      int // late or not ready
	doubtful      int // affected or Awaited
	outage, doubt bool
	since         time.Duration // epoch: when the outage began
}

func (g *guard) withholds() bool { return g.outage || g.doubt }

// count adds a member with by 1, and removes it with by -1.
func (g *guard) count(e *member, by int) {
	g.tracked += by
	if e.late() {
		g.late += by
	}
	if e.isAffected() {
		g.affected += by
	}
	if e.isAffected() || e.state == Awaited {
		g.doubtful += by
	}
}

// inOutage reports whether a member is in an outage.
func (m *Monitor) inOutage(e *member) bool {
	return m.fleet.outage || m.push.outage && e.flags&isPush != 0
}

// isWithheld reports whether taints and failover of a member are withheld.
func (m *Monitor) isWithheld(e *member) bool {
	return (e.state.Unknown() || e.flags&isNotReady != 0) && (m.fleet.withholds() || e.watch.withheldUntil > 0 ||
		m.push.withholds() && e.flags&isPush != 0)
}

// withheld returns the number of members whose taints and failover are withheld.
func (m *Monitor) withheld() int {
	n := 0
	for _, e := range m.members {
		if e.tracked && m.isWithheld(e) {
			n++
		}
	}
	return n
}

// tally adds a tracked member to the counters with by 1, and removes it with by -1.
func (m *Monitor) tally(e *member, by int) {
	if !e.tracked {
		return
	}
	m.fleet.count(e, by)
	if e.flags&isPush != 0 {
		m.push.count(e, by)
	}
}

// set changes a flag of a member.
func (m *Monitor) set(e *member, flag uint8, is bool) {
	m.tally(e, -1)
	if is {
		e.flags |= flag
	} else {
		e.flags &^= flag
	}
	m.tally(e, +1)
}

// suspect starts or ends outages, and returns the members for which that starts or stops to withhold taints and
// failover.
//
// An outage depends on the members that are late, not on those that are lost: if the heartbeats of all members stop at
// the same time, the members are lost one by one, spread over a period, but each of them is late before the first is
// lost. Therefore the guard is active before the hub would taint any member. For the same reason, an outage depends on
// members that are not ready before their taints are due.
//
// Members without a heartbeat since the hub started do not show that the hub is healthy. While they could form an
// outage together with the affected ones, taints and failover are withheld as well.
//
// The members with joinMode Push are also evaluated as a separate group: heartbeats of other members do not show that
// the hub can reach any member.
func (m *Monitor) suspect(now time.Time) []string {
	fleet, push := m.next(m.fleet, now), m.next(m.push, now)
	if fleet == m.fleet && push == m.push {
		return nil
	}
	before := map[*member]bool{}
	for _, e := range m.members {
		if e.tracked {
			before[e] = m.isWithheld(e)
		}
	}
	fleetEnds, pushEnds := m.fleet.outage && !fleet.outage, m.push.outage && !push.outage
	m.fleet, m.push = fleet, push
	if fleetEnds || pushEnds {
		m.grantGrace(now, func(e *member) bool { return fleetEnds || e.flags&isPush != 0 })
	}
	var changed []string
	for e, was := range before {
		if m.isWithheld(e) != was {
			changed = append(changed, e.name)
		}
	}
	return sorted(changed)
}

// next returns the guard for its current counters.
func (m *Monitor) next(g guard, now time.Time) guard {
	outage := m.policy.suspects(g.affected, g.tracked, g.outage)
	if outage != g.outage {
		g.outage, g.since = outage, m.elapsed(now)
	}
	g.doubt = m.policy.suspects(g.doubtful, g.tracked, false)
	return g
}

// flipped returns the names of the members whose Suspended differs from before. The argument names contains the
// members that suspect has returned since.
func (m *Monitor) flipped(names []string, before map[*member]bool) []string {
	for e, was := range before {
		names = slices.DeleteFunc(names, func(name string) bool { return name == e.name })
		if m.isWithheld(e) != was {
			names = append(names, e.name)
		}
	}
	return sorted(names)
}

// grantGrace gives the affected members of an outage a new grace period, because after an outage the hub may need this
// time to observe their heartbeats.
func (m *Monitor) grantGrace(now time.Time, of func(*member) bool) {
	at := m.clock(now)
	for _, e := range m.members {
		if e.tracked && e.isAffected() && of(e) {
			e.watch.withheldUntil = at + e.grace
			m.queue.set(e, e.due())
		}
	}
}
