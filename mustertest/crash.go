package mustertest

import (
	"errors"
	"net/http"
	"sync"
)

// Crash is the end of a process at one of its writes: from then on nothing of it reaches anybody. Events do not count.
type Crash struct {
	at       int
	answered bool

	mu     sync.Mutex
	writes int
	over   bool
	what   string
	now    chan struct{}
}

// NewCrash returns an end at a write, counted from 1; at 0 there is none. Either the write is carried out and its answer is lost, or it is
// never sent.
func NewCrash(at int, how Loss) *Crash {
	return &Crash{at: at, answered: how == AnswerLost, now: make(chan struct{})}
}

// Loss is what is lost of the write of a Crash.
type Loss string

// What can be lost.
const (
	AnswerLost Loss = "sent"   // the write is carried out, and nobody hears of it
	WriteLost  Loss = "unsent" // it is never sent
)

var errCrashed = errors.New("the process has ended")

// Over wraps a client's transport, as rest.Config.Wrap takes it.
func (c *Crash) Over(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		dead, last := c.note(r)
		if !dead && !last {
			return next.RoundTrip(r)
		}
		if last {
			defer close(c.now)
			if c.answered {
				if response, err := next.RoundTrip(r); err == nil {
					_ = response.Body.Close()
				}
			}
		}
		return nil, errCrashed
	})
}

// note reports whether a request comes after the end, and whether it is the end.
func (c *Crash) note(r *http.Request) (dead, last bool) {
	resource := AttributesOf(r).Resource
	c.mu.Lock()
	defer c.mu.Unlock()
	if dead = c.over; !dead && r.Method != http.MethodGet && resource != "events" {
		c.writes++
		if c.over = c.writes == c.at; c.over {
			c.what = r.Method + " " + resource
		}
	}
	return dead, c.over && !dead
}

// At is the write at which it is to happen.
func (c *Crash) At() int { return c.at }

// Now is closed when it happens.
func (c *Crash) Now() <-chan struct{} { return c.now }

// Happened says at what it happened, as "PATCH works"; empty: it has not.
func (c *Crash) Happened() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.what
}

// Writes is how many writes there were until then, the last one included.
func (c *Crash) Writes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}
