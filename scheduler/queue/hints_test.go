package queue

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestEvent(t *testing.T) {
	playAll(t, []scenario{
		{"helps one", "the others would be tried in vain", func(p *play) {
			p.reject("A", "a", "b")
			p.reject("B", "c")
			p.Event(change{"A", "ac"})
			p.pop("a")
			p.want(Stats{InFlight: 1, Unschedulable: 2})
		}},
		{"one of several plugins", "it takes only one cluster, and that may have been rejected by this one alone",
			func(p *play) {
				p.reject("AB", "a")
				p.Event(change{"C", "a"})
				p.want(Stats{Unschedulable: 1})
				p.Event(change{"B", "a"})
				p.pop("a")
			}},
		{"by no plugin", "nobody knows what would help, so anything may", func(p *play) {
			p.fly("a", "b")
			p.done(Unschedulable(), "a")
			p.done(Unschedulable(""), "b")
			pass(time.Second)
			p.Event(change{})
			p.pop("a", "b")
		}},
		{"before its backoff is over", "it waits for the rest, and needs no second event then", func(p *play) {
			p.fly("a")
			p.done(Unschedulable("A"), "a")
			p.Event(everything)
			p.want(Stats{Backoff: 1})
			pass(time.Second)
			p.pop("a")
		}},
		{"rejected by others the second time", "only the last rejection counts", func(p *play) {
			p.reject("A", "a")
			p.Event(everything)
			p.pop("a")
			p.done(Unschedulable("B"), "a")
			p.Event(change{"A", "a"})
			p.want(Stats{Unschedulable: 1})
		}},
		{"in flight", "the decision was made on what was before the event", func(p *play) {
			p.fly("a", "b", "c")
			p.Event(change{"A", "a"})
			p.Event(change{"B", "b"})
			p.done(Unschedulable("A"), "a", "b", "c")
			p.want(Stats{Backoff: 1, Unschedulable: 2})
			pass(time.Second)
			p.pop("a")
		}},
		{"before the flight", "what the snapshot has had is no news", func(p *play) {
			p.fly("a")
			p.Event(everything)
			p.fly("b")
			p.done(Unschedulable("A"), "b")
			p.want(Stats{InFlight: 1, Unschedulable: 1})
		}},
		{"in an earlier flight", "the same of a key that flies again", func(p *play) {
			p.fly("slow", "z")
			p.Event(everything)
			p.add("z")
			p.done(Failed(), "z")
			p.pop("z")
			p.done(Unschedulable("A"), "z")
			p.want(Stats{InFlight: 1, Unschedulable: 1})
		}},
		{"more than one lock is held for", "keys are moved in batches, and none of them may be left out", func(p *play) {
			const n = 10*batch + 1
			for i := range n {
				p.Add(fmt.Sprintf("<%d>", i), 0)
			}
			for p.Stats().Active > 0 {
				item, err := p.Pop(p.t.Context())
				require.NoError(p.t, err)
				p.Done(item.Key, Unschedulable("A", "B"))
			}
			pass(time.Second)
			p.Event(change{"B", "<0> <5> <7>"})
			p.want(Stats{Active: 3, Unschedulable: n - 3})
			p.Event(change{"B", fmt.Sprintf("<%d>", n-1)})
			p.want(Stats{Active: 4, Unschedulable: n - 4})
			p.Event(change{"!", ""})
			p.want(Stats{Active: n})
			require.Empty(p.t, p.parked.lists)
		}},
	})
}

// TestNilHint checks that without hints every event may help every key.
func TestNilHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &play{New(Options[string, change]{OnPanic: func(_ string, reason any) { t.Error(reason) }}), t}
		p.reject("A", "a")
		p.fly("b")
		p.Event(change{})
		p.done(Unschedulable("A"), "b")
		p.want(Stats{Active: 1, Backoff: 1})
	})
}

// TestHintIsAskedOnce checks the documented costs: Hint is called once per event and plugin, and its result once per
// key.
func TestHintIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		p := newPlay(t, Options[string, change]{Hint: func(plugin string, c change) func(string) bool {
			asked = append(asked, plugin)
			if plugin == "C" {
				return nil
			}
			return func(key string) bool {
				asked = append(asked, plugin+key)
				return hint(plugin, c)(key)
			}
		}})
		p.reject("AC", "a", "b")
		p.reject("BA", "c")
		p.fly("d")
		p.Event(change{"AB", "b"})
		want := []string{"A", "Aa", "Ab", "Ac", "B", "Bc", "C"}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Fatalf("asked (-want +got):\n%s", diff)
		}

		asked = nil
		p.done(Unschedulable("C", "A"), "d")
		if diff := cmp.Diff([]string{"A", "Ad", "C"}, asked); diff != "" {
			t.Fatalf("asked at Done (-want +got):\n%s", diff)
		}

		asked = nil
		p.Remove("d")
		p.Remove("a")
		p.Remove("c")
		p.Event(change{"AB", "b"})
		require.Empty(t, asked, "nobody is left whom it might help")
	})
}

func TestPanic(t *testing.T) {
	tests := []struct {
		name   string
		reason string
		event  change
	}{
		{"of the hint", "a plugin's mistake may cost an attempt, but not the process, nor the key", change{"!", ""}},
		{"for a key", "the same, further in", change{"AB", "!"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var notified []string
				p := newPlay(t, Options[string, change]{OnPanic: func(plugin string, reason any) {
					notified = append(notified, fmt.Sprint(plugin, " ", reason))
				}})
				p.reject("A", "a")
				p.fly("b")
				p.Event(tt.event)
				p.done(Unschedulable("B"), "b")
				p.want(Stats{Active: 1, Backoff: 1})
				require.Len(t, notified, 2, tt.reason)
				require.Equal(t, "AB", notified[0][:1]+notified[1][:1])

				silent := newPlay(t, Options[string, change]{})
				silent.reject("A", "a")
				silent.Event(tt.event)
				silent.pop("a")
			})
		})
	}
}

// TestHintEndsGoroutine checks that a hint that ends its goroutine leaves neither the key in flight nor the Queue
// locked.
func TestHintEndsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, Options[string, change]{Hint: func(string, change) func(string) bool {
			runtime.Goexit()
			return nil
		}})
		p.fly("a")
		p.Event(everything)
		go p.done(Unschedulable("A"), "a")
		synctest.Wait()
		p.want(Stats{Backoff: 1})
	})
}

// TestHintUsesQueue checks that no lock is held while a hint runs, and that calls by a hint take effect.
func TestHintUsesQueue(t *testing.T) {
	tests := []struct {
		name      string
		reason    string
		meanwhile func(*play)
		want      Stats
	}{
		{"nothing", "for comparison", func(*play) {}, Stats{Unschedulable: 1}},
		{"an event that helps", "it came when its key was no longer popped, and not yet given back", func(p *play) {
			p.Event(everything)
		}, Stats{Backoff: 1}},
		{"an event that does not", "it must be asked about all the same, and only once", func(p *play) {
			p.Event(change{"A", "z"})
		}, Stats{Unschedulable: 1}},
		{"added", "the hint's answer is about what the key was before", func(p *play) { p.add("a") }, Stats{Active: 1}},
		{"removed", "a hint must not bring it back", func(p *play) { p.Remove("a") }, Stats{}},
		{"given back twice", "the first has it already", func(p *play) { p.done(Scheduled(), "a") }, Stats{Unschedulable: 1}},
		{"shut down", "nobody will pop it", func(p *play) { p.ShutDown() }, Stats{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var once sync.Once
				var p *play
				p = newPlay(t, Options[string, change]{Hint: func(plugin string, c change) func(string) bool {
					once.Do(func() { tt.meanwhile(p) })
					return hint(plugin, c)
				}})
				p.fly("a")
				p.Event(change{"A", "b"})
				p.done(Unschedulable("A"), "a")
				if diff := cmp.Diff(tt.want, p.Stats()); diff != "" {
					t.Fatalf("%s: stats (-want +got):\n%s", tt.reason, diff)
				}
				require.Empty(t, p.log.events)
				require.Zero(t, p.log.fresh)
			})
		})
	}
}

// TestMovedDuringEvent checks that the result of a hint is ignored if the key has changed its state in the meantime.
func TestMovedDuringEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *play
		var meanwhile func()
		var asked int
		p = newPlay(t, Options[string, change]{Hint: func(string, change) func(string) bool {
			return func(string) bool { asked++; meanwhile(); return true }
		}})
		for name, do := range map[string]func(){
			"removed": func() { p.Remove("a") },
			"rejected anew": func() {
				p.fly("a")
				p.done(Unschedulable("A"), "a")
			},
		} {
			p.reject("A", "a")
			meanwhile, asked = do, 0
			p.Event(everything)
			require.Equal(t, 1, asked, "%s: what was decided since knew of the event", name)
			stats := p.Stats()
			require.Zero(t, stats.Active+stats.Backoff, name)
			p.Remove("a")
		}
	})
}

// TestSlowHint checks that other calls continue while a hint runs.
func TestSlowHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, Options[string, change]{Hint: func(string, change) func(string) bool {
			return func(string) bool { pass(time.Hour); return true }
		}})
		p.reject("A", "a")
		p.fly("b")
		before := time.Now()
		go p.Event(everything)
		synctest.Wait()
		go p.done(Unschedulable("A"), "b")
		synctest.Wait()
		p.fly("c")
		p.done(Scheduled(), "c")
		p.want(Stats{Unschedulable: 1, InFlight: 1})
		require.Equal(t, before, time.Now())
		pass(2 * time.Hour)
	})
}

// TestEndlessEvents checks that Done returns even if each hint causes an event, or if events are faster than hints.
func TestEndlessEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *play
		asked := 0
		p = newPlay(t, Options[string, change]{Hint: func(string, change) func(string) bool {
			asked++
			p.Event(change{})
			return nil
		}})
		p.fly("a")
		p.Event(change{})
		p.done(Unschedulable("A"), "a")
		p.want(Stats{Backoff: 1})
		require.Equal(t, remembered, asked)
	})
}

// TestMemoryOfEvents checks that a slow key does not make the Queue store events without limit, and that the key is
// still retried.
func TestMemoryOfEvents(t *testing.T) {
	playAll(t, []scenario{
		{"nobody in flight", "who asks next asks a newer snapshot", func(p *play) {
			p.Event(everything)
			require.Empty(p.t, p.log.events)
		}},
		{"up to the limit", "the hints are asked about each, and here none helps", func(p *play) {
			p.fly("slow")
			for range remembered {
				p.Event(change{"A", "z"})
			}
			p.done(Unschedulable("A"), "slow")
			p.want(Stats{Unschedulable: 1})
		}},
		{"beyond it", "what was forgotten may have helped", func(p *play) {
			p.fly("slow")
			for range 10 * remembered {
				p.Event(change{"A", "z"})
				require.LessOrEqual(p.t, len(p.log.events), remembered)
			}
			require.Empty(p.t, p.log.events, "nobody waits for what came after, either")
			p.done(Unschedulable("A"), "slow")
			p.want(Stats{Backoff: 1})
		}},
		{"another is slow", "a key that is quick must not pay for it", func(p *play) {
			p.fly("slow")
			for range 10 * remembered {
				p.Event(change{"A", "z"})
			}
			p.fly("quick")
			p.Event(change{"A", "z"})
			p.done(Unschedulable("A"), "quick")
			p.want(Stats{Unschedulable: 1, InFlight: 1})
			require.Empty(p.t, p.log.events)
		}},
		{"the slowest is done", "the others' part is kept, and nothing else", func(p *play) {
			p.fly("a")
			p.Event(change{"A", "z"})
			p.fly("b")
			p.Event(change{"A", "b"})
			require.Len(p.t, p.log.events, 2)
			p.done(Scheduled(), "a")
			require.Len(p.t, p.log.events, 1)
			p.done(Unschedulable("A"), "b")
			require.Empty(p.t, p.log.events)
			p.want(Stats{Backoff: 1})
		}},
		{"decided already", "a key that is removed or added in flight has no use for events", func(p *play) {
			p.fly("a", "b")
			p.Event(everything)
			p.Remove("a")
			p.add("b")
			require.Empty(p.t, p.log.events)
			p.Event(everything)
			require.Empty(p.t, p.log.events)
		}},
	})
}

// TestEvents_DroppedEventsAreReleased checks that dropped events can be garbage collected although the slice of events
// still has their memory.
func TestEvents_DroppedEventsAreReleased(t *testing.T) {
	l := log[*int]{limit: remembered}
	flight := l.begin()
	l.note(new(int))
	kept := l.events
	l.end(flight)
	require.Empty(t, l.events)
	require.Nil(t, kept[0].event)
}
