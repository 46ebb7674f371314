package health

import "time"

const (
	// permitTime is how long a rollout decision may take before the status reports that the member waits for a permit.
	permitTime = time.Second
	// reportTime is how long a member may take to report on a revision before the status reports that it has not done
	// so.
	reportTime = 2 * time.Second
)

// Defer returns how long to delay the write of the status that [Assess] returns, because a better one is expected soon:
// first the rollout permit, if the rollout has been open since the given time (zero: it is not open), then the report
// of the member. Most of them arrive in time, which halves the number of writes of an installation. Zero: write now.
func Defer(o Observed, open time.Time) time.Duration {
	if o.Removal != nil || len(o.Problems) > 0 {
		return 0
	}
	if !open.IsZero() && o.Revision != o.Desired && o.Hold == "" {
		if wait := permitTime - o.Now.Sub(open); wait > 0 {
			return wait
		}
	}
	wait := reportTime - o.Now.Sub(o.Since)
	// The times are from the clocks of two processes.
	if o.Revision == "" || !o.Reachable || o.Current && allReported(o.Works) || wait > reportTime {
		return 0
	}
	return max(wait, 0)
}

// allReported reports whether the member has reported on every Work. It is false without Works.
func allReported(works []Work) bool {
	for i := range works {
		if works[i].Observed != works[i].Generation {
			return false
		}
	}
	return len(works) > 0
}
