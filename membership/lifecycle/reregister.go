package lifecycle

import (
	"cmp"
	"slices"
)

// reregister adds the request for another registration to the next step of a registered agent, if its bootstrap
// credential requires that. The agent keeps its current registration until the other one is issued. No answer to such a
// request ends the membership.
func reregister(o AgentObserved, step AgentStep) AgentStep {
	if !o.Reregister || step.Phase == Leaving || step.Phase == Left || slices.Contains(step.Actions, CheckJoinRequest) {
		return step
	}
	poll := growing(joinRequestPoll, o.JoinRequestSince, o.Now)
	switch o.JoinRequest {
	case JoinRequestIssued:
		return AgentStep{Phase: Joining, Message: "The hub has issued a new registration.", Actions: []AgentAction{Register}}
	case JoinRequestNotAsked:
		step.Actions = append(slices.Clone(step.Actions), MakeRequest)
	case JoinRequestUnreachable, JoinRequestNotAskable:
		poll = growing(RetryPoll, o.JoinRequestSince, o.Now)
	default: // An answer that may change.
	}
	step.Actions = append(step.Actions, CheckJoinRequest)
	step.After = min(cmp.Or(step.After, poll), poll)
	return step
}
