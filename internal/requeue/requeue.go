// Package requeue combines the times at which an object must be reconciled again. A zero duration or time means never.
package requeue

import "time"

// Sooner returns the shorter of two durations.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Earlier returns the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
