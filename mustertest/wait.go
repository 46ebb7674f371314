package mustertest

import (
	"cmp"
	"errors"
	"testing"
	"time"
)

// defaultInterval is how often something is looked at that is waited for.
const defaultInterval = 20 * time.Millisecond

// longInterval is what a shorter interval grows to, a tenth with each call. Many tests wait at the same time, and calls
// every 20 ms cost more CPU time of API servers than what the tests wait for.
const longInterval = 150 * time.Millisecond

// Patience is how long something is waited for, and the first interval at which it is observed: 20 ms by default. An
// interval below 150 ms grows to that by and by.
type Patience struct{ For, Every time.Duration }

// Eventually waits until a function says that nothing is wrong any more, and fails with what was wrong last. The function is called by the
// test's own goroutine, at least once, so it may fail the test itself.
func Eventually(t testing.TB, patience Patience, what string, wrong func() error) {
	t.Helper()
	deadline, interval := time.Now().Add(patience.For), cmp.Or(patience.Every, defaultInterval)
	for {
		err := wrong()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not so after %s: %s: %v", patience.For, what, err)
		}
		<-time.After(interval)
		interval = max(interval, min(interval*11/10, longInterval))
	}
}

// quietPatience is how long Quiet waits for rest.
const quietPatience = time.Minute

// Quiet waits until what a function returns, as what has been written so far, has not changed for a while.
func Quiet[T comparable](t testing.TB, while time.Duration, seen func() T) {
	t.Helper()
	deadline := time.Now().Add(quietPatience)
	last, since := seen(), time.Now()
	for time.Since(since) <= while {
		if time.Now().After(deadline) {
			t.Fatalf("there is no end to it after %s: %v", quietPatience, last)
		}
		<-time.After(defaultInterval)
		if now := seen(); now != last {
			last, since = now, time.Now()
		}
	}
}

// Holds is Eventually for a condition that does not say what is wrong.
func Holds(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	Eventually(t, Patience{For: limit}, what, func() error {
		if !holds() {
			return errors.New("the condition is false")
		}
		return nil
	})
}
