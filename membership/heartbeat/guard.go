package heartbeat

import (
	"slices"
	"time"
)

// The reasons why a member is affected.
const (
	isLate     uint8 = 1 << iota // it has missed a heartbeat
	isNotReady                   // its agent reports that the cluster is not ready
)

// suspects reports whether the outage guard is active with so many affected members. An active guard stays active until
// the share is clearly lower.
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

// isWithheld reports whether taints and failover of a member are withheld.
func (m *Monitor) isWithheld(e *member) bool {
	return (e.state.Unknown() || e.affected&isNotReady != 0) && (m.outage || m.doubt || e.withheldUntil > 0)
}

// withheld is the number of members whose taints and failover are withheld.
func (m *Monitor) withheld() int {
	n := 0
	for _, e := range m.members {
		if e.tracked && m.isWithheld(e) {
			n++
		}
	}
	return n
}

// tally adds a member to the counters with by 1, and removes it with by -1.
func (m *Monitor) tally(e *member, by int) {
	if !e.tracked {
		return
	}
	if e.affected != 0 {
		m.affected += by
	}
	if e.affected != 0 || e.state == Awaited {
		m.doubtful += by
	}
}

// setAffected records whether a member is affected for a reason.
func (m *Monitor) setAffected(e *member, reason uint8, is bool) {
	m.tally(e, -1)
	if is {
		e.affected |= reason
	} else {
		e.affected &^= reason
	}
	m.tally(e, +1)
}

// suspect starts or ends an outage, and returns the members for which that starts or stops to withhold taints and
// failover.
//
// An outage depends on the members that are late, not on those that are lost: if all become silent at once, they are
// lost one by one, spread over a period, but each of them is late before the first is lost. So the guard is active
// before the hub would taint any member. For the same reason, an outage depends on members that are not ready before
// their taints are due.
//
// Members without a heartbeat since the hub started do not show that the hub is healthy. While they could form an
// outage together with the affected ones, taints and failover are withheld as well.
func (m *Monitor) suspect(now time.Time) []string {
	outage := m.policy.suspects(m.affected, m.tracked, m.outage)
	doubt := m.policy.suspects(m.doubtful, m.tracked, false)
	if outage == m.outage && doubt == m.doubt {
		return nil
	}
	before := map[*member]bool{}
	for _, e := range m.members {
		if e.tracked {
			before[e] = m.isWithheld(e)
		}
	}
	if m.outage && !outage {
		m.grantGrace(now)
	}
	if outage != m.outage {
		m.since = m.elapsed(now)
	}
	m.outage, m.doubt = outage, doubt
	var changed []string
	for e, was := range before {
		if m.isWithheld(e) != was {
			changed = append(changed, e.name)
		}
	}
	return sorted(changed)
}

// flipped returns the names of the members whose HeldBack differs from before. Names are the members that suspect has
// returned since.
func (m *Monitor) flipped(names []string, before map[*member]bool) []string {
	for e, was := range before {
		names = slices.DeleteFunc(names, func(name string) bool { return name == e.name })
		if m.isWithheld(e) != was {
			names = append(names, e.name)
		}
	}
	return sorted(names)
}

// grantGrace gives every affected member a new grace period, because after an outage of the hub the hub may need that
// time to observe its heartbeats.
func (m *Monitor) grantGrace(now time.Time) {
	at := m.clock(now)
	for _, e := range m.members {
		if e.tracked && e.affected != 0 {
			e.withheldUntil = at + e.grace
			m.queue.set(e, e.due())
		}
	}
}
