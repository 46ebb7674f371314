package heartbeat

import (
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// scenario is a scripted sequence of events.
type scenario struct {
	t       *testing.T
	m       *Monitor
	now     time.Time
	renewed time.Time
	changed []string // by the last event
}

func newScenario(t *testing.T, policy Policy, members ...string) *scenario {
	p := &scenario{t: t, m: NewMonitor(policy), now: epoch, renewed: epoch.Add(-time.Hour)}
	p.track(time.Minute, members...)
	return p
}

func (p *scenario) track(period time.Duration, members ...string) {
	for _, name := range members {
		p.changed = p.m.Track(name, period, p.now)
	}
}

func (p *scenario) beat(members ...string) {
	for _, name := range members {
		p.renewed = p.renewed.Add(time.Second)
		p.changed = p.m.Observe(name, p.renewed, p.now)
	}
}

// beats lets time pass in which only these members send a heartbeat each 20 s.
func (p *scenario) beats(d time.Duration, members ...string) {
	for ; d > 0; d -= 20 * time.Second {
		p.beat(members...)
		p.pass(min(d, 20*time.Second))
	}
}

// pass lets time pass from deadline to deadline, like a Watcher.
func (p *scenario) pass(d time.Duration) {
	end := p.now.Add(d)
	p.changed = nil
	for {
		next, ok := p.m.Next()
		if !ok || next.After(end) {
			break
		}
		if next.After(p.now) {
			p.now = next
		}
		p.changed = append(p.changed, p.m.Expire(p.now)...)
	}
	p.now = end
}

func (p *scenario) pause()  { p.m.Pause(p.now) }
func (p *scenario) resume() { p.changed = p.m.Resume(p.now) }

func (p *scenario) want(state State, members ...string) {
	p.t.Helper()
	for _, name := range members {
		v, ok := p.m.Health(name)
		if !ok || v.State != state {
			p.t.Fatalf("after %s: %s is %s, want %s", p.now.Sub(epoch), name, v.State, state)
		}
	}
}

func (p *scenario) wantChanged(members ...string) {
	p.t.Helper()
	if diff := cmp.Diff(members, p.changed); diff != "" {
		p.t.Fatalf("after %s: changed (-want +got):\n%s", p.now.Sub(epoch), diff)
	}
}

func (p *scenario) wantWithheld(want bool, members ...string) {
	p.t.Helper()
	for _, name := range members {
		if v, _ := p.m.Health(name); v.Suspended != want {
			p.t.Fatalf("after %s: %s is suspended: %v, want %v", p.now.Sub(epoch), name, v.Suspended, want)
		}
	}
}

const grace = 195 * time.Second // of a period of one minute

func TestMonitor(t *testing.T) {
	tests := []struct {
		name   string
		reason string
		run    func(*scenario)
	}{
		{"lost at the end of the grace period", "two missed heartbeats and a late third one are within the grace period",
			func(p *scenario) {
				p.beat("a")
				p.pass(grace - 1)
				p.want(Healthy, "a")
				p.pass(1)
				p.want(Lost, "a")
				p.wantChanged("a")
			}},
		{"awaited for a whole grace period", "after a restart of the hub, a member without a heartbeat is not lost at once",
			func(p *scenario) {
				p.pass(grace - 1)
				p.want(Awaited, "a")
				p.pass(1)
				p.want(Lost, "a")
			}},
		{"repeated observation of an unchanged Lease", "an informer repeats unchanged objects, which are no heartbeats",
			func(p *scenario) {
				p.beat("a")
				for range 20 {
					p.pass(20 * time.Second)
					p.m.Observe("a", p.renewed, p.now)
				}
				p.want(Lost, "a")
			}},
		{"clock of the agent goes backwards", "a renewTime is compared only with an earlier one of the same agent",
			func(p *scenario) {
				for range 20 {
					p.renewed = p.renewed.Add(-time.Hour)
					p.beats(20*time.Second, "a")
				}
				p.want(Healthy, "a")
			}},
		{"first list of Leases", "an existing Lease may be old: only its next change is a heartbeat",
			func(p *scenario) {
				p.changed = p.m.Relist(map[string]time.Time{"a": epoch}, p.now)
				p.wantChanged()
				p.want(Awaited, "a")
				p.changed = p.m.Relist(map[string]time.Time{"a": epoch.Add(1e6)}, p.now)
				p.wantChanged("a")
				p.want(Healthy, "a")
			}},
		{"heartbeat before Track", "a member that joins is Healthy at once, not after another period", func(p *scenario) {
			p.beat("new")
			p.pass(time.Second)
			p.track(time.Minute, "new")
			p.want(Healthy, "new")
		}},
		{"list before Track", "an existing Lease of a member that is tracked later is no heartbeat", func(p *scenario) {
			p.m.Relist(map[string]time.Time{"new": epoch}, p.now)
			p.track(time.Minute, "new")
			p.want(Awaited, "new")
		}},
		{"deleted Lease is created again", "an agent whose Lease was deleted creates a new one, which is a heartbeat",
			func(p *scenario) {
				p.beat("a")
				p.m.Gone("a")
				p.pass(grace)
				p.want(Lost, "a")
				p.m.Observe("a", p.renewed, p.now)
				p.want(Healthy, "a")
			}},
		{"Lease without a renewTime", "a client other than the agent created the Lease", func(p *scenario) {
			p.m.Observe("a", time.Time{}, p.now)
			p.want(Awaited, "a")
			p.beat("a")
			p.pass(grace - 1)
			p.m.Observe("a", time.Time{}, p.now)
			p.pass(1)
			p.want(Lost, "a")
		}},
		{"period shortened", "the agent may not know it yet: the new grace period begins now, not at the last heartbeat",
			func(p *scenario) {
				p.track(10*time.Minute, "a")
				p.beat("a")
				p.pass(9 * time.Minute)
				p.track(time.Second, "a")
				p.pass(5*time.Second - 1)
				p.want(Healthy, "a")
				p.pass(1)
				p.want(Lost, "a")
			}},
		{"period shortened at the end of the grace period", "frequent changes of the period must not hide a failed member",
			func(p *scenario) {
				p.beat("a")
				p.pass(grace - time.Second)
				p.track(50*time.Second, "a")
				p.pass(time.Second)
				p.want(Lost, "a")
			}},
		{"period lengthened", "the agent may already use the new period", func(p *scenario) {
			p.beat("a")
			p.pass(grace - 1)
			p.track(10*time.Minute, "a")
			p.pass(1950*time.Second - grace)
			p.want(Healthy, "a")
			p.pass(1)
			p.want(Lost, "a")
		}},

		{"first recovery", "a member that was lost once is Healthy with its next heartbeat", func(p *scenario) {
			p.beat("a")
			p.pass(grace)
			p.beat("a")
			p.want(Healthy, "a")
			p.wantChanged("a")
		}},
		{"flapping", "each loss soon after another doubles the hold, up to eight grace periods", func(p *scenario) {
			p.track(time.Minute, "b")
			p.beat("a")
			p.beats(grace, "b")
			for _, hold := range []time.Duration{0, grace, 2 * grace, 4 * grace, 8 * grace, 8 * grace} {
				if hold > 0 {
					p.beats(hold, "a", "b")
					p.want(Unsteady, "a")
				}
				p.beat("a")
				p.want(Healthy, "a")
				p.beats(grace, "b")
				p.want(Lost, "a")
			}
		}},
		{"flapping of a single member", "in a fleet of one member, each loss is an outage", func(p *scenario) {
			for range 4 {
				p.beat("a")
				p.want(Healthy, "a")
				p.pass(grace)
				p.wantWithheld(true, "a")
			}
		}},
		{"no loss for sixteen grace periods", "earlier losses no longer count as flaps", func(p *scenario) {
			p.track(time.Minute, "b") // The losses of an only member are outages, and no flaps.
			p.beat("a")
			p.beats(grace, "b")
			p.beats(17*grace, "a", "b")
			p.want(Healthy, "a")
			p.beats(grace, "b")
			p.want(Lost, "a")
			p.beat("a")
			p.want(Healthy, "a")
		}},
		{"late heartbeat while Unsteady", "the hold begins again", func(p *scenario) {
			p.track(time.Minute, "b")
			p.beat("a")
			p.beats(grace, "b")
			p.beat("a")
			p.beats(grace, "b")
			p.beats(grace-20*time.Second, "a", "b")
			p.want(Unsteady, "a")
			p.beats(75*time.Second, "b")
			p.want(Lost, "a")
			p.beats(grace, "a", "b")
			p.want(Unsteady, "a")
			p.beat("a")
			p.want(Healthy, "a")
		}},

		{"outage of the hub", "if all members are silent, the outage begins before the first of them is lost",
			func(p *scenario) {
				p.track(time.Minute, "b", "c", "d")
				for _, name := range []string{"a", "b", "c", "d"} {
					p.beat(name)
					p.pass(15 * time.Second)
				}
				for !anyLost(p) {
					p.pass(time.Second)
				}
				p.want(Lost, "a")
				p.want(Healthy, "b", "c", "d")
				p.wantWithheld(true, "a")
				p.pass(time.Minute)
				p.wantWithheld(true, "a", "b", "c", "d")
			}},
		{"end of an outage", "the members that are still silent have a new grace period", func(p *scenario) {
			p.track(time.Minute, "b", "c", "d")
			p.beat("a", "b", "c", "d")
			p.pass(grace)
			p.wantWithheld(true, "a", "b", "c", "d")
			p.beat("d")
			p.wantWithheld(true, "a", "b", "c")
			p.beat("c")
			if _, suspected := p.m.Outage(); suspected {
				p.t.Fatal("half of the members are silent: want no outage")
			}
			p.wantChanged("c")
			p.wantWithheld(true, "a", "b")
			end := p.now.Add(grace)
			p.beats(grace-time.Second, "c", "d")
			p.wantWithheld(true, "a", "b")
			if v, _ := p.m.Health("a"); !v.SuspendedUntil.Equal(end) {
				p.t.Fatalf("SuspendedUntil is %s, want %s", v.SuspendedUntil, end)
			}
			p.pass(time.Second)
			p.wantChanged("a", "b")
			p.wantWithheld(false, "a", "b")
		}},
		{"return within the new grace period", "taints are withheld until the member is Healthy", func(p *scenario) {
			p.track(time.Minute, "b", "c")
			p.beat("a", "b", "c")
			p.pass(grace)
			p.beat("b", "c")
			p.beats(grace-20*time.Second, "b", "c")
			p.wantWithheld(true, "a")
			p.beat("a")
			p.want(Healthy, "a")
			p.wantWithheld(false, "a")
		}},
		{"all members not ready", "the hub has lost its connection to the members of push mode, but observes heartbeats",
			func(p *scenario) {
				p.track(time.Minute, "b", "c")
				p.beat("a", "b", "c")
				p.changed = p.m.Report("a", false, p.now)
				p.wantChanged()
				p.wantWithheld(false, "a")
				p.m.Report("b", false, p.now)
				p.changed = p.m.Report("c", false, p.now)
				p.wantChanged("a", "b", "c")
				p.beats(10*grace, "a", "b", "c")
				p.wantWithheld(true, "a", "b", "c")
				p.want(Healthy, "a", "b", "c")
				p.changed = p.m.Report("b", true, p.now)
				p.wantChanged("b")
				p.wantWithheld(true, "a", "c") // both have a new grace period
				p.beats(grace, "a", "b", "c")
				p.wantWithheld(false, "a", "c")
			}},
		{"one of three members not ready", "a single member is no outage", func(p *scenario) {
			p.track(time.Minute, "b", "c")
			p.beat("a", "b", "c")
			p.m.Report("a", false, p.now)
			p.beats(grace, "a", "b", "c")
			p.wantWithheld(false, "a")
		}},
		{"silent members and members not ready", "an outage counts both", func(p *scenario) {
			p.track(time.Minute, "b", "c", "d", "e")
			p.beat("a", "b", "c", "d", "e")
			p.m.Report("a", false, p.now)
			p.m.Report("b", false, p.now)
			p.beats(grace, "a", "b", "d", "e")
			p.wantWithheld(true, "a", "b", "c")
		}},
		{"hub cannot connect to members of push mode", "heartbeats of other members do not prove these connections",
			func(p *scenario) {
				p.track(time.Minute, "b", "c", "d", "e", "f", "g")
				p.beat("a", "b", "c", "d", "e", "f", "g")
				p.m.SetPush("a", true, p.now)
				p.m.SetPush("b", true, p.now)
				p.m.Report("a", false, p.now)
				p.wantWithheld(false, "a") // one of two
				p.changed = p.m.Report("b", false, p.now)
				p.wantChanged("a", "b")
				p.m.Report("c", false, p.now) // of pull mode: its own failure
				p.beats(10*grace, "a", "b", "c", "d", "e", "f", "g")
				p.wantWithheld(true, "a", "b")
				p.wantWithheld(false, "c")
				if o, _ := p.m.Outage(); !o.Push || o.Affected != 2 || o.Tracked != 2 {
					p.t.Fatalf("outage %+v", o)
				}
				p.changed = p.m.Report("a", true, p.now)
				p.wantChanged("a")
				p.wantWithheld(true, "b") // b has a new grace period
				p.beats(grace, "a", "b", "c", "d", "e", "f", "g")
				p.wantWithheld(false, "b")
			}},
		{"member not ready when the hub starts", "members without a first heartbeat do not prove that the hub works",
			func(p *scenario) {
				p.track(time.Minute, "b", "c")
				p.changed = p.m.Report("a", false, p.now)
				p.wantChanged("a")
				p.wantWithheld(true, "a")
				if _, suspected := p.m.Outage(); suspected {
					p.t.Fatal("one of three members is affected: want no outage")
				}
				p.beat("b")
				p.wantWithheld(false, "a")
			}},
		{"loss in an outage is no flap", "a failure of the hub makes no member flap", func(p *scenario) {
			p.track(time.Minute, "b", "c", "d")
			for range 3 {
				p.beat("a", "b", "c", "d")
				p.want(Healthy, "a", "b", "c", "d")
				p.pass(grace)
			}
			p.beat("a", "b", "c", "d")
			p.beats(grace, "b", "c", "d")
			p.want(Lost, "a")
			p.beat("a") // after the first loss outside of an outage
			p.want(Healthy, "a")
		}},
		{"flaps from before an outage", "an outage neither adds nor removes flaps", func(p *scenario) {
			p.track(time.Minute, "b", "c", "d")
			for range 2 {
				p.beat("a")
				p.beats(grace, "b", "c", "d")
			}
			p.beats(grace+20*time.Second, "a", "b", "c", "d")
			p.want(Healthy, "a")
			p.pass(grace) // without heartbeats of any member
			p.wantWithheld(true, "a")
			p.beat("a", "b", "c", "d")
			p.want(Unsteady, "a")
			if v, _ := p.m.Health("a"); v.Hold != grace {
				p.t.Fatalf("hold is %s, want one grace period", v.Hold)
			}
		}},
		{"one of two members silent", "half of a fleet of two is one failed member", func(p *scenario) {
			p.track(time.Minute, "b")
			p.beats(grace, "b")
			p.want(Lost, "a")
			p.wantWithheld(false, "a")
		}},
		{"two of three members silent", "most members, and yet too few for an outage", func(p *scenario) {
			p.track(time.Minute, "b", "c")
			p.beats(grace, "c")
			p.want(Lost, "a", "b")
			p.wantWithheld(false, "a", "b")
		}},
		{"three of three members silent", "all members silent is an outage", func(p *scenario) {
			p.track(time.Minute, "b", "c")
			p.pass(grace)
			p.wantWithheld(true, "a", "b", "c")
		}},
		{"two of two members silent", "all members silent is an outage", func(p *scenario) {
			p.track(time.Minute, "b")
			p.pass(grace)
			p.wantWithheld(true, "a", "b")
		}},
		{"only member silent", "an outage of the hub has the same symptoms", func(p *scenario) {
			p.pass(10 * grace)
			p.wantWithheld(true, "a")
		}},
		{"member untracked in an outage", "an outage lasts while all remaining members are silent", func(p *scenario) {
			p.track(time.Minute, "b", "c")
			p.pass(grace)
			p.wantWithheld(true, "a", "b", "c")
			p.changed = p.m.Untrack("c", p.now)
			p.wantChanged()
			p.wantWithheld(true, "a", "b")
			p.beat("b")
			p.beats(grace, "b")
			p.wantWithheld(false, "a")
		}},

		{"deadline during a pause", "a hub that cannot observe heartbeats must not report losses", func(p *scenario) {
			p.beat("a")
			p.pause()
			p.pass(time.Hour)
			p.changed = p.m.Expire(p.now)
			p.wantChanged()
			p.want(Healthy, "a")
		}},
		{"pause at the end of the grace period", "a loss that was not reported before the pause waits for its end",
			func(p *scenario) {
				p.beat("a")
				p.now = p.now.Add(grace)
				p.pause()
				p.changed = p.m.Expire(p.now)
				p.wantChanged()
				p.resume()
				p.pass(0)
				p.want(Lost, "a")
			}},
		{"pause in an outage", "the end of a pause does not end an outage", func(p *scenario) {
			p.track(time.Minute, "b", "c", "d")
			p.pass(grace)
			p.pause()
			p.pass(time.Hour)
			p.resume()
			p.wantWithheld(true, "a", "b", "c", "d")
		}},
		{"long pause", "heartbeats may have failed with the API server: the member has a whole grace period",
			func(p *scenario) {
				p.beat("a")
				p.pass(grace - 1)
				p.pause()
				p.pass(time.Minute)
				p.resume()
				p.pass(grace - 1)
				p.want(Healthy, "a")
				p.pass(1)
				p.want(Lost, "a")
			}},
		{"many short pauses", "every watch ends after some minutes, which must not hide a failed member",
			func(p *scenario) {
				p.beat("a")
				for range 12 {
					p.pass(15 * time.Second)
					p.want(Healthy, "a")
					p.pause()
					p.pass(59 * time.Second)
					p.resume()
				}
				p.pass(15 * time.Second)
				p.want(Lost, "a")
			}},
		{"pause after a loss", "no member recovers without a heartbeat", func(p *scenario) {
			p.pass(grace)
			p.pause()
			p.pass(time.Hour)
			p.resume()
			p.pass(2 * grace)
			p.want(Lost, "a")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Log(tt.reason)
			tt.run(newScenario(t, Policy{}, "a"))
		})
	}
}

func anyLost(p *scenario) bool { return p.m.Stats().Lost > 0 }

func TestMonitor_UntrackDropsState(t *testing.T) {
	p := newScenario(t, Policy{}, "a")
	for range 3 {
		p.beat("a")
		p.pass(grace)
	}
	p.m.Untrack("a", p.now)
	_, tracked := p.m.Health("a")
	require.False(t, tracked)
	_, due := p.m.Next()
	require.False(t, due)

	p.track(time.Minute, "a")
	p.want(Awaited, "a")
	p.pass(grace)
	p.beat("a")
	p.want(Healthy, "a") // Unsteady if the flaps were still stored

	p.m.Untrack("a", p.now)
	p.m.Gone("a")
	require.Empty(t, p.m.members, "a member that is not tracked and has no Lease must use no memory")
}

func TestOutage_Message(t *testing.T) {
	p := newScenario(t, Policy{}, "a", "b", "c")
	p.pass(grace)
	outage, suspected := p.m.Outage()
	require.True(t, suspected)
	require.Equal(t, "3 of 3 members are late with their heartbeats or not ready; since 2026-01-01T00:01:15Z taints and "+
		"failover are withheld, because the hub itself may be the cause.",
		outage.String())
}

// TestMonitor_NoChangeIsNil checks that a member whose suspension is the same before and after a call is not reported,
// and that the result is nil if no other member has changed.
func TestMonitor_NoChangeIsNil(t *testing.T) {
	m := NewMonitor(Policy{})
	require.Nil(t, m.flipped([]string{"a"}, map[*member]bool{{name: "a"}: false}))
}

// TestMonitor_UntrackWithUnrenewedLease checks that a member whose Lease was created again, and not renewed yet, keeps
// its last heartbeat.
func TestMonitor_UntrackWithUnrenewedLease(t *testing.T) {
	p := newScenario(t, Policy{}, "a")
	p.beat("a")
	p.m.Gone("a")
	p.m.Relist(map[string]time.Time{"a": {}}, p.now)
	p.m.Untrack("a", p.now)
	p.track(time.Minute, "a")
	v, _ := p.m.Health("a")
	require.Equal(t, Healthy, v.State)

	p.m.Gone("a")
	p.m.Untrack("a", p.now)
	p.track(time.Minute, "a")
	v, _ = p.m.Health("a")
	require.Equal(t, Awaited, v.State, "without a Lease, the member is not known any more")
}

func TestMonitor_ClockSkew(t *testing.T) {
	p := newScenario(t, Policy{}, "a")
	p.m.Observe("a", epoch.Add(time.Hour), epoch.Add(time.Second))
	v, _ := p.m.Health("a")
	require.Equal(t, time.Hour-time.Second, v.Skew)
	require.Equal(t, epoch.Add(time.Second), v.LastHeard)
}

// TestMemberSize limits the memory of a member, because fleets may be large.
func TestMemberSize(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(member{}), uintptr(96), "the size class in which a member is allocated")
}

func TestPolicy_DefaultGraceAndHold(t *testing.T) {
	for period, want := range map[time.Duration]time.Duration{
		time.Second: 5 * time.Second, time.Minute: grace, 10 * time.Minute: 1950 * time.Second,
	} {
		require.Equal(t, want, DefaultGrace(period))
	}
	for flaps, want := range []time.Duration{0, 1, 2, 4, 8, 8, 8} {
		require.Equal(t, want*time.Minute, DefaultHold(flaps, time.Minute))
	}
	require.Equal(t, 8*time.Minute, DefaultHold(255, time.Minute))
	for in, want := range map[time.Duration]time.Duration{
		-1: time.Minute, 0: time.Minute, 1: time.Second, time.Hour: 10 * time.Minute, 7 * time.Second: 7 * time.Second,
	} {
		require.Equal(t, want, bounded(in))
	}
}
