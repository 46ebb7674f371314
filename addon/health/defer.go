package health

import "time"

const (
	// turnTime is how long it may take until it is decided whether a member is told what is new, before it is said that it waits for that.
	turnTime = time.Second
	// answerTime is how long a member has to say something about what it was told, before it is said that it has not.
	answerTime = 2 * time.Second
)

// Defer is how long not to write yet what [Assess] says, since a better word is about to come: whether it is the member's turn, where that has been open since a
// time (zero: it is not), and then the member's answer. Most come in time, which halves the writes of an installation. Zero: write it.
func Defer(o Observed, open time.Time) time.Duration {
	if o.Removal != nil || len(o.Problems) > 0 {
		return 0
	}
	if !open.IsZero() && o.Revision != o.Desired && o.Hold == "" {
		if wait := turnTime - o.Now.Sub(open); wait > 0 {
			return wait
		}
	}
	wait := answerTime - o.Now.Sub(o.Since)
	if o.Revision == "" || !o.Reachable || o.answered() || wait > answerTime { // the times are of two processes' clocks
		return 0
	}
	return max(wait, 0)
}

// answered reports whether the member has said something about all that it was told.
func (o Observed) answered() bool {
	if !o.Current || len(o.Works) == 0 {
		return false
	}
	for i := range o.Works {
		if o.Works[i].Observed != o.Works[i].Generation {
			return false
		}
	}
	return true
}
