package queue

import (
	"cmp"
	"math"
	"time"

	"k8s.io/utils/clock"
)

// Options are the options of a [Queue]. The zero value of each is its documented default.
type Options[K cmp.Ordered, E any] struct {
	// Hint returns which of the keys that a plugin rejected may become schedulable by an event: a function that is asked
	// once a key, or nil if none of them can. It must not miss one; to say yes in vain only costs an attempt.
	//
	// It is not called under a lock, and may be called by many at once, also for a key that has been removed meanwhile. If
	// it or what it returned panics, that is a yes. Nil means that every event may help every key.
	Hint func(plugin string, event E) func(key K) bool

	// OnPanic is called with the value with which a hint panicked, during the panic: debug.Stack shows where. Nil:
	// panics are not reported.
	OnPanic func(plugin string, reason any)

	// InitialBackoff is how long a key waits after its first attempt in a row that did not succeed, counted from Done.
	// Zero or less means 1 s. Each further one doubles it.
	InitialBackoff time.Duration
	// MaxBackoff is the longest backoff. Zero or less means 10 s; less than InitialBackoff means InitialBackoff.
	MaxBackoff time.Duration
	// MaxUnschedulable is how long an unschedulable key waits at most if no event helps it, in case that a hint was wrong.
	// Zero or less means 5 min. It does not cut a backoff short.
	MaxUnschedulable time.Duration

	// Clock is what all this is timed by. Nil means the real one.
	Clock clock.Clock
}

func (o Options[K, E]) withDefaults() Options[K, E] {
	if o.OnPanic == nil {
		o.OnPanic = func(string, any) {}
	}
	if o.InitialBackoff <= 0 {
		o.InitialBackoff = time.Second
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = 10 * time.Second
	}
	o.MaxBackoff = max(o.MaxBackoff, o.InitialBackoff)
	if o.MaxUnschedulable <= 0 {
		o.MaxUnschedulable = 5 * time.Minute
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// backoff returns how long to wait after that many failures in a row.
func (o Options[K, E]) backoff(failures int32) time.Duration {
	d := o.InitialBackoff
	for ; failures > 1; failures-- {
		if d > o.MaxBackoff/2 {
			return o.MaxBackoff
		}
		d *= 2
	}
	return d
}

// never is later than any time. All times are counted from when the Queue was made.
const never = time.Duration(math.MaxInt64)

// after returns the time d after now, or never if there is no such time.
func after(now, d time.Duration) time.Duration {
	if d > never-now {
		return never
	}
	return now + d
}
