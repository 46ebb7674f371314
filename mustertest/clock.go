package mustertest

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Clock is the real one, but that it can be put forward and back.
type Clock struct {
	clock.RealClock

	mu    sync.Mutex
	ahead time.Duration
}

// Move puts it forward, or back.
func (c *Clock) Move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += by
}

// Now is the time that it has.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.RealClock.Now().Add(c.ahead)
}

// Since is by its own time.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
