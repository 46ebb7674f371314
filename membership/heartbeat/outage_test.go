package heartbeat

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// simulation is a fleet in virtual time. Members send heartbeats at fixed intervals with different phases, unless they
// are disconnected.
type simulation struct {
	m        *Monitor
	now      time.Time
	phases   []time.Duration
	cut      []bool
	notReady []bool
	since    []time.Time // when a member became not ready
}

func newSimulation(phases []time.Duration) *simulation {
	n := len(phases)
	s := &simulation{
		m: NewMonitor(Policy{}), now: epoch, phases: phases, cut: make([]bool, n), notReady: make([]bool, n),
		since: make([]time.Time, n),
	}
	for i := range phases {
		s.m.Track(s.name(i), time.Minute, s.now)
	}
	return s
}

func (s *simulation) name(i int) string { return fmt.Sprint("m", i) }

// run lets time pass, and returns the first member that would be tainted. A member that is not ready is tainted after
// 30 s.
func (s *simulation) run(d time.Duration, each func()) (tainted string) {
	for end := s.now.Add(d); s.now.Before(end); s.now = s.now.Add(time.Second) {
		if each != nil {
			each()
		}
		for i, phase := range s.phases {
			if !s.cut[i] && s.now.Sub(epoch)%time.Minute == phase {
				s.m.Observe(s.name(i), s.now, s.now)
			}
		}
		s.m.Expire(s.now)
		for i := range s.phases {
			v, _ := s.m.Health(s.name(i))
			if !v.Suspended && (v.State.Unknown() || s.notReady[i] && s.now.Sub(s.since[i]) >= 30*time.Second) {
				return s.name(i)
			}
		}
	}
	return ""
}

func (s *simulation) report(i int, ready bool) {
	if s.notReady[i] == ready {
		s.notReady[i], s.since[i] = !ready, s.now
		s.m.Report(s.name(i), ready, s.now)
	}
}

// TestOutage_TaintsNoMember checks, for fleets of all sizes, that an outage of the hub taints no member, neither during
// the outage nor when the members return one by one, as long as each does so within a grace period after the first.
func TestOutage_TaintsNoMember(t *testing.T) {
	for _, egress := range []bool{false, true} {
		t.Run(fmt.Sprintf("egress only: %v", egress), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.SampledFrom([]int{1, 2, 3, 4, 5, 9}).Draw(t, "members")
				seconds := func(most int, label string) time.Duration {
					return time.Duration(rapid.IntRange(0, most).Draw(t, label)) * time.Second
				}
				var phases, lostAfter, backAfter []time.Duration
				for range n {
					phases = append(phases, seconds(59, "phase"))
					lostAfter = append(lostAfter, seconds(20, "lost"))
					// A heartbeat is sent at the next time on the grid, up to a minute later.
					backAfter = append(backAfter, seconds(int(grace/time.Second)-60, "back"))
				}
				s := newSimulation(phases)
				length := 2*time.Minute + seconds(3600, "length") // a shorter outage may affect some members only
				requireNoTaint := func(tainted string) {
					if tainted != "" {
						t.Fatalf("after %s: %s is tainted in a fleet of %d members, want no taint", s.now.Sub(epoch), tainted, n)
					}
				}
				requireNoTaint(s.run(5*time.Minute, nil))
				begin := s.now
				requireNoTaint(s.run(length+2*grace, func() {
					for i := range s.phases {
						disconnected := s.now.Sub(begin) >= lostAfter[i]
						returned := s.now.Sub(begin) >= length+backAfter[i]
						if egress {
							s.report(i, !disconnected || returned)
						} else {
							s.cut[i] = disconnected && !returned
						}
					}
				}))
				for i := range s.phases {
					if v, _ := s.m.Health(s.name(i)); v.State != Healthy || v.Suspended {
						t.Fatalf("%s: health is %+v after the outage, want Healthy and not suspended", s.name(i), v)
					}
				}
			})
		})
	}
}

// TestOutage_FiveMinutes checks an outage of five minutes with the default options, and members that return late or not
// at all.
func TestOutage_FiveMinutes(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprint(n, " members"), func(t *testing.T) {
			var phases []time.Duration
			for i := range n {
				phases = append(phases, time.Duration(i*60/n)*time.Second)
			}
			s := newSimulation(phases)
			if tainted := s.run(5*time.Minute, nil); tainted != "" {
				t.Fatalf("%s is tainted before the outage", tainted)
			}
			for i := range s.cut {
				s.cut[i] = true
			}
			if tainted := s.run(5*time.Minute, nil); tainted != "" {
				t.Fatalf("%s is tainted after %s", tainted, s.now.Sub(epoch))
			}
			// All members but the last return.
			for i := range n - 1 {
				s.cut[i] = false
			}
			begin := s.now
			tainted := s.run(time.Hour, nil)
			switch after := s.now.Sub(begin); {
			case n == 1 && tainted != "":
				t.Fatalf("the only member is tainted after %s", after)
			case n > 1 && (tainted != s.name(n-1) || after < grace || after > grace+time.Minute):
				t.Fatalf("%q is tainted after %s, want %s after a new grace period", tainted, after, s.name(n-1))
			}
		})
	}
}

// TestOutage_ThreeOfFiveReturn checks that the other two members, which are too few for an outage, have a full grace
// period: they are tainted only after it, and not at all if they return within it.
func TestOutage_ThreeOfFiveReturn(t *testing.T) {
	for _, returns := range []bool{false, true} {
		s := newSimulation(make([]time.Duration, 5))
		s.run(5*time.Minute, nil)
		for i := range s.cut {
			s.cut[i] = true
		}
		if tainted := s.run(10*time.Minute, nil); tainted != "" {
			t.Fatalf("%s is tainted during the outage", tainted)
		}
		s.cut[0], s.cut[1], s.cut[2] = false, false, false
		begin := s.now
		if tainted := s.run(grace, nil); tainted != "" {
			t.Fatalf("%s is tainted %s after three of five members have returned", tainted, s.now.Sub(begin))
		}
		if _, outage := s.m.Outage(); outage {
			t.Fatal("three of five members have returned: want no outage")
		}
		if returns {
			s.cut[3], s.cut[4] = false, false
			s.m.Observe(s.name(3), s.now, s.now)
			s.m.Observe(s.name(4), s.now, s.now)
		}
		tainted := s.run(time.Hour, nil)
		if returns != (tainted == "") {
			t.Errorf("the other two members return: %v, tainted: %q", returns, tainted)
		}
	}
}

// TestOutage_NoneForSingleFailure checks that a single member that fails is tainted after its grace period, in a fleet
// of two or more.
func TestOutage_NoneForSingleFailure(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		s := newSimulation(make([]time.Duration, n))
		s.run(5*time.Minute, nil)
		s.cut[0] = true
		begin := s.now
		if tainted := s.run(time.Hour, nil); tainted != "m0" || s.now.Sub(begin) > grace {
			t.Errorf("%d members: %q is tainted after %s, want m0 within the grace period", n, tainted, s.now.Sub(begin))
		}
	}
}
