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

// fly adds keys and pops them.
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

func playAll(t *testing.T, stories []scenario) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer func() {
					if t.Failed() {
						t.Log("because " + s.reason)
					}
				}()
				s.play(newPlay(t, Options[string, change]{}))
			})
		})
	}
}

func TestOrder(t *testing.T) {
	playAll(t, []scenario{
		{"by priority", "what matters more is decided first, negative numbers included", func(p *play) {
			p.Add("low", -5)
			pass(1)
			p.Add("normal", 0)
			pass(1)
			p.Add("highest", math.MaxInt32)
			p.Add("lowest", math.MinInt32)
			p.pop("highest", "normal", "low", "lowest")
		}},
		{"by time", "nobody is overtaken by equals that came later", func(p *play) {
			for _, key := range []string{"c", "a", "b"} {
				p.add(key)
				pass(1)
			}
			p.pop("c", "a", "b")
		}},
		{"by key", "the order of one moment must not be that of a map", func(p *play) {
			p.add("c", "a", "b")
			p.pop("a", "b", "c")
		}},
		{"added again", "a key that is edited often must not fall back behind the others each time", func(p *play) {
			p.add("b")
			pass(1)
			p.add("a")
			pass(1)
			p.add("b")
			p.pop("b", "a")
		}},
		{"another priority", "the latest is what its owner wants, also if it is lower", func(p *play) {
			p.Add("a", 5)
			p.Add("b", 4)
			p.Add("a", 3)
			p.pop("b", "a")
		}},
		{"given back", "a key that has just had its turn stands behind those that have not, however it comes back",
			func(p *play) {
				p.reject("A", "a")
				p.fly("c")
				p.add("b")
				pass(1)
				p.add("c")
				p.done(Scheduled(), "c")
				p.Event(everything) // has waited since before b was added
				p.pop("a", "b", "c")
			}},
		{"priority in flight", "the new priority is for the next time, and must not be lost", func(p *play) {
			p.fly("a")
			p.Add("a", 7)
			p.done(Scheduled(), "a")
			p.Add("b", 6)
			p.pop("a", "b")
		}},
		{"priority while it waits", "what an Add says holds, wherever the key waits", func(p *play) {
			p.fly("a")
			p.done(Failed(), "a")
			p.Add("b", 6)
			p.Add("a", 7)
			p.pop("a", "b")
		}},
		{"priority is kept", "a retry is as urgent as the first try", func(p *play) {
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
	playAll(t, []scenario{
		{"twice", "a key is there once, however often it is added", func(p *play) {
			p.add("a", "a", "a")
			p.want(Stats{Active: 1})
			p.pop("a")
		}},
		{"in flight", "two must never work on one key, and the change must not be lost", func(p *play) {
			p.fly("a")
			p.add("a", "a")
			p.want(Stats{InFlight: 1})
			p.done(Scheduled(), "a")
			p.want(Stats{Active: 1})
			p.pop("a")
			p.done(Scheduled(), "a")
			p.want(Stats{})
		}},
		{"in flight and unschedulable", "the no was said to what the key was before", func(p *play) {
			p.fly("a")
			p.add("a")
			p.done(Unschedulable("A"), "a")
			p.pop("a")
		}},
		{"in flight and failed", "it must not matter whether Add comes just before or just after Done", func(p *play) {
			p.fly("a")
			p.add("a")
			p.done(Failed(), "a")
			p.pop("a")
		}},
		{"in backoff", "a key that was mended is tried at once, and its failures forgiven", func(p *play) {
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
		{"unschedulable", "as in backoff", func(p *play) {
			p.reject("A", "a")
			p.add("a")
			p.want(Stats{Active: 1})
			p.pop("a")
		}},
		{"remove", "what is gone is not decided on, wherever it was", func(p *play) {
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
		{"remove in flight", "whatever came of it, nobody wants to know any more", func(p *play) {
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
		{"remove and add in flight", "a new key of that name is not worked on by two either", func(p *play) {
			p.fly("a")
			p.Remove("a")
			p.Add("a", 3)
			p.want(Stats{InFlight: 1})
			p.done(Failed(), "a")
			item, err := p.Pop(p.t.Context())
			require.NoError(p.t, err)
			require.Equal(p.t, Item[string]{Key: "a", Priority: 3}, item)
		}},
		{"add and remove in flight", "the last word counts", func(p *play) {
			p.fly("a")
			p.add("a")
			p.Remove("a")
			p.done(Failed(), "a")
			p.want(Stats{})
		}},
		{"failures of a former life", "a key that was removed starts afresh", func(p *play) {
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
	playAll(t, []scenario{
		{"scheduled", "nothing is left of it", func(p *play) {
			p.fly("a")
			p.done(Scheduled(), "a")
			p.want(Stats{})
			require.Empty(p.t, p.entries)
		}},
		{"twice", "the second has nothing to end, and must not count", func(p *play) {
			p.fly("a")
			p.done(Failed(), "a")
			p.done(Scheduled(), "a")
			p.want(Stats{Backoff: 1})
		}},
		{"of what is not in flight", "a caller's mistake must not make a key vanish or appear", func(p *play) {
			p.reject("A", "b")
			p.add("a")
			p.done(Scheduled(), "a", "b", "stranger")
			p.want(Stats{Active: 1, Unschedulable: 1})
		}},
		{"the zero outcome", "if a caller forgot to say, the key must not be lost", func(p *play) {
			p.fly("a")
			p.Done("a", Outcome{})
			p.want(Stats{Backoff: 1})
		}},
	})
}

func TestBackoff(t *testing.T) {
	playAll(t, []scenario{
		{"doubles to the most", "an API server that is down is not to be hammered, nor a key to wait for hours",
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
		{"unschedulable counts too", "events that help in vain come many a second in a large fleet", func(p *play) {
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
		{"success ends the row", "a key that fails once a day must not wait longer each day", func(p *play) {
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
		{"no event ends it", "a failure says nothing about clusters, so no event of theirs mends it", func(p *play) {
			p.fly("a")
			p.Event(everything)
			p.done(Failed(), "a")
			p.Event(everything)
			p.want(Stats{Backoff: 1})
		}},
		{"unschedulable without any event", "a hint may be wrong, and a key must not wait for ever", func(p *play) {
			p.reject("A", "a")
			pass(5*time.Minute - time.Second - 1)
			p.want(Stats{Unschedulable: 1})
			pass(1)
			p.want(Stats{Active: 1})
			require.Empty(p.t, p.parked.lists)
			p.pop("a")
		}},
		{"from Done on", "a decision that took long must not use up the backoff", func(p *play) {
			p.fly("a")
			pass(time.Hour)
			p.done(Failed(), "a")
			pass(time.Second - 1)
			p.want(Stats{Backoff: 1})
		}},
	})
}

func TestDurations(t *testing.T) {
	tests := []struct {
		name    string
		reason  string
		options Options[string, change]
		outcome Outcome
		wait    time.Duration // from the second Done on; never: in an age it has not come
	}{
		{"the most is less than the first", "the first is what is asked for more plainly",
			Options[string, change]{InitialBackoff: time.Minute, MaxBackoff: time.Second}, Failed(), time.Minute},
		{"negative", "there is no such time, and no backoff at all would be a loop",
			Options[string, change]{InitialBackoff: -1, MaxBackoff: -1}, Failed(), 2 * time.Second},
		{"negative limit", "it is the default, or else hints would be of no use",
			Options[string, change]{MaxUnschedulable: -1}, Unschedulable("A"), 5 * time.Minute},
		{"longest possible backoff", "sums and doubles must not come out negative",
			Options[string, change]{InitialBackoff: math.MaxInt64/2 + 1, MaxBackoff: math.MaxInt64}, Failed(), never},
		{"unschedulable for as long as possible", "who trusts all hints may want no limit",
			Options[string, change]{MaxUnschedulable: math.MaxInt64}, Unschedulable("A"), never},
		{"limit shorter than the backoff", "the backoff is there to spare the hub, and the limit to mend a wrong hint",
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

// TestBackoffDoesNotOverflow checks that the backoff stays at its maximum after many failures.
func TestBackoffDoesNotOverflow(t *testing.T) {
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

// TestOpen checks that a key with the outcome Open waits for events, and that its backoff does not grow.
func TestOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, Options[string, change]{})
		p.add("a")
		for range 5 {
			p.pop("a")
			p.Done("a", Open("A"))
			p.Event(change{"B", "a"})
			p.Event(everything)
			p.pop() // not before the first backoff is over
			<-time.After(time.Second)
		}
		item, err := p.Pop(t.Context())
		require.NoError(t, err)
		require.Equal(t, Item[string]{Key: "a"}, item, "an open outcome is not a failure")
	})
}

// TestOutcomeIsACopy checks that an Outcome does not share the slice of the caller.
func TestOutcomeIsACopy(t *testing.T) {
	plugins := []string{"B", "A", "B"}
	outcome := Unschedulable(plugins...)
	require.Equal(t, []string{"B", "A", "B"}, plugins)
	slices.Reverse(plugins)
	plugins[0] = "C"
	require.Equal(t, []string{"A", "B"}, outcome.rejectedBy)
}
