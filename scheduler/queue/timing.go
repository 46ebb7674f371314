package queue

import (
	"math"
	"time"

	"k8s.io/utils/clock"
)

// timing is the clock of a Queue and the timer for keys that become active after a delay. Times are durations since the
// creation of the Queue.
type timing struct {
	clock clock.Clock
	epoch time.Time
	now   time.Duration // when the Queue was last locked
	timer clock.Timer   // nil: Pop has not waited yet
	alarm time.Duration // when the timer fires; never: the timer is stopped
}

func newTiming(c clock.Clock) timing { return timing{clock: c, epoch: c.Now(), alarm: never} }

// update sets now to the time of the clock.
func (t *timing) update() { t.now = t.clock.Since(t.epoch) }

// ticks returns the channel of the timer. The first call creates the timer.
func (t *timing) ticks() <-chan time.Time {
	if t.timer == nil {
		t.timer = t.clock.NewTimer(never)
		t.timer.Stop()
	}
	return t.timer.C()
}

// setAlarm sets the time at which the timer fires. If alarm is never, it stops the timer.
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

// never is later than any other time.
const never = time.Duration(math.MaxInt64)

// after returns now + d, or never if the sum overflows.
func after(now, d time.Duration) time.Duration {
	if d > never-now {
		return never
	}
	return now + d
}
