package mustertest

import (
	"errors"
	"testing"
	"time"
)

// Eventually calls check every 20 ms at first, and every 250 ms after three seconds, because many tests wait at the
// same time.
const firstInterval, lastInterval = 20 * time.Millisecond, 250 * time.Millisecond

// Eventually calls check until it returns nil. After the timeout it ends the test with the description of what was
// expected and the last error. The test's goroutine calls check, at least once, so check may fail the test.
//
//	mustertest.Eventually(t, time.Minute, "Deployment shop is available", func() error { ... })
//
// Choose a generous timeout: it matters only if the test fails.
func Eventually(t testing.TB, timeout time.Duration, expected string, check func() error) {
	t.Helper()
	deadline, interval := time.Now().Add(timeout), firstInterval
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("expected within %s: %s: %v", timeout, expected, err)
		}
		<-time.After(interval)
		interval = min(interval*11/10, lastInterval)
	}
}

// Holds is Eventually for a condition that returns no error.
func Holds(t testing.TB, timeout time.Duration, expected string, condition func() bool) {
	t.Helper()
	Eventually(t, timeout, expected, func() error {
		if !condition() {
			return errors.New("the condition is false")
		}
		return nil
	})
}

// quietTimeout bounds Quiet.
const quietTimeout = time.Minute

// Quiet waits until the value that a function returns, such as the number of writes, has not changed for a period. It
// ends the test if the value still changes after a minute.
func Quiet[T comparable](t testing.TB, period time.Duration, value func() T) {
	t.Helper()
	deadline := time.Now().Add(quietTimeout)
	last, since := value(), time.Now()
	for time.Since(since) <= period {
		if time.Now().After(deadline) {
			t.Fatalf("expected within %s: no change for %s; the last value is %v", quietTimeout, period, last)
		}
		<-time.After(max(firstInterval, period/40))
		if now := value(); now != last {
			last, since = now, time.Now()
		}
	}
}
