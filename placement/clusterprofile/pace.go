package clusterprofile

import "time"

// KEP-4322 wants less than one write of a profile in 30 s on average, and allows bursts of 10.
const (
	perWrite = 30 * time.Second
	burst    = 10
)

// pace is the time until which the writes of a profile are paid for: each pays for 30 s. The zero value has paid for
// nothing.
type pace struct{ paid time.Time }

// wait is how long a write has to wait. One of what turns goes at once, unless nine others are to be paid for still;
// any other goes when all before it are paid for, so it comes 30 s after the last at the earliest.
func (p pace) wait(now time.Time, turned bool) time.Duration {
	owed := max(p.paid.Sub(now), 0)
	if turned {
		owed -= (burst - 1) * perWrite
	}
	return max(owed, 0)
}

// spend pays for a write.
func (p pace) spend(now time.Time) pace {
	if p.paid.Before(now) {
		p.paid = now
	}
	return pace{p.paid.Add(perWrite)}
}
