package scheduler

import "fmt"

// Code is the kind of a [Status].
type Code int

const (
	// Success is the code of a nil Status.
	Success Code = iota
	// Unschedulable means that the plugin rejects the cluster, or the request as a whole.
	Unschedulable
	// Skip means that the plugin does not apply to this request. It is not called again in this cycle.
	Skip
	// Error means that the plugin failed. The cycle ends.
	Error
)

// Status is the result of a plugin. Nil is success.
type Status struct {
	code   Code
	reason string
	err    error
}

// Reject returns a Status that rejects a cluster. The reason is a predicate in the third person that begins with its
// verb: "does not match region in (eu)", "has taint maintenance". Messages count clusters with the same reason together
// and convert the verb to the plural.
//
// A reason costs an allocation. A Filter that is called for thousands of clusters should return a Status that was
// created once.
func Reject(reason string) *Status { return &Status{code: Unschedulable, reason: reason} }

// Rejectf is [Reject] with a format.
func Rejectf(format string, args ...any) *Status { return Reject(fmt.Sprintf(format, args...)) }

// NothingToDo returns a Status with the code [Skip].
func NothingToDo() *Status { return skipped }

var skipped = &Status{code: Skip, reason: "is skipped"}

// Fail returns a Status with the code [Error]. It returns nil for a nil error.
func Fail(err error) *Status {
	if err == nil {
		return nil
	}
	return &Status{code: Error, reason: err.Error(), err: err}
}

// Code returns the code of the Status. A nil Status is [Success].
func (s *Status) Code() Code {
	if s == nil {
		return Success
	}
	return s.code
}

// Reason returns the reason. It is empty for a nil Status.
func (s *Status) Reason() string {
	if s == nil {
		return ""
	}
	return s.reason
}
