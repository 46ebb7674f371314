package scheduler

import "fmt"

// Code is the kind of a [Status].
type Code int

const (
	// Success is what a nil Status means.
	Success Code = iota
	// Unschedulable says that the cluster, or the request as a whole, is refused.
	Unschedulable
	// Skip says, from PreFilter and PreScore, that the plugin has nothing to say about this request: it is not asked
	// again in this cycle.
	Skip
	// Error says that the plugin could not tell. It ends the cycle.
	Error
)

// Status is what a plugin says. Nil is success.
type Status struct {
	code   Code
	reason string
	err    error
}

// Reject returns a Status that refuses. The reason is what is so of the cluster, as a predicate in the third person:
// "does not match region in (eu)", "has taint maintenance". Many clusters with one reason are counted together, which
// takes a plural: a reason begins with its verb.
//
// A reason costs an allocation, so a Filter that is asked about thousands of clusters had better return one that it
// made once.
func Reject(reason string) *Status { return &Status{code: Unschedulable, reason: reason} }

// Rejectf is [Reject] with a format.
func Rejectf(format string, args ...any) *Status { return Reject(fmt.Sprintf(format, args...)) }

// NothingToDo is the Status with [Skip].
func NothingToDo() *Status { return skipped }

var skipped = &Status{code: Skip, reason: "has nothing to say"}

// Fail returns a Status for an error; nil for none.
func Fail(err error) *Status {
	if err == nil {
		return nil
	}
	return &Status{code: Error, reason: err.Error(), err: err}
}

// Code returns the kind, also of a nil Status.
func (s *Status) Code() Code {
	if s == nil {
		return Success
	}
	return s.code
}

// Reason says why; empty for a nil Status.
func (s *Status) Reason() string {
	if s == nil {
		return ""
	}
	return s.reason
}
