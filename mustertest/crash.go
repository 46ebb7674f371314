package mustertest

import (
	"errors"
	"net/http"
	"sync"
)

// A Crash ends the process of a client at one of its writes: that write and all later requests fail. Requests for
// Events are not counted as writes. All methods may be called concurrently.
//
//	crash := mustertest.NewCrash(3, mustertest.RequestLost)
//	config.Wrap(crash.Wrap)
//	...
//	<-crash.Done() // Then start the controller again, without the Crash.
type Crash struct {
	at   int
	loss Loss
	done chan struct{}

	mu      sync.Mutex
	writes  int
	over    bool
	request string
}

// Loss is the part of the last write that is lost.
type Loss string

// The possible losses.
const (
	ResponseLost Loss = "ResponseLost" // The API server carries out the write, and the client receives no response.
	RequestLost  Loss = "RequestLost"  // The API server does not receive the write.
)

// NewCrash returns a crash at a write, counted from 1. With 0 there is no crash, and the writes are only counted.
func NewCrash(at int, loss Loss) *Crash {
	return &Crash{at: at, loss: loss, done: make(chan struct{})}
}

var errCrashed = errors.New("the process of the client has ended")

// Wrap returns a transport for the crashing process that forwards requests to next until the crash. Use it with
// rest.Config.Wrap, for each config of the process.
func (c *Crash) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		dead, last := c.note(r)
		if !dead && !last {
			return next.RoundTrip(r)
		}
		if last {
			defer close(c.done)
			if c.loss == ResponseLost {
				if response, err := next.RoundTrip(r); err == nil {
					_ = response.Body.Close() // The response is lost in any case.
				}
			}
		}
		return nil, errCrashed
	})
}

// note counts a request. It reports whether the process crashed before the request, and whether it crashes at the
// request.
func (c *Crash) note(r *http.Request) (dead, last bool) {
	resource := AttributesOf(r).Resource
	c.mu.Lock()
	defer c.mu.Unlock()
	if dead = c.over; !dead && r.Method != http.MethodGet && resource != "events" {
		c.writes++
		if c.over = c.writes == c.at; c.over {
			c.request = r.Method + " " + resource
		}
	}
	return dead, c.over && !dead
}

// At returns the number of the write at which the process crashes; 0 for no crash.
func (c *Crash) At() int { return c.at }

// Done returns a channel that is closed when the process has crashed.
func (c *Crash) Done() <-chan struct{} { return c.done }

// Request returns the HTTP method and resource of the write at which the process crashed, such as "PATCH works". It
// returns an empty string if the process has not crashed.
func (c *Crash) Request() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.request
}

// Writes returns the number of writes up to now, including the write at which the process crashed.
func (c *Crash) Writes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}
