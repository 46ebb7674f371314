package mustertest

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Clock is the real clock with an offset that a test changes. Timers and tickers are those of the real clock. The zero
// value has no offset. It may be used concurrently.
type Clock struct {
	clock.RealClock

	mu    sync.Mutex
	ahead time.Duration
}

// Move adds a duration to the offset; a negative duration sets the clock back.
func (c *Clock) Move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += by
}

// Now returns the real time plus the offset.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.RealClock.Now().Add(c.ahead)
}

// Since returns Now minus t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
