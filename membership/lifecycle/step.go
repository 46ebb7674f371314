package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How long a machine waits before it looks again at what no watch will tell it about.
const (
	// GatePoll is the time between two looks at what still holds back a leave, on the hub and on the member.
	GatePoll = 2 * time.Second
	// NamespacePatience is how long past the deadline of a leave the hub waits for the member's namespace to be gone, before it
	// forces that as well; and for how long it forces gates again and again, from when it put that on record or from
	// the deadline, whichever is later, before it lets go of a namespace that is still there.
	NamespacePatience = time.Minute
	// DoorPoll is the least time between two looks at a request that the hub is at work on. It grows with the time
	// that the hub takes, up to HeldPoll.
	DoorPoll = 500 * time.Millisecond
	// HeldPoll is the time between two looks at a request that waits for a person, and at a hub that refuses.
	HeldPoll = 10 * time.Second
	// RetryPoll is the least time between two tries to reach a hub that does not answer. It grows with the time for
	// which it does not, up to HeldPoll.
	RetryPoll = 2 * time.Second
	// ShutOutPatience is for how long an agent that the hub shuts out goes on as before.
	ShutOutPatience = 10 * time.Second
)

// growing is the time between two looks at what has been so since then: a quarter of the time that it has been so, no
// less than atLeast and no more than HeldPoll. Whoever waits learns a quarter too late at most, and a hub that has been away
// for long, or has many to serve, is asked by each of them ever less often.
func growing(atLeast time.Duration, since, now time.Time) time.Duration {
	return max(atLeast, min(now.Sub(since)/4, HeldPoll))
}

// Presence says whether an object is there.
type Presence int

// The states in which an object can be observed.
const (
	Absent Presence = iota
	Present
	Terminating
)

// condition is a metav1.Condition without the times, which its writer knows.
func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func yes(kind, reason, message string) metav1.Condition {
	return condition(kind, metav1.ConditionTrue, reason, message)
}

func no(kind, reason, message string) metav1.Condition {
	return condition(kind, metav1.ConditionFalse, reason, message)
}
