package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func leaveConditions(o HubObserved, record v1alpha1.LeaveStatus) []metav1.Condition {
	message, remaining := "The cluster is leaving.", record.Remaining
	if o.Gates != nil && o.Gates.Waiting == record.Waiting {
		remaining = o.Gates.Remaining // the record may contain only a part of the list
	}
	deadline := record.Deadline.UTC().Format(time.RFC3339)
	switch {
	case record.Forced:
		message = fmt.Sprintf(
			"The deadline passed: the cluster is being removed while waiting for %s%s.", awaited(record), listed(remaining))
	case record.Waiting == waitingForAgent && !accepts(o):
		message = fmt.Sprintf(
			"The agent cannot confirm that the member is clean, because its acceptance was withdrawn: set spec.accepted to "+
				"true, or wait until the member is removed without the confirmation at %s.", deadline)
	case record.Waiting == waitingForAgent:
		message = fmt.Sprintf("Waiting until %s for the agent to confirm that the member is clean.", deadline)
	case record.Waiting == waitingForNamespace:
		message = "Waiting for the member's namespace to be removed."
	case record.Waiting != "":
		message = fmt.Sprintf("Waiting until %s for %s%s.", deadline, record.Waiting, listed(remaining))
	}
	return []metav1.Condition{
		acceptedCondition(o),
		no(v1alpha1.ConditionReadyToJoin, v1alpha1.ReasonLeaving, "The cluster is leaving."),
		no(v1alpha1.ConditionJoined, v1alpha1.ReasonLeaving, message),
	}
}

// WithError returns the step with the message of an error, or of a state that a user must correct first. The message
// becomes part of the condition ReadyToJoin, which contains the reason why a cluster cannot join. If the cluster must
// not join, the message begins with that reason.
func (s HubStep) WithError(problem string) HubStep {
	s.Conditions = slices.Clone(s.Conditions)
	for i, c := range s.Conditions {
		switch {
		case c.Type != v1alpha1.ConditionReadyToJoin:
		case c.Status == metav1.ConditionTrue:
			s.Conditions[i] = no(c.Type, v1alpha1.ReasonPreparing, problem)
		default:
			s.Conditions[i].Message += " " + problem
		}
	}
	limitMessages(s.Conditions)
	return s
}

func acceptedCondition(o HubObserved) metav1.Condition {
	if accepts(o) {
		return yes(v1alpha1.ConditionAccepted, v1alpha1.ReasonAccepted, "The cluster is accepted.")
	}
	return notAccepted(o).Conditions[0]
}

// awaited formats the blocker of a leave, as part of a message.
func awaited(record v1alpha1.LeaveStatus) string {
	switch record.Waiting {
	case waitingForAgent, waitingForNamespace:
		return "the " + record.Waiting
	case "":
		return "an unknown reason"
	default:
		return record.Waiting
	}
}

func listed(remaining []string) string {
	if len(remaining) == 0 {
		return ""
	}
	const shown = 3
	text := strings.Join(remaining[:min(shown, len(remaining))], ", ")
	if more := len(remaining) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return " (" + text + ")"
}

func firstTwenty(remaining []string) []string { return remaining[:min(20, len(remaining))] }
