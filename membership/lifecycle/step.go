package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How long a machine waits before it looks again at what no watch will tell it about.
const (
	// GatePoll is the time between two looks at what still holds back a leave, on the hub and on the member.
	GatePoll = 2 * time.Second
	// NamespacePatience is how long past the deadline of a leave the hub waits for the member's namespace to be
	// gone, before it records that as well and lets go.
	NamespacePatience = time.Minute
	// DoorPoll is the time between two looks at a request that the hub is at work on.
	DoorPoll = 500 * time.Millisecond
	// HeldPoll is the time between two looks at a request that waits for a person, and at a hub that refuses.
	HeldPoll = 10 * time.Second
	// RetryPoll is the time between two tries to reach a hub that does not answer.
	RetryPoll = 2 * time.Second
	// ShutOutPatience is for how long an agent that the hub shuts out goes on as before.
	ShutOutPatience = 10 * time.Second
)

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
