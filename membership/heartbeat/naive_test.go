package heartbeat

import (
	"maps"
	"math"
	"slices"
	"time"
)

// naive is a reference implementation of Monitor: it scans all members each time, stores wall-clock times, and shifts
// all of them after a pause. It has no queue and no watch.
type naive struct {
	policy  Policy
	members map[string]*naiveMember
	outage  bool
	doubt   bool
	paused  bool

	pushOutage, pushDoubt bool // of the members with push

	pausedAt time.Time
}

type naiveMember struct {
	tracked                 bool
	period, grace           time.Duration
	lease                   bool
	renewed                 time.Time // zero: no Lease, or a Lease that was never renewed
	heard                   time.Time // for display
	silent, steady, lost    time.Time // for the evaluation: moved by the length of a pause
	state                   State
	since                   time.Time
	flaps                   int
	late, everHeard, blamed bool
	notReady, push          bool
	withheldUntil           time.Time // moved by the length of a pause; zero: none
}

func newNaive(p Policy) *naive {
	return &naive{policy: p.withDefaults(), members: map[string]*naiveMember{}}
}

func (n *naive) at(now time.Time) time.Time {
	if n.paused {
		return n.pausedAt
	}
	return now
}

func (n *naive) get(name string) *naiveMember {
	if n.members[name] == nil {
		n.members[name] = &naiveMember{}
	}
	return n.members[name]
}

func (n *naive) track(name string, period time.Duration, now time.Time) {
	e, at := n.get(name), n.at(now)
	period = bounded(period)
	grace := n.policy.Grace(period)
	defer func() { e.tracked, e.period, e.grace = true, period, grace }()
	if e.tracked {
		end := e.silent.Add(e.grace) // the time of the loss before the change
		if grace < e.grace {         // shorter: from now on, but not later than before
			end = earlier(at.Add(grace), end)
			if e.silent.Before(end.Add(-grace)) {
				e.silent = end.Add(-grace)
			}
		}
		return
	}
	e.state, e.since = Awaited, now
	if e.everHeard && at.Sub(e.silent) < grace {
		e.state = Healthy
	} else {
		e.silent = at
	}
	e.tracked, e.period, e.grace = true, period, grace
	n.reconsider(now)
}

func (n *naive) report(name string, ready bool, now time.Time) {
	if e := n.members[name]; e != nil && e.tracked {
		e.notReady = !ready
		n.reconsider(now)
	}
}

func (n *naive) untrack(name string, now time.Time) {
	e := n.members[name]
	if e == nil || !e.tracked {
		return
	}
	delete(n.members, name)
	if e.lease {
		n.members[name] = &naiveMember{lease: true, renewed: e.renewed, heard: e.heard, silent: e.silent,
			everHeard: e.everHeard}
	}
	n.reconsider(now)
}

func (n *naive) observe(name string, renewed, now time.Time) {
	n.beat(name, renewed, now)
	n.reconsider(now)
}

func (n *naive) beat(name string, renewed, now time.Time) {
	e := n.get(name)
	e.lease = true
	if renewed.IsZero() || renewed.Equal(e.renewed) {
		return
	}
	e.renewed = renewed
	e.everHeard, e.heard, e.silent, e.late = true, now, n.at(now), false
	if !e.tracked {
		return
	}
	was := e.state
	if e.state == Lost {
		e.steady = e.silent
		e.state = Unsteady
	}
	if e.state == Awaited || e.state == Unsteady && e.silent.Sub(e.steady) >= n.policy.Hold(e.flaps, e.grace) {
		e.state = Healthy
	}
	if e.state != was {
		e.since = now
	}
}

func (n *naive) gone(name string) {
	if e := n.members[name]; e != nil && e.tracked {
		e.lease, e.renewed = false, time.Time{}
	} else {
		delete(n.members, name)
	}
}

func (n *naive) relist(leases map[string]time.Time, now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(leases)) {
		if e := n.get(name); e.renewed.IsZero() {
			e.lease, e.renewed = true, leases[name]
		} else {
			n.beat(name, leases[name], now)
		}
	}
	n.reconsider(now)
	for _, name := range slices.Sorted(maps.Keys(n.members)) {
		if _, ok := leases[name]; !ok {
			n.gone(name)
		}
	}
}

func (n *naive) pause(now time.Time) {
	if !n.paused {
		n.paused, n.pausedAt = true, now
	}
}

func (n *naive) resume(now time.Time) {
	if !n.paused {
		return
	}
	gap := now.Sub(n.pausedAt)
	n.paused = false
	for _, e := range n.members {
		e.silent, e.steady, e.lost = e.silent.Add(gap), e.steady.Add(gap), e.lost.Add(gap)
		if !e.withheldUntil.IsZero() {
			e.withheldUntil = e.withheldUntil.Add(gap)
		}
		if e.tracked && e.state != Lost && e.period <= gap {
			e.silent, e.late = now, false
		}
	}
	n.reconsider(now)
}

func (n *naive) expire(now time.Time) {
	if n.paused {
		return
	}
	var lost []*naiveMember
	for _, e := range n.members {
		if !e.tracked {
			continue
		}
		if !e.withheldUntil.IsZero() && !now.Before(e.withheldUntil) {
			e.withheldUntil = time.Time{}
		}
		if !e.late && !now.Before(e.lateAt()) {
			e.late = true
			if e.state == Unsteady {
				e.state, e.since = Lost, now
			}
		}
		if (e.state == Healthy || e.state == Awaited) && e.late && !now.Before(e.silent.Add(e.grace)) {
			e.state, e.since = Lost, now
			lost = append(lost, e)
		}
	}
	n.reconsider(now)
	for _, e := range lost {
		switch recent := e.blamed && now.Sub(e.lost) <= flapWindow*e.grace; {
		case !recent:
			e.flaps = 0
		case !n.inOutage(e):
			e.flaps++
		}
		if !n.inOutage(e) {
			e.blamed, e.lost = true, now
		}
	}
}

func (e *naiveMember) lateAt() time.Time {
	return e.silent.Add(min(e.period+max(e.period/4, 2*time.Second), e.grace))
}

// earliest returns the next time at which missing heartbeats change the state.
func (n *naive) earliest() (at time.Time, ok bool) {
	for _, e := range n.members {
		due := e.lateAt()
		if e.late {
			due = e.silent.Add(e.grace)
		}
		switch {
		case !e.tracked || n.paused:
			continue
		case e.late && e.state == Lost && e.withheldUntil.IsZero():
			continue
		case e.late && e.state == Lost, !e.withheldUntil.IsZero() && e.withheldUntil.Before(due):
			due = e.withheldUntil
		}
		if !ok || due.Before(at) {
			at, ok = due, true
		}
	}
	return at, ok
}

func (n *naive) reconsider(now time.Time) {
	n.outage, n.doubt = n.reconsiderAll(now, n.outage, func(*naiveMember) bool { return true })
	n.pushOutage, n.pushDoubt = n.reconsiderAll(now, n.pushOutage, func(e *naiveMember) bool { return e.push })
}

// reconsiderAll returns whether the selected members have an outage, given whether they had one before.
func (n *naive) reconsiderAll(now time.Time, before bool, of func(*naiveMember) bool) (outage, doubt bool) {
	tracked, affected, doubtful := 0, 0, 0
	for _, e := range n.members {
		if !e.tracked || !of(e) {
			continue
		}
		tracked++
		if e.late || e.notReady {
			affected++
		}
		if e.late || e.notReady || e.state == Awaited {
			doubtful++
		}
	}
	most := func(count int, share float64) bool {
		return count > 0 && count >= min(n.policy.OutageMinimum, tracked) && float64(count)/float64(tracked) >= share
	}
	outage = most(affected, n.policy.OutageShare)
	if before {
		outage = most(affected, math.Nextafter(n.policy.OutageShare-outageHysteresis, 2))
	}
	if before && !outage {
		for _, e := range n.members {
			if e.tracked && of(e) && (e.late || e.notReady) {
				e.withheldUntil = n.at(now).Add(e.grace)
			}
		}
	}
	return outage, most(doubtful, n.policy.OutageShare)
}

func (n *naive) inOutage(e *naiveMember) bool { return n.outage || n.pushOutage && e.push }

func (n *naive) connect(name string, push bool, now time.Time) {
	if e := n.members[name]; e != nil && e.tracked {
		e.push = push
		n.reconsider(now)
	}
}

func (n *naive) evaluate(name string) (Health, bool) {
	e := n.members[name]
	if e == nil || !e.tracked {
		return Health{}, false
	}
	v := Health{State: e.state, Since: e.since, LastHeard: e.heard, Grace: e.grace}
	v.Suspended = (e.state.Unknown() || e.notReady) && (n.outage || n.doubt || e.push && (n.pushOutage || n.pushDoubt) ||
		!e.withheldUntil.IsZero())
	if v.SuspendedUntil = e.withheldUntil; n.paused && !e.withheldUntil.IsZero() {
		v.SuspendedUntil = time.Time{} // unknown until the end of the pause
	}
	if e.everHeard && !e.renewed.IsZero() {
		v.Skew = e.renewed.Sub(e.heard)
	}
	if e.state == Unsteady {
		v.Hold = n.policy.Hold(e.flaps, e.grace)
	}
	return v, true
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
