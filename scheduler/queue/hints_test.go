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
	runScenarios(t, []scenario{
		{"event helps one key", "the other keys stay unschedulable", func(p *play) {
			p.reject("A", "a", "b")
			p.reject("B", "c")
			p.Event(change{"A", "ac"})
			p.pop("a")
			p.want(Stats{InFlight: 1, Unschedulable: 2})
		}},
		{"event for one of several plugins", "one plugin may have rejected the only feasible cluster",
			func(p *play) {
				p.reject("AB", "a")
				p.Event(change{"C", "a"})
				p.want(Stats{Unschedulable: 1})
				p.Event(change{"B", "a"})
				p.pop("a")
			}},
		{"rejected without a plugin", "every event may help the key", func(p *play) {
			p.fly("a", "b")
			p.done(Unschedulable(), "a")
			p.done(Unschedulable(""), "b")
			pass(time.Second)
			p.Event(change{})
			p.pop("a", "b")
		}},
		{"event during the backoff", "the key waits for the rest of its backoff without another event", func(p *play) {
			p.fly("a")
			p.done(Unschedulable("A"), "a")
			p.Event(everything)
			p.want(Stats{Backoff: 1})
			pass(time.Second)
			p.pop("a")
		}},
		{"rejected by another plugin the second time", "only the last rejection applies", func(p *play) {
			p.reject("A", "a")
			p.Event(everything)
			p.pop("a")
			p.done(Unschedulable("B"), "a")
			p.Event(change{"A", "a"})
			p.want(Stats{Unschedulable: 1})
		}},
		{"event while the key is in flight", "the decision does not include the event", func(p *play) {
			p.fly("a", "b", "c")
			p.Event(change{"A", "a"})
			p.Event(change{"B", "b"})
			p.done(Unschedulable("A"), "a", "b", "c")
			p.want(Stats{Backoff: 1, Unschedulable: 2})
			pass(time.Second)
			p.pop("a")
		}},
		{"event before the key is popped", "the snapshot of the decision includes the event", func(p *play) {
			p.fly("a")
			p.Event(everything)
			p.fly("b")
			p.done(Unschedulable("A"), "b")
			p.want(Stats{InFlight: 1, Unschedulable: 1})
		}},
		{"event in an earlier flight of the key", "the snapshot of the second decision includes the event", func(p *play) {
			p.fly("slow", "z")
			p.Event(everything)
			p.add("z")
			p.done(Failed(), "z")
			p.pop("z")
			p.done(Unschedulable("A"), "z")
			p.want(Stats{InFlight: 1, Unschedulable: 1})
		}},
		{"more keys than one batch", "keys are moved in batches, and no key is skipped", func(p *play) {
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

// TestHint_NumberOfCalls checks the documented costs: Hint is called once per event and plugin, and its result once per
// key.
func TestHint_NumberOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		p := newPlay(t, Options[string, change]{Hint: func(plugin string, c change) func(string) bool {
			calls = append(calls, plugin)
			if plugin == "C" {
				return nil
			}
			return func(key string) bool {
				calls = append(calls, plugin+key)
				return hint(plugin, c)(key)
			}
		}})
		p.reject("AC", "a", "b")
		p.reject("BA", "c")
		p.fly("d")
		p.Event(change{"AB", "b"})
		want := []string{"A", "Aa", "Ab", "Ac", "B", "Bc", "C"}
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Fatalf("calls (-want +got):\n%s", diff)
		}

		calls = nil
		p.done(Unschedulable("C", "A"), "d")
		if diff := cmp.Diff([]string{"A", "Ad", "C"}, calls); diff != "" {
			t.Fatalf("calls of Done (-want +got):\n%s", diff)
		}

		calls = nil
		p.Remove("d")
		p.Remove("a")
		p.Remove("c")
		p.Event(change{"AB", "b"})
		require.Empty(t, calls, "no key is left that the event may help")
	})
}

func TestHint_Panics(t *testing.T) {
	tests := []struct {
		name   string
		reason string
		event  change
	}{
		{"hint panics", "the key is tried again, and the panic is reported", change{"!", ""}},
		{"result of the hint panics", "the key is tried again, and the panic is reported", change{"AB", "!"}},
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
		{"no call", "for comparison", func(*play) {}, Stats{Unschedulable: 1}},
		{"event that helps", "the event occurs while Done runs", func(p *play) {
			p.Event(everything)
		}, Stats{Backoff: 1}},
		{"event that does not help", "the hint is called for the event once", func(p *play) {
			p.Event(change{"A", "z"})
		}, Stats{Unschedulable: 1}},
		{"key is added", "the result of the hint is about the former state", func(p *play) { p.add("a") }, Stats{Active: 1}},
		{"key is removed", "the hint does not restore the key", func(p *play) { p.Remove("a") }, Stats{}},
		{"second Done", "the first Done has ended the flight", func(p *play) { p.done(Scheduled(), "a") },
			Stats{Unschedulable: 1}},
		{"queue is shut down", "no call of Pop will return the key", func(p *play) { p.ShutDown() }, Stats{}},
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

// TestHint_KeyChangesDuringEvent checks that the result of a hint is ignored if the key has changed its state in the
// meantime.
func TestHint_KeyChangesDuringEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *play
		var meanwhile func()
		var calls int
		p = newPlay(t, Options[string, change]{Hint: func(string, change) func(string) bool {
			return func(string) bool { calls++; meanwhile(); return true }
		}})
		for name, do := range map[string]func(){
			"removed": func() { p.Remove("a") },
			"rejected again": func() {
				p.fly("a")
				p.done(Unschedulable("A"), "a")
			},
		} {
			p.reject("A", "a")
			meanwhile, calls = do, 0
			p.Event(everything)
			require.Equal(t, 1, calls, "%s: the later decision includes the event", name)
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
		calls := 0
		p = newPlay(t, Options[string, change]{Hint: func(string, change) func(string) bool {
			calls++
			p.Event(change{})
			return nil
		}})
		p.fly("a")
		p.Event(change{})
		p.done(Unschedulable("A"), "a")
		p.want(Stats{Backoff: 1})
		require.Equal(t, remembered, calls)
	})
}

// TestEvents_MemoryIsBounded checks that a slow key does not make the Queue store events without limit, and that the
// key is still retried.
func TestEvents_MemoryIsBounded(t *testing.T) {
	runScenarios(t, []scenario{
		{"no key in flight", "the next decision has a newer snapshot", func(p *play) {
			p.Event(everything)
			require.Empty(p.t, p.log.events)
		}},
		{"number of events at the limit", "the hints are called for each event, and none helps", func(p *play) {
			p.fly("slow")
			for range remembered {
				p.Event(change{"A", "z"})
			}
			p.done(Unschedulable("A"), "slow")
			p.want(Stats{Unschedulable: 1})
		}},
		{"number of events above the limit", "a dropped event may have helped", func(p *play) {
			p.fly("slow")
			for range 10 * remembered {
				p.Event(change{"A", "z"})
				require.LessOrEqual(p.t, len(p.log.events), remembered)
			}
			require.Empty(p.t, p.log.events, "no key needs the later events")
			p.done(Unschedulable("A"), "slow")
			p.want(Stats{Backoff: 1})
		}},
		{"slow key next to a quick key", "the quick key has no dropped events", func(p *play) {
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
		{"slowest key is done", "only the events for the other keys are stored", func(p *play) {
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
		{"keys removed or added in flight", "the keys need no events", func(p *play) {
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
