// Package readycondition derives the conditions Ready and Stalled of an object from its other conditions, so that
// kubectl wait --for=condition=Ready works for every kind, and kstatus reports a failure as a failure:
// https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md.
package readycondition

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types and reasons of the derived conditions. The API packages export the types under the same names.
const (
	Ready   = "Ready"
	Stalled = "Stalled"

	reasonReady   = "Ready"
	reasonPending = "Pending"
)

// Rule lists the conditions of a kind that determine whether an object is ready.
type Rule struct {
	// Required conditions must be True. Ready has the reason and the message of the first one that is not.
	Required []string
	// Adverse conditions must not be True, such as Progressing.
	Adverse []string
	// Failure is the condition that reports an error which only a user can resolve, such as Degraded. While it is True,
	// the object is Stalled and not Ready. Empty: the argument failure of Set applies.
	Failure string
}

// Set adds the derived conditions to conditions. Ready always exists. Stalled exists only while it is True, as kstatus
// expects. The argument failure applies if the rule has no Failure; nil means that there is no failure. Set must not
// run concurrently with other uses of conditions.
func (r Rule) Set(conditions *[]metav1.Condition, generation int64, now time.Time, failure *metav1.Condition) {
	if r.Failure != "" {
		failure = nil
		if c := meta.FindStatusCondition(*conditions, r.Failure); c != nil && c.Status == metav1.ConditionTrue {
			failure = c
		}
	}
	ready := r.ready(*conditions, failure)
	stalled := metav1.Condition{Type: Stalled, Status: metav1.ConditionTrue}
	if failure != nil {
		stalled.Reason, stalled.Message = failure.Reason, failure.Message
	}
	for _, condition := range []*metav1.Condition{&ready, &stalled} {
		condition.ObservedGeneration, condition.LastTransitionTime = generation, metav1.NewTime(now)
	}
	meta.SetStatusCondition(conditions, ready)
	if stalled.Reason == "" {
		meta.RemoveStatusCondition(conditions, Stalled)
		return
	}
	meta.SetStatusCondition(conditions, stalled)
}

func (r Rule) ready(conditions []metav1.Condition, failure *metav1.Condition) metav1.Condition {
	if failure != nil {
		return metav1.Condition{Type: Ready, Status: metav1.ConditionFalse, Reason: failure.Reason, Message: failure.Message}
	}
	for _, name := range r.Required {
		c := meta.FindStatusCondition(conditions, name)
		if c == nil {
			return metav1.Condition{Type: Ready, Status: metav1.ConditionUnknown, Reason: reasonPending, Message: "Condition " +
				name + " is not reported yet."}
		}
		if c.Status != metav1.ConditionTrue {
			return metav1.Condition{Type: Ready, Status: c.Status, Reason: c.Reason, Message: c.Message}
		}
	}
	for _, name := range r.Adverse {
		if c := meta.FindStatusCondition(conditions, name); c != nil && c.Status == metav1.ConditionTrue {
			return metav1.Condition{Type: Ready, Status: metav1.ConditionFalse, Reason: c.Reason, Message: c.Message}
		}
	}
	return metav1.Condition{Type: Ready, Status: metav1.ConditionTrue, Reason: reasonReady}
}

// Is reports whether this package derives a condition. Events and decisions about rollouts skip derived conditions, and
// use the conditions from which they are derived.
func Is(conditionType string) bool { return conditionType == Ready || conditionType == Stalled }
