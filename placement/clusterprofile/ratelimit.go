package clusterprofile

import "time"

// KEP-4322 requires that a profile is written less than once in 30 s on average, with bursts of 10.
const (
	perWrite = 30 * time.Second
	burst    = 10
)

// rateLimit is the rate limit of the writes of a profile. Each write occupies 30 s of the limit. paid is the time until
// which the writes so far occupy it. The zero value has no writes.
type rateLimit struct{ usedUntil time.Time }

// wait returns how long a write has to wait. If turned is set, the write changes the status of a condition and may use
// the burst: it waits only while the earlier writes occupy more than nine times 30 s. Any other write waits until the
// earlier writes occupy nothing, so it comes at least 30 s after the last write.
func (p rateLimit) wait(now time.Time, turned bool) time.Duration {
	owed := max(p.usedUntil.Sub(now), 0)
	if turned {
		owed -= (burst - 1) * perWrite
	}
	return max(owed, 0)
}

// afterWrite returns the rate limit after another write.
func (p rateLimit) afterWrite(now time.Time) rateLimit {
	if p.usedUntil.Before(now) {
		p.usedUntil = now
	}
	return rateLimit{p.usedUntil.Add(perWrite)}
}
