package queue

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// change is the event of these tests. It lists the plugins to which it matters and the keys that it helps. If the
// plugins contain "!", the hint panics. If the keys contain "!", the result of the hint panics.
type change struct{ plugins, keys string }

var everything = change{"ABC", "abcdefghijklmnopqrstuvwxyz"}

func hint(plugin string, c change) func(string) bool {
	switch {
	case strings.Contains(c.plugins, "!"):
		panic("plugin")
	case !strings.Contains(c.plugins, plugin):
		return nil
	}
	return func(key string) bool {
		if strings.Contains(c.keys, "!") {
			panic("key")
		}
		return strings.Contains(c.keys, key)
	}
}

// play is a test scenario that runs in a synctest bubble.
type play struct {
	*Queue[string, change]
	t *testing.T
}

func newPlay(t *testing.T, options Options[string, change]) *play {
	if options.Hint == nil {
		options.Hint = hint
	}
	return &play{New(options), t}
}

func (p *play) add(keys ...string) {
	for _, key := range keys {
		p.Add(key, 0)
	}
}

// pop pops these keys in this order. They must be all active keys.
func (p *play) pop(want ...string) {
	p.t.Helper()
	var got []string
	for p.Stats().Active > 0 {
		item, err := p.Pop(p.t.Context())
		require.NoError(p.t, err)
		got = append(got, item.Key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Fatalf("popped (-want +got):\n%s", diff)
	}
}

// fly adds keys and pops them, so that they are in flight.
func (p *play) fly(keys ...string) {
	p.t.Helper()
	p.add(keys...)
	p.pop(keys...)
}

func (p *play) done(outcome Outcome, keys ...string) {
	for _, key := range keys {
		p.Done(key, outcome)
	}
}

// reject ends the flights of keys with a rejection by plugins, and waits for their backoff.
func (p *play) reject(plugins string, keys ...string) {
	p.t.Helper()
	p.fly(keys...)
	p.done(Unschedulable(strings.Split(plugins, "")...), keys...)
	pass(time.Second)
}

func (p *play) want(want Stats) {
	p.t.Helper()
	if diff := cmp.Diff(want, p.Stats()); diff != "" {
		p.t.Fatalf("stats (-want +got):\n%s", diff)
	}
}

// pass advances the time of the bubble. Its clock moves to the next timer when all goroutines wait.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

type scenario struct {
	name   string
	reason string
	play   func(*play)
}

func runScenarios(t *testing.T, scenarios []scenario) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer func() {
					if t.Failed() {
						t.Log("expected behavior: " + s.reason)
					}
				}()
				s.play(newPlay(t, Options[string, change]{}))
			})
		})
	}
}

func TestPop_Order(t *testing.T) {
	runScenarios(t, []scenario{
		{"by priority", "keys with a higher priority are popped first, including negative priorities", func(p *play) {
			p.Add("low", -5)
			pass(1)
			p.Add("normal", 0)
			pass(1)
			p.Add("highest", math.MaxInt32)
			p.Add("lowest", math.MinInt32)
			p.pop("highest", "normal", "low", "lowest")
		}},
		{"by time", "keys of one priority are popped in the order of their arrival", func(p *play) {
			for _, key := range []string{"c", "a", "b"} {
				p.add(key)
				pass(1)
			}
			p.pop("c", "a", "b")
		}},
		{"by key", "keys that arrive at the same time are popped in the order of their names", func(p *play) {
			p.add("c", "a", "b")
			p.pop("a", "b", "c")
		}},
		{"added again", "a second Add does not change the position of the key", func(p *play) {
			p.add("b")
			pass(1)
			p.add("a")
			pass(1)
			p.add("b")
			p.pop("b", "a")
		}},
		{"another priority", "the last priority applies, also if it is lower", func(p *play) {
			p.Add("a", 5)
			p.Add("b", 4)
			p.Add("a", 3)
			p.pop("b", "a")
		}},
		{"after Done", "a key that was decided is popped after keys that wait",
			func(p *play) {
				p.reject("A", "a")
				p.fly("c")
				p.add("b")
				pass(1)
				p.add("c")
				p.done(Scheduled(), "c")
				p.Event(everything) // a is unschedulable since before b was added
				p.pop("a", "b", "c")
			}},
		{"priority in flight", "the new priority applies to the next Pop", func(p *play) {
			p.fly("a")
			p.Add("a", 7)
			p.done(Scheduled(), "a")
			p.Add("b", 6)
			p.pop("a", "b")
		}},
		{"priority during the backoff", "the priority of Add applies in every state", func(p *play) {
			p.fly("a")
			p.done(Failed(), "a")
			p.Add("b", 6)
			p.Add("a", 7)
			p.pop("a", "b")
		}},
		{"priority of a retry", "a retry has the priority of the first attempt", func(p *play) {
			p.Add("z", 5)
			p.pop("z")
			p.done(Failed(), "z")
			p.add("a")
			pass(time.Second)
			p.pop("z", "a")
		}},
	})
}

func TestAddAndRemove(t *testing.T) {
	runScenarios(t, []scenario{
		{"added several times", "the queue has each key once", func(p *play) {
			p.add("a", "a", "a")
			p.want(Stats{Active: 1})
			p.pop("a")
		}},
		{"added in flight", "one worker has the key at a time, and the key is active after Done", func(p *play) {
			p.fly("a")
			p.add("a", "a")
			p.want(Stats{InFlight: 1})
			p.done(Scheduled(), "a")
			p.want(Stats{Active: 1})
			p.pop("a")
			p.done(Scheduled(), "a")
			p.want(Stats{})
		}},
		{"added in flight and unschedulable", "the rejection is about the former state of the key", func(p *play) {
			p.fly("a")
			p.add("a")
			p.done(Unschedulable("A"), "a")
			p.pop("a")
		}},
		{"added in flight and failed", "Add before Done has the same effect as Add after Done", func(p *play) {
			p.fly("a")
			p.add("a")
			p.done(Failed(), "a")
			p.pop("a")
		}},
		{"added in backoff", "the key is active at once, and its failures are reset", func(p *play) {
			p.fly("a")
			p.done(Failed(), "a")
			pass(time.Second)
			p.pop("a")
			p.done(Failed(), "a")
			p.add("a")
			p.pop("a")
			p.done(Failed(), "a")
			pass(time.Second)
			p.pop("a")
		}},
		{"added when unschedulable", "the key is active at once", func(p *play) {
			p.reject("A", "a")
			p.add("a")
			p.want(Stats{Active: 1})
			p.pop("a")
		}},
		{"removed", "a removed key is not popped, regardless of its state", func(p *play) {
			p.reject("A", "a")
			p.fly("b")
			p.done(Failed(), "b")
			p.add("c")
			p.want(Stats{Active: 1, Backoff: 1, Unschedulable: 1})
			for _, key := range []string{"a", "b", "c", "stranger"} {
				p.Remove(key)
			}
			p.want(Stats{})
			p.Event(everything)
			pass(time.Hour)
			p.pop()
			require.Empty(p.t, p.entries)
			require.Empty(p.t, p.parked.lists)
		}},
		{"removed in flight", "the outcome of a removed key is ignored", func(p *play) {
			for _, outcome := range []Outcome{Scheduled(), Failed(), Unschedulable("A")} {
				p.fly("a")
				p.Remove("a")
				p.want(Stats{InFlight: 1})
				p.Event(everything)
				p.done(outcome, "a")
				p.want(Stats{})
				require.Empty(p.t, p.entries)
			}
		}},
		{"removed and added in flight", "the new key is popped after Done of the former key", func(p *play) {
			p.fly("a")
			p.Remove("a")
			p.Add("a", 3)
			p.want(Stats{InFlight: 1})
			p.done(Failed(), "a")
			item, err := p.Pop(p.t.Context())
			require.NoError(p.t, err)
			require.Equal(p.t, Item[string]{Key: "a", Priority: 3}, item)
		}},
		{"added and removed in flight", "the last call applies", func(p *play) {
			p.fly("a")
			p.add("a")
			p.Remove("a")
			p.done(Failed(), "a")
			p.want(Stats{})
		}},
		{"failures of a removed key", "a key that is added again has no failures", func(p *play) {
			p.fly("a")
			p.done(Failed(), "a")
			p.Remove("a")
			p.fly("a")
			p.done(Failed(), "a")
			pass(time.Second)
			p.pop("a")
		}},
	})
}

func TestDone(t *testing.T) {
	runScenarios(t, []scenario{
		{"scheduled", "the queue does not store the key", func(p *play) {
			p.fly("a")
			p.done(Scheduled(), "a")
			p.want(Stats{})
			require.Empty(p.t, p.entries)
		}},
		{"second Done", "the second call is ignored", func(p *play) {
			p.fly("a")
			p.done(Failed(), "a")
			p.done(Scheduled(), "a")
			p.want(Stats{Backoff: 1})
		}},
		{"key that is not in flight", "the call neither removes nor adds a key", func(p *play) {
			p.reject("A", "b")
			p.add("a")
			p.done(Scheduled(), "a", "b", "stranger")
			p.want(Stats{Active: 1, Unschedulable: 1})
		}},
		{"zero Outcome", "the key is retried after its backoff", func(p *play) {
			p.fly("a")
			p.Done("a", Outcome{})
			p.want(Stats{Backoff: 1})
		}},
	})
}

func TestBackoff(t *testing.T) {
	runScenarios(t, []scenario{
		{"doubles up to the maximum", "the backoff protects the API server, and has a limit",
			func(p *play) {
				p.add("a")
				for i, seconds := range []time.Duration{1, 2, 4, 8, 10, 10, 10} {
					item, err := p.Pop(p.t.Context())
					require.NoError(p.t, err)
					require.Equal(p.t, Item[string]{Key: "a", Failures: i}, item)
					p.done(Failed(), "a")
					pass(seconds*time.Second - 1)
					p.want(Stats{Backoff: 1})
					pass(1)
					p.want(Stats{Active: 1})
				}
			}},
		{"rejections increase the backoff", "a large fleet has many events that do not help", func(p *play) {
			p.add("a")
			for _, seconds := range []time.Duration{1, 2, 4} {
				p.pop("a")
				p.done(Unschedulable("A"), "a")
				p.Event(everything)
				pass(seconds*time.Second - 1)
				p.want(Stats{Backoff: 1})
				pass(1)
				p.want(Stats{Active: 1})
			}
		}},
		{"success resets the failures", "the next failure has the initial backoff", func(p *play) {
			p.fly("a")
			p.done(Failed(), "a")
			pass(time.Second)
			p.pop("a")
			p.done(Scheduled(), "a")
			p.fly("a")
			p.done(Failed(), "a")
			pass(time.Second)
			p.pop("a")
		}},
		{"events do not end the backoff", "a failure does not depend on clusters", func(p *play) {
			p.fly("a")
			p.Event(everything)
			p.done(Failed(), "a")
			p.Event(everything)
			p.want(Stats{Backoff: 1})
		}},
		{"unschedulable without an event", "the key is active after MaxUnschedulable, because a hint may be wrong",
			func(p *play) {
				p.reject("A", "a")
				pass(5*time.Minute - time.Second - 1)
				p.want(Stats{Unschedulable: 1})
				pass(1)
				p.want(Stats{Active: 1})
				require.Empty(p.t, p.parked.lists)
				p.pop("a")
			}},
		{"backoff begins at Done", "the duration of the decision is not part of the backoff", func(p *play) {
			p.fly("a")
			pass(time.Hour)
			p.done(Failed(), "a")
			pass(time.Second - 1)
			p.want(Stats{Backoff: 1})
		}},
	})
}

func TestOptions_Durations(t *testing.T) {
	tests := []struct {
		name    string
		reason  string
		options Options[string, change]
		outcome Outcome
		wait    time.Duration // after the second Done; never: not within 100 years
	}{
		{"maximum below the initial backoff", "the initial backoff applies",
			Options[string, change]{InitialBackoff: time.Minute, MaxBackoff: time.Second}, Failed(), time.Minute},
		{"negative backoff", "the defaults apply",
			Options[string, change]{InitialBackoff: -1, MaxBackoff: -1}, Failed(), 2 * time.Second},
		{"negative MaxUnschedulable", "the default applies",
			Options[string, change]{MaxUnschedulable: -1}, Unschedulable("A"), 5 * time.Minute},
		{"longest possible backoff", "the backoff does not overflow",
			Options[string, change]{InitialBackoff: math.MaxInt64/2 + 1, MaxBackoff: math.MaxInt64}, Failed(), never},
		{"longest possible MaxUnschedulable", "the key waits for events only",
			Options[string, change]{MaxUnschedulable: math.MaxInt64}, Unschedulable("A"), never},
		{"MaxUnschedulable below the backoff", "the backoff applies",
			Options[string, change]{MaxUnschedulable: 1}, Unschedulable("A"), 2 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t, tt.options)
				pass(time.Second)
				p.fly("a")
				p.done(tt.outcome, "a")
				if tt.wait == never {
					pass(100 * 365 * 24 * time.Hour)
					require.Zero(t, p.Stats().Active, tt.reason)
					return
				}
				for p.Stats().Active == 0 {
					pass(time.Second)
				}
				p.pop("a")
				p.done(tt.outcome, "a")
				pass(tt.wait - 1)
				require.Zero(t, p.Stats().Active, tt.reason)
				pass(1)
				require.Equal(t, 1, p.Stats().Active, tt.reason)
			})
		})
	}
}

// TestBackoff_DoesNotOverflow checks that the backoff stays at its maximum after many failures.
func TestBackoff_DoesNotOverflow(t *testing.T) {
	for initial, most := range map[time.Duration]time.Duration{1: math.MaxInt64, math.MaxInt64/2 + 1: math.MaxInt64,
		3: 1000} {
		options := Options[string, change]{InitialBackoff: initial, MaxBackoff: most}.withDefaults()
		last := initial
		for failures := range int32(100) {
			d := options.backoff(failures + 1)
			require.GreaterOrEqual(t, d, last)
			last = d
		}
		require.Equal(t, most, last)
	}
}

// TestDone_OutcomeOpen checks that a key with the outcome Open waits for events, and that its backoff does not grow.
func TestDone_OutcomeOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, Options[string, change]{})
		p.add("a")
		for range 5 {
			p.pop("a")
			p.Done("a", Open("A"))
			p.Event(change{"B", "a"})
			p.Event(everything)
			p.pop() // no key is active before the first backoff has elapsed
			<-time.After(time.Second)
		}
		item, err := p.Pop(t.Context())
		require.NoError(t, err)
		require.Equal(t, Item[string]{Key: "a"}, item, "an open outcome is not a failure")
	})
}

// TestOutcome_CopiesPlugins checks that an Outcome does not share the slice of the caller.
func TestOutcome_CopiesPlugins(t *testing.T) {
	plugins := []string{"B", "A", "B"}
	outcome := Unschedulable(plugins...)
	require.Equal(t, []string{"B", "A", "B"}, plugins)
	slices.Reverse(plugins)
	plugins[0] = "C"
	require.Equal(t, []string{"A", "B"}, outcome.rejectedBy)
}
