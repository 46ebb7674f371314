package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Intervals at which a state machine observes state that no watch reports.
const (
	// GatePoll is the interval between two checks of the blockers of a leave, on the hub and on the member.
	GatePoll = 2 * time.Second
	// NamespaceTimeout is the timeout after the deadline of a leave for the removal of the member's namespace. After it
	// the hub forces the removal of the namespace as well. It is also how long the hub continues to force gates before it
	// stops waiting for a namespace that still exists, from the time when the force was recorded or from the deadline,
	// whichever is later.
	NamespaceTimeout = time.Minute
	// joinRequestPoll is the minimum interval between two reads of a request that the hub is processing. The interval
	// increases with the time that the hub needs, up to BlockedPoll.
	joinRequestPoll = 500 * time.Millisecond
	// BlockedPoll is the interval between two reads of a request that waits for an administrator, and of a hub that
	// refuses.
	BlockedPoll = 10 * time.Second
	// RetryPoll is the minimum interval between two attempts to reach a hub that does not respond. The interval increases
	// with the duration of the outage, up to BlockedPoll.
	RetryPoll = 2 * time.Second
	// ShutOutTimeout is how long an agent that the hub refuses continues as before.
	ShutOutTimeout = 10 * time.Second
)

// growing returns the interval between two observations of a state that has existed since the given time: a quarter of
// that duration, at least atLeast and at most BlockedPoll. Therefore a change is observed at most a quarter too late,
// and a hub that was unavailable for a long time, or serves many agents, receives fewer and fewer requests from each.
func growing(atLeast time.Duration, since, now time.Time) time.Duration {
	return max(atLeast, min(now.Sub(since)/4, BlockedPoll))
}

// Presence is the observed existence of an object.
type Presence int

// The states of an object.
const (
	Absent Presence = iota
	Present
	Terminating
)

// condition returns a metav1.Condition without times, which its writer sets.
func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func yes(kind, reason, message string) metav1.Condition {
	return condition(kind, metav1.ConditionTrue, reason, message)
}

func no(kind, reason, message string) metav1.Condition {
	return condition(kind, metav1.ConditionFalse, reason, message)
}
