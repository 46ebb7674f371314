package heartbeat

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var propertyNames = []string{"ash", "birch", "cedar", "elm"}

// TestMonitor_AgreesWithNaive applies the same random events to a Monitor and a full scan. After every step, the health
// of all members must be equal, the returned names must be exactly those whose health changed, and the next wake-up
// must not be too late.
func TestMonitor_AgreesWithNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := Policy{OutageMinimum: rapid.IntRange(0, 4).Draw(t, "minimum")}
		if rapid.Bool().Draw(t, "tight grace") {
			policy.Grace = func(p time.Duration) time.Duration { return p + p/8 }
		}
		m, n := NewMonitor(policy), newNaive(policy)
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		agent := now.Add(-time.Hour) // the agents' clock is wrong, and is never compared with now

		names := rapid.SampledFrom(propertyNames)
		periods := rapid.SampledFrom([]time.Duration{0, time.Second, 3 * time.Second, 10 * time.Second, time.Minute,
			10 * time.Minute})
		steps := rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second,
			time.Minute, 5 * time.Minute, time.Hour})
		tick := func() time.Time { agent = agent.Add(time.Millisecond); return agent }

		check := func(op string, do func() []string, ignored ...string) {
			before := healthOfAll(m)
			got := do()
			var want []string
			for name, v := range healthOfAll(m) {
				old, existed := before[name]
				if existed && (v.State != old.State || v.Suspended != old.Suspended || !v.Since.Equal(old.Since)) &&
					!slices.Contains(ignored, name) {
					want = append(want, name)
				}
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: changed (-want +got):\n%s", op, diff)
			}
			for _, name := range propertyNames {
				got, gotOK := m.Health(name)
				if n.paused {
					got.SuspendedUntil = time.Time{}
				}
				want, wantOK := n.evaluate(name)
				if diff := cmp.Diff(want, got); diff != "" || gotOK != wantOK {
					t.Fatalf("%s: health of %s: %v, want %v (-want +got):\n%s", op, name, gotOK, wantOK, diff)
				}
			}
			if _, outage := m.Outage(); outage != (n.outage || n.pushOutage) {
				t.Fatalf("%s: outage %v, want %v or %v", op, outage, n.outage, n.pushOutage)
			}
			next, ok := m.Next()
			due, wantOK := n.earliest()
			if ok != wantOK || next.After(due) {
				t.Fatalf("%s: Next %s %v, want no later than %s %v", op, next, ok, due, wantOK)
			}
		}

		for _, name := range rapid.SliceOfDistinct(names, rapid.ID).Draw(t, "tracked at first") {
			n.track(name, time.Minute, now)
			m.Track(name, time.Minute, now)
		}
		t.Repeat(map[string]func(*rapid.T){
			"advance": func(t *rapid.T) { now = now.Add(steps.Draw(t, "by")) },
			"track": func(t *rapid.T) {
				name, period := names.Draw(t, "name"), periods.Draw(t, "period")
				n.track(name, period, now)
				check("track", func() []string { return m.Track(name, period, now) })
			},
			"untrack": func(t *rapid.T) {
				name := names.Draw(t, "name")
				n.untrack(name, now)
				check("untrack", func() []string { return m.Untrack(name, now) })
			},
			"beat": func(t *rapid.T) {
				name, renewed := names.Draw(t, "name"), tick()
				n.observe(name, renewed, now)
				check("beat", func() []string { return m.Observe(name, renewed, now) })
			},
			"repeat": func(t *rapid.T) {
				name, renewed := names.Draw(t, "name"), time.Time{}
				if e := n.members[name]; e != nil {
					renewed = e.renewed
				}
				n.observe(name, renewed, now)
				check("repeat", func() []string { return m.Observe(name, renewed, now) })
			},
			"all beat for a while": func(t *rapid.T) {
				for range rapid.IntRange(1, 10).Draw(t, "times") {
					now = now.Add(time.Second)
					for _, name := range propertyNames {
						renewed := tick()
						n.observe(name, renewed, now)
						check("beats", func() []string { return m.Observe(name, renewed, now) })
					}
					n.expire(now)
					check("expire", func() []string { return m.Expire(now) })
				}
			},
			"time passes until one is due": func(*rapid.T) {
				if due, ok := n.earliest(); ok && due.After(now) {
					now = due
				}
				n.expire(now)
				check("due", func() []string { return m.Expire(now) })
			},
			"flap": func(t *rapid.T) {
				name := names.Draw(t, "name")
				for range rapid.IntRange(1, 4).Draw(t, "times") {
					renewed := tick()
					n.observe(name, renewed, now)
					check("flap", func() []string { return m.Observe(name, renewed, now) })
					now = now.Add(n.members[name].grace)
					n.expire(now)
					check("flap", func() []string { return m.Expire(now) })
				}
			},
			"report": func(t *rapid.T) {
				name, ready := names.Draw(t, "name"), rapid.Bool().Draw(t, "ready")
				n.report(name, ready, now)
				check("report", func() []string { return m.Report(name, ready, now) })
			},
			"connect": func(t *rapid.T) {
				name, push := names.Draw(t, "name"), rapid.Bool().Draw(t, "push")
				n.connect(name, push, now)
				check("connect", func() []string { return m.SetPush(name, push, now) })
			},
			"gone": func(t *rapid.T) {
				name := names.Draw(t, "name")
				n.gone(name)
				check("gone", func() []string { m.Gone(name); return nil })
			},
			"relist": func(t *rapid.T) {
				leases := map[string]time.Time{}
				for _, name := range rapid.SliceOfDistinct(names, rapid.ID).Draw(t, "leases") {
					leases[name] = tick()
					if e := n.members[name]; e != nil && rapid.Bool().Draw(t, "same") {
						leases[name] = e.renewed
					}
				}
				n.relist(leases, now)
				check("relist", func() []string { return m.Relist(leases, now) })
			},
			"pause":  func(*rapid.T) { n.pause(now); check("pause", func() []string { m.Pause(now); return nil }) },
			"resume": func(*rapid.T) { n.resume(now); check("resume", func() []string { return m.Resume(now) }) },
			"expire": func(*rapid.T) { n.expire(now); check("expire", func() []string { return m.Expire(now) }) },
			"": func(t *rapid.T) {
				if got, want := m.Stats(), recount(m); got != want {
					t.Fatalf("Stats %+v, want %+v", got, want)
				}
			},
		})
	})
}

// TestMonitor_NoLossWithinGrace checks for every order of events that a member is not lost within a grace period after
// a heartbeat, Track, or the start of a new grace period.
func TestMonitor_NoLossWithinGrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewMonitor(Policy{})
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		now, last := start, start
		m.Track("east", time.Minute, now)
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 120).Draw(t, "seconds")) * time.Second)
			m.Expire(now)
			v, _ := m.Health("east")
			if silent := now.Sub(last); v.State == Lost && silent < v.Grace || v.State != Lost && silent >= v.Grace {
				t.Fatalf("state is %s %s after the last heartbeat, grace period %s", v.State, silent, v.Grace)
			}
			if v.State != Lost && rapid.Bool().Draw(t, "beats") {
				last = now
				m.Observe("east", start.Add(time.Duration(i+1)*time.Millisecond), now)
			}
		}
	})
}

func healthOfAll(m *Monitor) map[string]Health {
	all := map[string]Health{}
	for name := range maps.Keys(m.members) {
		if v, ok := m.Health(name); ok {
			all[name] = v
		}
	}
	return all
}

func recount(m *Monitor) Stats {
	s := Stats{Beats: m.beats}
	for _, e := range m.members {
		if !e.tracked {
			continue
		}
		switch e.state {
		case Awaited:
			s.Awaited++
		case Healthy:
			s.Healthy++
		case Lost:
			s.Lost++
		case Unsteady:
			s.Unsteady++
		}
		if e.late() {
			s.Late++
		}
		if e.isAffected() {
			s.Affected++
		}
	}
	return s
}
