package queue

import (
	"math"
	"time"

	"k8s.io/utils/clock"
)

// timing is the time of a Queue, counted from when the Queue was made, and the timer for keys that become active by
// themselves.
type timing struct {
	clock clock.Clock
	epoch time.Time
	now   time.Duration // when the Queue was locked
	timer clock.Timer   // nil: no call has waited yet
	alarm time.Duration // when the timer fires; never: it is stopped
}

func newTiming(c clock.Clock) timing { return timing{clock: c, epoch: c.Now(), alarm: never} }

// update sets now to the time of the clock.
func (t *timing) update() { t.now = t.clock.Since(t.epoch) }

// ticks returns the channel of the timer, which the first call makes.
func (t *timing) ticks() <-chan time.Time {
	if t.timer == nil {
		t.timer = t.clock.NewTimer(never)
		t.timer.Stop()
	}
	return t.timer.C()
}

// setAlarm makes the timer fire at this time, or stops it.
func (t *timing) setAlarm(alarm time.Duration) {
	switch alarm {
	case t.alarm:
		return
	case never:
		t.timer.Stop()
	default:
		t.timer.Reset(alarm - t.now)
	}
	t.alarm = alarm
}

// never is later than any time. All times are counted from when the Queue was made.
const never = time.Duration(math.MaxInt64)

// after returns the time d after now, or never if there is no such time.
func after(now, d time.Duration) time.Duration {
	if d > never-now {
		return never
	}
	return now + d
}
