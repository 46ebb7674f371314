package testkit

import (
	"errors"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/muster-sdk/muster/mustertest"
)

// Created counts the objects of a resource, such as "works", that a client creates.
type Created struct {
	Resource string

	mu   sync.Mutex
	left int
	done chan struct{}
}

// Expect returns a channel that is closed when n more objects have been created.
func (c *Created) Expect(n int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.done = n, make(chan struct{})
	return c.done
}

// Wrap returns a transport that counts. Use it with rest.Config.Wrap.
func (c *Created) Wrap(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && r.Method == http.MethodPost && mustertest.AttributesOf(r).Resource == c.Resource &&
			response.StatusCode == http.StatusCreated {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.left--; c.left == 0 {
				close(c.done)
			}
		}
		return response, err
	})
}

// Together is the number of calls that InParallel makes at a time.
const Together = 16

// InParallel calls do for each element, and returns all errors joined.
func InParallel[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	slots := make(chan struct{}, Together)
	var running sync.WaitGroup
	for i, one := range all {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }() // Deferred, because a failing requirement ends the goroutine.
			errs[i] = do(one)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// Size returns the size n of a benchmark's fleet. With MUSTER_BENCH=small in the environment it is a tenth of n, but at
// least 5 if n is larger: CI only checks that the benchmarks run.
func Size(n int) int {
	if os.Getenv("MUSTER_BENCH") == "small" {
		return min(n, max(5, n/10))
	}
	return n
}

// Cost is the duration of a task, and the duration of its writes alone, which is the floor.
type Cost struct{ Spent, Floor time.Duration }

// Report reports both durations for each of n units, such as "ms/member", and the ratio of both. It replaces ns/op.
func (c Cost) Report(b *testing.B, n int, unit string) {
	b.ReportMetric(c.Spent.Seconds()*1e3/float64(n), "ms/"+unit)
	b.ReportMetric(c.Floor.Seconds()*1e3/float64(n), "floor-ms/"+unit)
	b.ReportMetric(c.Spent.Seconds()/c.Floor.Seconds(), "x-floor")
	b.ReportMetric(0, "ns/op")
}
