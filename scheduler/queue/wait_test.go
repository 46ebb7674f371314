package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// popped is the result of a Pop in another goroutine and its duration.
type popped struct {
	key string
	err error
	at  time.Duration // the time since the call
}

func (p *play) popLater(ctx context.Context) <-chan popped {
	result := make(chan popped, 1)
	go func() {
		began := time.Now()
		item, err := p.Pop(ctx)
		result <- popped{item.Key, err, time.Since(began)}
	}()
	synctest.Wait()
	return result
}

func bubble(t *testing.T, test func(*testing.T, *play)) {
	synctest.Test(t, func(t *testing.T) { test(t, newPlay(t, Options[string, change]{})) })
}

func TestPop_Waits(t *testing.T) {
	tests := []struct {
		name   string
		reason string
		before func(*play)
		during func(*play)
		want   time.Duration
	}{
		{"for an Add", "Pop returns at once, without polling", func(*play) {}, func(p *play) {
			pass(time.Hour)
			p.add("a")
		}, time.Hour},
		{"for a backoff", "a timer is set for the end of the backoff", func(p *play) {
			p.fly("a")
			p.done(Failed(), "a")
		}, func(*play) {}, time.Second},
		{"for a backoff that begins later", "the timer is set although Pop was called before",
			func(p *play) { p.fly("a") }, func(p *play) { pass(time.Minute); p.done(Failed(), "a") }, time.Minute + time.Second},
		{"for a backoff that is shorter", "the timer is moved forward",
			func(p *play) { p.reject("A", "b"); p.fly("a") }, func(p *play) { p.done(Failed(), "a") }, time.Second},
		{"for an event", "the event makes an unschedulable key active", func(p *play) { p.reject("A", "a") },
			func(p *play) { pass(time.Minute); p.Event(everything) }, time.Minute},
		{"for a key in flight", "the key was added in flight", func(p *play) { p.fly("a"); p.add("a") },
			func(p *play) { pass(time.Minute); p.done(Scheduled(), "a") }, time.Minute},
		{"for MaxUnschedulable", "no event occurs", func(p *play) { p.fly("a"); p.done(Unschedulable("A"), "a") },
			func(*play) {}, 5 * time.Minute},
		{"for a key behind a removed key", "the timer was set for the removed key", func(p *play) {
			p.fly("a")
			p.done(Failed(), "a")
			pass(time.Second / 2)
			p.fly("b")
			p.done(Failed(), "b")
		}, func(p *play) { p.Remove("a") }, time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, p *play) {
				tt.before(p)
				result := p.popLater(t.Context())
				tt.during(p)
				got := <-result
				require.NoError(t, got.err)
				require.Equal(t, tt.want, got.at, tt.reason)
				require.Equal(t, 1, p.Stats().InFlight)
				require.Equal(t, never, p.timing.alarm, "no timer while no call of Pop waits")
			})
		})
	}
}

// TestPop_SeveralCallsWait checks that each key is handed to one call, in order of priority and arrival, and that no
// call is woken without a key.
func TestPop_SeveralCallsWait(t *testing.T) {
	bubble(t, func(t *testing.T, p *play) {
		p.fly("a", "b", "c")
		p.done(Failed(), "a", "b")
		pass(time.Second / 2)
		p.done(Failed(), "c")
		first, second, third := p.popLater(t.Context()), p.popLater(t.Context()), p.popLater(t.Context())
		p.Add("b", 1)
		require.Equal(t, popped{key: "b"}, <-first)
		require.Equal(t, popped{key: "a", at: time.Second / 2}, <-second)
		require.Equal(t, popped{key: "c", at: time.Second}, <-third)
		p.want(Stats{InFlight: 3})
	})
}

// TestStats_HandsOutKeys checks that the call that observes the end of a key's delay hands out the key.
func TestStats_HandsOutKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, Options[string, change]{Clock: stoppedClock{}})
		p.fly("a")
		p.done(Failed(), "a")
		result := p.popLater(t.Context())
		pass(time.Minute)
		p.want(Stats{InFlight: 1})
		require.Equal(t, "a", (<-result).key)
	})
}

// stoppedClock is a clock whose timers do not fire.
type stoppedClock struct{ clock.RealClock }

func (d stoppedClock) NewTimer(time.Duration) clock.Timer {
	return stoppedTimer{d.RealClock.NewTimer(never)}
}

type stoppedTimer struct{ clock.Timer }

func (stoppedTimer) Reset(time.Duration) bool { return true }

// TestPop_InjectedClock checks that backoffs use the injected clock.
func TestPop_InjectedClock(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	p := newPlay(t, Options[string, change]{Clock: clock})
	p.fly("a")
	p.done(Failed(), "a")
	require.False(t, clock.HasWaiters(), "no timer while no call of Pop waits")
	result := make(chan error, 1)
	go func() {
		_, err := p.Pop(t.Context())
		result <- err
	}()
	require.Eventually(t, clock.HasWaiters, time.Minute, time.Millisecond)
	clock.Step(time.Second - 1)
	p.want(Stats{Backoff: 1})
	clock.Step(1)
	require.NoError(t, <-result)
	require.False(t, clock.HasWaiters(), "no timer while no call of Pop waits")

	p.done(Failed(), "a")
	go func() {
		_, err := p.Pop(t.Context())
		result <- err
	}()
	require.Eventually(t, clock.HasWaiters, time.Minute, time.Millisecond)
	p.add("b")
	require.NoError(t, <-result)
	require.False(t, clock.HasWaiters(), "the timer is stopped when Pop returns")
}

// TestPop_TimerFiresTooEarly checks that Pop does not return a key too early if the timer fires too early. An injected
// clock may use another time for its timers.
func TestPop_TimerFiresTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, Options[string, change]{Clock: earlyClock{}})
		p.fly("a")
		p.done(Failed(), "a")
		require.Equal(t, popped{key: "a", at: time.Second}, <-p.popLater(t.Context()))
	})
}

// earlyClock is a clock whose timers fire after half of their duration.
type earlyClock struct{ clock.RealClock }

func (e earlyClock) NewTimer(d time.Duration) clock.Timer { return earlyTimer{e.RealClock.NewTimer(d)} }

type earlyTimer struct{ clock.Timer }

func (e earlyTimer) Reset(d time.Duration) bool { return e.Timer.Reset((d + 1) / 2) }

func TestPop_ContextCanceled(t *testing.T) {
	bubble(t, func(t *testing.T, p *play) {
		ctx, cancel := context.WithCancel(t.Context())
		first, second := p.popLater(ctx), p.popLater(t.Context())
		pass(time.Minute)
		cancel()
		require.Equal(t, popped{err: context.Canceled, at: time.Minute}, <-first)
		p.add("a")
		require.Equal(t, popped{key: "a", at: time.Minute}, <-second, "a canceled call receives no key")

		p.add("b")
		_, err := p.Pop(ctx)
		require.ErrorIs(t, err, context.Canceled, "Pop fails also if a key is active")
		p.want(Stats{Active: 1, InFlight: 1})
	})
}

// TestPop_ContextEndsWithKey checks that a key does not stay in flight if it is handed to a call whose context ends at
// the same time.
func TestPop_ContextEndsWithKey(t *testing.T) {
	bubble(t, func(t *testing.T, p *play) {
		for range 50 { // select chooses at random
			ctx, cancel := context.WithCancel(t.Context())
			result := p.popLater(ctx)
			p.add("a")
			cancel()
			require.Equal(t, popped{key: "a"}, <-result)
			p.done(Scheduled(), "a")
		}
	})
}

// TestPop_ContextEndsWithTick checks that a tick is not lost for other calls if the context of the receiving call ends
// at the same time.
func TestPop_ContextEndsWithTick(t *testing.T) {
	bubble(t, func(t *testing.T, p *play) {
		for range 50 {
			p.fly("a")
			p.done(Failed(), "a")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			later, stop := context.WithTimeout(t.Context(), time.Hour)
			first, second := p.popLater(ctx), p.popLater(later)
			pass(time.Second)
			p.want(Stats{InFlight: 1})
			stop()
			keys := (<-first).key + (<-second).key
			require.Equal(t, "a", keys)
			cancel()
			p.done(Scheduled(), "a")
		}
	})
}

// TestShutDown checks that a manager can stop without waiting for keys or events.
func TestShutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t,
			Options[string, change]{OnPanic: func(string, any) { t.Error("a hint is called after the shutdown") }})
		p.reject("A", "a")
		p.fly("b", "c")
		p.done(Failed(), "c")
		var results []<-chan popped
		for range 3 {
			results = append(results, p.popLater(t.Context()))
		}
		p.ShutDown()
		p.ShutDown()
		for _, result := range results {
			require.Equal(t, popped{err: ErrShutDown}, <-result)
		}
		require.Equal(t, never, p.timing.alarm, "no timer is set")

		pass(time.Second)
		p.Add("d", 0)
		p.Event(everything)
		p.Event(change{"!", ""})
		p.want(Stats{Active: 1, Unschedulable: 1, InFlight: 1})
		_, err := p.Pop(t.Context())
		require.ErrorIs(t, err, ErrShutDown, "Pop fails even if a key is active")
		p.done(Failed(), "b")
		p.want(Stats{Active: 1, Unschedulable: 1})
	})
}
