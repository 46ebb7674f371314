package testkit

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/muster-sdk/muster/mustertest"
)

// Created counts the objects of a resource, as "works", that a client has created.
type Created struct {
	Resource string

	mu   sync.Mutex
	left int
	done chan struct{}
}

// Expect returns what is closed when so many more are there.
func (c *Created) Expect(n int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.done = n, make(chan struct{})
	return c.done
}

// Over wraps a client's transport, as rest.Config.Wrap takes it.
func (c *Created) Over(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && r.Method == http.MethodPost && mustertest.AttributesOf(r).Resource == c.Resource && response.StatusCode == http.StatusCreated {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.left--; c.left == 0 {
				close(c.done)
			}
		}
		return response, err
	})
}

// Together is how many InParallel works on at once.
const Together = 16

// InParallel does something with each of many, and joins what went wrong.
func InParallel[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	turn := make(chan struct{}, Together)
	var running sync.WaitGroup
	for i, one := range all {
		turn <- struct{}{}
		running.Go(func() {
			defer func() { <-turn }() // also where a requirement fails, which ends the goroutine
			errs[i] = do(one)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// Cost is what something took, and what the same writes took without anything around them.
type Cost struct{ Spent, Floor time.Duration }

// Report reports both for each of n units, as in "ms/member", and how many times the floor it is, in place of the time of an iteration.
func (c Cost) Report(b *testing.B, n int, unit string) {
	b.ReportMetric(c.Spent.Seconds()*1e3/float64(n), "ms/"+unit)
	b.ReportMetric(c.Floor.Seconds()*1e3/float64(n), "floor-ms/"+unit)
	b.ReportMetric(c.Spent.Seconds()/c.Floor.Seconds(), "x-floor")
	b.ReportMetric(0, "ns/op")
}
