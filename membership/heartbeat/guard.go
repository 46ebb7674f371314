package heartbeat

import (
	"slices"
	"time"
)

// The reasons for which a member is affected.
const (
	isLate     uint8 = 1 << iota // it has missed a heartbeat
	isNotReady                   // its agent reports that the cluster is not ready
)

// suspects reports whether the hub suspects itself when so many of its members are affected. A suspicion that has
// begun goes on until the share is clearly lower.
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

// heldBack reports whether nothing may be done about a member now.
func (m *Monitor) heldBack(e *member) bool {
	return (e.state.Unknown() || e.affected&isNotReady != 0) && (m.outage || m.doubt || e.held > 0)
}

// withheld is how many members are held back.
func (m *Monitor) withheld() int {
	n := 0
	for _, e := range m.members {
		if e.tracked && m.heldBack(e) {
			n++
		}
	}
	return n
}

// tally counts a member, or with -1 no longer counts it as it is.
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

// setAffected notes whether a member is affected for a reason.
func (m *Monitor) setAffected(e *member, reason uint8, is bool) {
	m.tally(e, -1)
	if is {
		e.affected |= reason
	} else {
		e.affected &^= reason
	}
	m.tally(e, +1)
}

// suspect begins or ends an outage, and returns the members that are held back because of it, or no longer.
//
// It goes by the members that are late, not by those that are lost: when all fall silent at once they are lost one by
// one, spread over a period, but each of them is late before the first is lost. So the hub suspects itself before it
// would have tainted any member. For the same reason it goes by members that are not ready before their taints are
// due.
//
// Members that have not been heard since the hub started are no evidence that the hub is well: while they could make
// up an outage together with those that are affected, the hub is in doubt, and holds back as well.
func (m *Monitor) suspect(now time.Time) []string {
	outage := m.policy.suspects(m.affected, m.tracked, m.outage)
	doubt := m.policy.suspects(m.doubtful, m.tracked, false)
	if outage == m.outage && doubt == m.doubt {
		return nil
	}
	before := map[*member]bool{}
	for _, e := range m.members {
		if e.tracked {
			before[e] = m.heldBack(e)
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
		if m.heldBack(e) != was {
			changed = append(changed, e.name)
		}
	}
	return sorted(changed)
}

// flipped returns the names of the members that are held back now and were not before, or the reverse, given those
// that a suspicion has flipped since.
func (m *Monitor) flipped(names []string, before map[*member]bool) []string {
	for e, was := range before {
		names = slices.DeleteFunc(names, func(name string) bool { return name == e.name })
		if m.heldBack(e) != was {
			names = append(names, e.name)
		}
	}
	return sorted(names)
}

// grantGrace gives every affected member its grace anew, since it may need that time to be observed after an outage
// of the hub.
func (m *Monitor) grantGrace(now time.Time) {
	at := m.clock(now)
	for _, e := range m.members {
		if e.tracked && e.affected != 0 {
			e.held = at + e.grace
			m.queue.set(e, e.due())
		}
	}
}
