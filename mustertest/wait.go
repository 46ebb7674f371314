package mustertest

import (
	"errors"
	"testing"
	"time"
)

// firstInterval is the initial interval between two calls of check. The interval grows to lastInterval within about
// three seconds, because many tests wait at the same time.
const firstInterval, lastInterval = 20 * time.Millisecond, 250 * time.Millisecond

// Eventually calls check until it returns nil. After the timeout it ends the test with the expected state and the last
// error. Check runs in the goroutine of the test, at least once, so it may fail the test.
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

// Holds calls condition until it returns true, with the same intervals and timeout as Eventually.
func Holds(t testing.TB, timeout time.Duration, expected string, condition func() bool) {
	t.Helper()
	Eventually(t, timeout, expected, func() error {
		if !condition() {
			return errors.New("the condition is false")
		}
		return nil
	})
}

// quietTimeout limits how long Quiet waits.
const quietTimeout = time.Minute

// Quiet waits until the result of value, such as a number of writes, has not changed for the period. It ends the test
// if the result still changes after a minute.
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
