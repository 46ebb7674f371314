package heartbeat

import (
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// play is a scripted sequence of events.
type play struct {
	t       *testing.T
	m       *Monitor
	now     time.Time
	renewed time.Time
	changed []string // by the last act
}

func newPlay(t *testing.T, policy Policy, members ...string) *play {
	p := &play{t: t, m: NewMonitor(policy), now: epoch, renewed: epoch.Add(-time.Hour)}
	p.track(time.Minute, members...)
	return p
}

func (p *play) track(period time.Duration, members ...string) {
	for _, name := range members {
		p.changed = p.m.Track(name, period, p.now)
	}
}

func (p *play) beat(members ...string) {
	for _, name := range members {
		p.renewed = p.renewed.Add(time.Second)
		p.changed = p.m.Observe(name, p.renewed, p.now)
	}
}

// beats lets time pass in which only these members send a heartbeat each 20 s.
func (p *play) beats(d time.Duration, members ...string) {
	for ; d > 0; d -= 20 * time.Second {
		p.beat(members...)
		p.pass(min(d, 20*time.Second))
	}
}

// pass lets time pass from deadline to deadline, like a Watcher.
func (p *play) pass(d time.Duration) {
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

func (p *play) pause()  { p.m.Pause(p.now) }
func (p *play) resume() { p.changed = p.m.Resume(p.now) }

func (p *play) want(state State, members ...string) {
	p.t.Helper()
	for _, name := range members {
		v, ok := p.m.Health(name)
		if !ok || v.State != state {
			p.t.Fatalf("after %s: %s is %s, want %s", p.now.Sub(epoch), name, v.State, state)
		}
	}
}

func (p *play) wantChanged(members ...string) {
	p.t.Helper()
	if diff := cmp.Diff(members, p.changed); diff != "" {
		p.t.Fatalf("after %s: changed (-want +got):\n%s", p.now.Sub(epoch), diff)
	}
}

func (p *play) wantWithheld(want bool, members ...string) {
	p.t.Helper()
	for _, name := range members {
		if v, _ := p.m.Health(name); v.Suspended != want {
			p.t.Fatalf("after %s: %s is suspended: %v, want %v", p.now.Sub(epoch), name, v.Suspended, want)
		}
	}
}

const grace = 195 * time.Second // of a minute

func TestMonitor(t *testing.T) {
	tests := []struct {
		name   string
		reason string
		play   func(*play)
	}{
		{"lost at the end of the grace", "not a moment earlier: two heartbeats lost and the third late is still fine",
			func(p *play) {
				p.beat("a")
				p.pass(grace - 1)
				p.want(Healthy, "a")
				p.pass(1)
				p.want(Lost, "a")
				p.wantChanged("a")
			}},
		{"awaited for a whole grace", "a hub that restarts knows nothing, so it says nothing until then", func(p *play) {
			p.pass(grace - 1)
			p.want(Awaited, "a")
			p.pass(1)
			p.want(Lost, "a")
		}},
		{"the same Lease again", "informers repeat what they know; a dead member would live for ever", func(p *play) {
			p.beat("a")
			for range 20 {
				p.pass(20 * time.Second)
				p.m.Observe("a", p.renewed, p.now)
			}
			p.want(Lost, "a")
		}},
		{"a clock that goes back", "the agent's time is only ever compared with itself", func(p *play) {
			for range 20 {
				p.renewed = p.renewed.Add(-time.Hour)
				p.beats(20*time.Second, "a")
			}
			p.want(Healthy, "a")
		}},
		{"a list at first", "a Lease that was there before may be ages old: only its next change is a sign of life",
			func(p *play) {
				p.changed = p.m.Relist(map[string]time.Time{"a": epoch}, p.now)
				p.wantChanged()
				p.want(Awaited, "a")
				p.changed = p.m.Relist(map[string]time.Time{"a": epoch.Add(1e6)}, p.now)
				p.wantChanged("a")
				p.want(Healthy, "a")
			}},
		{"heard before it is tracked", "a member that joins is Healthy at once, not after another period", func(p *play) {
			p.beat("new")
			p.pass(time.Second)
			p.track(time.Minute, "new")
			p.want(Healthy, "new")
		}},
		{"listed before it is tracked", "the same of a member that the hub learns of after its Lease", func(p *play) {
			p.m.Relist(map[string]time.Time{"new": epoch}, p.now)
			p.track(time.Minute, "new")
			p.want(Awaited, "new")
		}},
		{"a Lease made anew", "an agent whose Lease was deleted makes another, which is a heartbeat", func(p *play) {
			p.beat("a")
			p.m.Gone("a")
			p.pass(grace)
			p.want(Lost, "a")
			p.m.Observe("a", p.renewed, p.now)
			p.want(Healthy, "a")
		}},
		{"never renewed", "another client created the Lease", func(p *play) {
			p.m.Observe("a", time.Time{}, p.now)
			p.want(Awaited, "a")
			p.beat("a")
			p.pass(grace - 1)
			p.m.Observe("a", time.Time{}, p.now)
			p.pass(1)
			p.want(Lost, "a")
		}},
		{"period shortened", "the agent has yet to hear of it: a grace from now on, not from its last heartbeat",
			func(p *play) {
				p.track(10*time.Minute, "a")
				p.beat("a")
				p.pass(9 * time.Minute)
				p.track(time.Second, "a")
				p.pass(5*time.Second - 1)
				p.want(Healthy, "a")
				p.pass(1)
				p.want(Lost, "a")
			}},
		{"period shortened at the end", "or else a period that is changed all the time would keep the dead alive",
			func(p *play) {
				p.beat("a")
				p.pass(grace - time.Second)
				p.track(50*time.Second, "a")
				p.pass(time.Second)
				p.want(Lost, "a")
			}},
		{"period lengthened", "the agent may already have it", func(p *play) {
			p.beat("a")
			p.pass(grace - 1)
			p.track(10*time.Minute, "a")
			p.pass(1950*time.Second - grace)
			p.want(Healthy, "a")
			p.pass(1)
			p.want(Lost, "a")
		}},

		{"first recovery", "a member that comes back once is trusted at once", func(p *play) {
			p.beat("a")
			p.pass(grace)
			p.beat("a")
			p.want(Healthy, "a")
			p.wantChanged("a")
		}},
		{"flapping", "each loss soon after another doubles the time to hold steady, up to eight graces", func(p *play) {
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
		{"flapping alone", "a hub with a single member suspects itself each time", func(p *play) {
			for range 4 {
				p.beat("a")
				p.want(Healthy, "a")
				p.pass(grace)
				p.wantWithheld(true, "a")
			}
		}},
		{"quiet again", "after sixteen graces without a loss the past is forgotten", func(p *play) {
			for range 3 {
				p.beat("a")
				p.pass(grace)
			}
			p.beats(17*grace, "a")
			p.want(Healthy, "a")
			p.pass(grace)
			p.beat("a")
			p.want(Healthy, "a")
		}},
		{"late while unsteady", "steady means steady: the time begins anew", func(p *play) {
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

		{"outage", "when all fall silent at once, the hub suspects itself before the first of them is lost", func(p *play) {
			p.track(time.Minute, "b", "c", "d")
			for _, name := range []string{"a", "b", "c", "d"} {
				p.beat(name)
				p.pass(15 * time.Second)
			}
			for !lostAny(p) {
				p.pass(time.Second)
			}
			p.want(Lost, "a")
			p.want(Healthy, "b", "c", "d")
			p.wantWithheld(true, "a")
			p.pass(time.Minute)
			p.wantWithheld(true, "a", "b", "c", "d")
		}},
		{"end of an outage", "the members that are still silent have a fresh grace from then on", func(p *play) {
			p.track(time.Minute, "b", "c", "d")
			p.beat("a", "b", "c", "d")
			p.pass(grace)
			p.wantWithheld(true, "a", "b", "c", "d")
			p.beat("d")
			p.wantWithheld(true, "a", "b", "c")
			p.beat("c")
			if _, suspected := p.m.Outage(); suspected {
				p.t.Fatal("half are silent, and the hub still suspects itself")
			}
			p.wantChanged("c")
			p.wantWithheld(true, "a", "b")
			end := p.now.Add(grace)
			p.beats(grace-time.Second, "c", "d")
			p.wantWithheld(true, "a", "b")
			if v, _ := p.m.Health("a"); !v.SuspendedUntil.Equal(end) {
				p.t.Fatalf("held until %s, want %s", v.SuspendedUntil, end)
			}
			p.pass(time.Second)
			p.wantChanged("a", "b")
			p.wantWithheld(false, "a", "b")
		}},
		{"return within the fresh grace", "nothing was ever done about the member", func(p *play) {
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
		{"all are not ready", "the hub has lost its way to the members of push mode, and hears their agents all the same",
			func(p *play) {
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
				p.wantWithheld(true, "a", "c") // they have a fresh grace
				p.beats(grace, "a", "b", "c")
				p.wantWithheld(false, "a", "c")
			}},
		{"one of three is not ready", "that is no outage", func(p *play) {
			p.track(time.Minute, "b", "c")
			p.beat("a", "b", "c")
			p.m.Report("a", false, p.now)
			p.beats(grace, "a", "b", "c")
			p.wantWithheld(false, "a")
		}},
		{"some are silent and some not ready", "both count", func(p *play) {
			p.track(time.Minute, "b", "c", "d", "e")
			p.beat("a", "b", "c", "d", "e")
			p.m.Report("a", false, p.now)
			p.m.Report("b", false, p.now)
			p.beats(grace, "a", "b", "d", "e")
			p.wantWithheld(true, "a", "b", "c")
		}},
		{"the hub loses its way to the members of push mode", "heartbeats of other members are no evidence of that way",
			func(p *play) {
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
				p.wantWithheld(true, "b") // it has a fresh grace
				p.beats(grace, "a", "b", "c", "d", "e", "f", "g")
				p.wantWithheld(false, "b")
			}},
		{"not ready when the hub starts", "members that were not heard yet are no evidence that the hub is well",
			func(p *play) {
				p.track(time.Minute, "b", "c")
				p.changed = p.m.Report("a", false, p.now)
				p.wantChanged("a")
				p.wantWithheld(true, "a")
				if _, suspected := p.m.Outage(); suspected {
					p.t.Fatal("one of three is no outage")
				}
				p.beat("b")
				p.wantWithheld(false, "a")
			}},
		{"a loss in an outage is no flap", "the hub's own failure makes no member flap", func(p *play) {
			p.track(time.Minute, "b", "c", "d")
			for range 3 {
				p.beat("a", "b", "c", "d")
				p.want(Healthy, "a", "b", "c", "d")
				p.pass(grace)
			}
			p.beat("a", "b", "c", "d")
			p.beats(grace, "b", "c", "d")
			p.want(Lost, "a")
			p.beat("a") // its first loss that was its own
			p.want(Healthy, "a")
		}},
		{"flaps from before an outage", "are neither added to nor forgotten", func(p *play) {
			p.track(time.Minute, "b", "c", "d")
			for range 2 {
				p.beat("a")
				p.beats(grace, "b", "c", "d")
			}
			p.beats(grace+20*time.Second, "a", "b", "c", "d")
			p.want(Healthy, "a")
			p.pass(grace) // all
			p.wantWithheld(true, "a")
			p.beat("a", "b", "c", "d")
			p.want(Unsteady, "a")
			if v, _ := p.m.Health("a"); v.Hold != grace {
				p.t.Fatalf("hold %s, want one grace", v.Hold)
			}
		}},
		{"one of two silent", "half a fleet of two is one dead member", func(p *play) {
			p.track(time.Minute, "b")
			p.beats(grace, "b")
			p.want(Lost, "a")
			p.wantWithheld(false, "a")
		}},
		{"two of three silent", "most, and yet too few to suspect a common cause", func(p *play) {
			p.track(time.Minute, "b", "c")
			p.beats(grace, "c")
			p.want(Lost, "a", "b")
			p.wantWithheld(false, "a", "b")
		}},
		{"all of three silent", "all members are more than dead members can explain", func(p *play) {
			p.track(time.Minute, "b", "c")
			p.pass(grace)
			p.wantWithheld(true, "a", "b", "c")
		}},
		{"both of two silent", "all members are more than dead members can explain", func(p *play) {
			p.track(time.Minute, "b")
			p.pass(grace)
			p.wantWithheld(true, "a", "b")
		}},
		{"the only one silent", "an outage of the hub looks the same", func(p *play) {
			p.pass(10 * grace)
			p.wantWithheld(true, "a")
		}},
		{"the rest untracked", "an outage goes on while all that are left are silent", func(p *play) {
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

		{"paused", "a hub that cannot see must not judge", func(p *play) {
			p.beat("a")
			p.pause()
			p.pass(time.Hour)
			p.changed = p.m.Expire(p.now)
			p.wantChanged()
			p.want(Healthy, "a")
		}},
		{"paused when it was due", "what was not said while the hub could see may not be true any more", func(p *play) {
			p.beat("a")
			p.now = p.now.Add(grace)
			p.pause()
			p.changed = p.m.Expire(p.now)
			p.wantChanged()
			p.resume()
			p.pass(0)
			p.want(Lost, "a")
		}},
		{"paused in an outage", "losing the watch as well is no reason to trust the first results", func(p *play) {
			p.track(time.Minute, "b", "c", "d")
			p.pass(grace)
			p.pause()
			p.pass(time.Hour)
			p.resume()
			p.wantWithheld(true, "a", "b", "c", "d")
		}},
		{"a long pause", "a heartbeat may have been lost with the API server: a whole grace", func(p *play) {
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
		{"many short pauses", "every watch ends after some minutes: the dead must not live from one to the next",
			func(p *play) {
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
		{"a pause changes nothing for the lost", "no member recovers without a heartbeat", func(p *play) {
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
			tt.play(newPlay(t, Policy{}, "a"))
		})
	}
}

func lostAny(p *play) bool { return p.m.Stats().Lost > 0 }

func TestMonitor_UntrackDropsState(t *testing.T) {
	p := newPlay(t, Policy{}, "a")
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
	p.want(Healthy, "a") // it would have to hold steady if its flaps were remembered

	p.m.Untrack("a", p.now)
	p.m.Gone("a")
	require.Empty(t, p.m.members, "a member that is neither tracked nor has a Lease takes memory")
}

func TestOutageMessage(t *testing.T) {
	p := newPlay(t, Policy{}, "a", "b", "c")
	p.pass(grace)
	outage, suspected := p.m.Outage()
	require.True(t, suspected)
	require.Equal(t, "3 of 3 members are late with their heartbeats or not ready; since 2026-01-01T00:01:15Z taints and "+
		"failover are withheld, because the hub itself may be the cause.",
		outage.String())
}

func TestMonitor_ClockSkew(t *testing.T) {
	p := newPlay(t, Policy{}, "a")
	p.m.Observe("a", epoch.Add(time.Hour), epoch.Add(time.Second))
	v, _ := p.m.Health("a")
	require.Equal(t, time.Hour-time.Second, v.Skew)
	require.Equal(t, epoch.Add(time.Second), v.LastHeard)
}

// TestMemberSize limits the memory of a member, because fleets may be large.
func TestMemberSize(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(member{}), uintptr(96), "the size class in which a member is allocated")
}

func TestPolicyFigures(t *testing.T) {
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
