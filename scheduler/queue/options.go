package queue

import (
	"cmp"
	"time"

	"k8s.io/utils/clock"
)

// Options are the options of a [Queue]. The zero value of each field is its documented default.
type Options[K cmp.Ordered, E any] struct {
	// Hint returns a function that reports for a key whether it may become schedulable by an event, among the keys that a
	// plugin has rejected. Nil: the event helps no key. The function must not miss a key; a superfluous true only costs an
	// attempt.
	//
	// Hint is not called under a lock, and may be called concurrently, also for a key that has been removed in the
	// meantime. If Hint or its result panics, that counts as true. A nil Hint means that every event may help every key.
	Hint func(plugin string, event E) func(key K) bool

	// OnPanic is called with the value with which a hint panicked, during the panic: debug.Stack shows where. Nil:
	// panics are not reported.
	OnPanic func(plugin string, reason any)

	// InitialBackoff is how long a key waits after its first unsuccessful attempt, counted from Done. Each further
	// consecutive one doubles it. Zero or less: 1 s.
	InitialBackoff time.Duration
	// MaxBackoff is the maximum backoff. Zero or less: 10 s. Less than InitialBackoff: InitialBackoff.
	MaxBackoff time.Duration
	// MaxUnschedulable is the maximum time that an unschedulable key waits without an event that helps it, in case a hint
	// is wrong. Zero or less: 5 min. It does not shorten a backoff.
	MaxUnschedulable time.Duration

	// Clock is the source of time. Nil: the system clock.
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
