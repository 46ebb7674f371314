package queue

import "slices"

// Outcome is what came of an attempt to schedule a key. The zero Outcome is that of [Failed].
type Outcome struct {
	resultKind resultKind
	rejectedBy []string // sorted and each once
	succeeded  bool     // no failure
}

type resultKind uint8

const (
	failed resultKind = iota
	scheduled
	rejected
)

// Scheduled says that the key is done with: it is forgotten until it is added again.
func Scheduled() Outcome { return Outcome{resultKind: scheduled} }

// Unschedulable says that the decision was no, and by which plugins: the key waits for an event that may change the
// mind of one of them, and for its backoff besides. Without a plugin, or with one that is named "", every event may.
func Unschedulable(rejectedBy ...string) Outcome {
	if len(rejectedBy) == 0 {
		rejectedBy = []string{""}
	}
	plugins := slices.Clone(rejectedBy)
	slices.Sort(plugins)
	return Outcome{resultKind: rejected, rejectedBy: slices.Compact(plugins)}
}

// Open says that the decision was yes, and that more of it may become possible: the key waits as after [Unschedulable],
// but what came of it does not count as a failure. So it is tried again no sooner than after the first backoff, and
// that one does not grow.
func Open(rejectedBy ...string) Outcome {
	outcome := Unschedulable(rejectedBy...)
	outcome.succeeded = true
	return outcome
}

// Failed says that there was no decision, because of an error: the key is tried again after its backoff, whichever
// events come.
func Failed() Outcome { return Outcome{} }
