package queue

import "slices"

// Outcome is the result of an attempt to schedule a key. The zero Outcome is that of [Failed].
type Outcome struct {
	resultKind resultKind
	rejectedBy []string // sorted, without duplicates
	succeeded  bool     // the attempt does not count as a failure
}

type resultKind uint8

const (
	failed resultKind = iota
	scheduled
	rejected
)

// Scheduled means that the key was scheduled. It is removed from the queue until it is added again.
func Scheduled() Outcome { return Outcome{resultKind: scheduled} }

// Unschedulable means that these plugins rejected the key. The key waits for an event that may change the result of one
// of the plugins, and at least for its backoff. If no plugin is given, or the plugin is "", every event may help.
func Unschedulable(rejectedBy ...string) Outcome {
	if len(rejectedBy) == 0 {
		rejectedBy = []string{""}
	}
	plugins := slices.Clone(rejectedBy)
	slices.Sort(plugins)
	return Outcome{resultKind: rejected, rejectedBy: slices.Compact(plugins)}
}

// Open means that the key was scheduled, but not on all wanted clusters. The key waits as after [Unschedulable], but
// the attempt is not a failure: the next attempt is not before the initial backoff, and the backoff does not grow.
func Open(rejectedBy ...string) Outcome {
	outcome := Unschedulable(rejectedBy...)
	outcome.succeeded = true
	return outcome
}

// Failed means that an error prevented the decision. The key is retried after its backoff, independently of events.
func Failed() Outcome { return Outcome{} }
