package queue

import (
	"cmp"
	"time"

	"k8s.io/utils/clock"
)

// Options are the options of a [Queue]. The zero value of each field is its documented default.
type Options[K cmp.Ordered, E any] struct {
	// Hint returns a function that reports whether the event may make a key schedulable that the plugin has rejected. It
	// returns nil if the event helps none of the plugin's keys. The function must not miss a key; a superfluous true only
	// costs an attempt.
	//
	// Hint and the function are called without a lock. They may be called concurrently, and for a key that has been
	// removed in the meantime. A panic counts as true. If the field is nil, every event may help every key.
	Hint func(plugin string, event E) func(key K) bool

	// OnPanic is called when a hint panics, with the value of the panic. It runs during the panic, so debug.Stack shows
	// the location. Nil: panics are not reported.
	OnPanic func(plugin string, reason any)

	// InitialBackoff is the delay after the first unsuccessful attempt, counted from Done. Each further consecutive
	// unsuccessful attempt doubles the delay. Zero or less: 1 s.
	InitialBackoff time.Duration
	// MaxBackoff is the maximum backoff. Zero or less: 10 s. If it is less than InitialBackoff, InitialBackoff is used.
	MaxBackoff time.Duration
	// MaxUnschedulable is the maximum time that an unschedulable key waits without an event that helps it. It limits the
	// effect of an incorrect hint. It does not shorten a backoff. Zero or less: 5 min.
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

// backoff returns the backoff after a number of consecutive failures.
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
