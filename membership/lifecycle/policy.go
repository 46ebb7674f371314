package lifecycle

import (
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// AsksAcceptor reports whether the Acceptor decides on the member without a JoinRequest: no decision exists yet, and in
// the join modes Push and Install the hub starts the agent only after the decision. If there is an agent, the Acceptor
// decides on its JoinRequest.
func (o HubObserved) AsksAcceptor() bool {
	ofHub := o.Spec.JoinMode == v1alpha1.JoinPush || o.Spec.JoinMode == v1alpha1.JoinInstall
	return ofHub && o.Spec.Accepted == nil && !o.Spec.Claimed && !leaves(o)
}

// byAcceptor decides for a member that the Acceptor may decide on.
func byAcceptor(o HubObserved) HubStep {
	step := notAccepted(o)
	accepted := &step.Conditions[0]
	switch {
	case o.Acceptor.Error != "":
		accepted.Reason, step.After = v1alpha1.ReasonPolicyFailed, BlockedPoll
		accepted.Message = "The hub's policy failed and is retried. To decide without the policy, set spec.accepted. " +
			"Error: " + o.Acceptor.Error
	case o.Acceptor.Decision == membership.Accept:
		step.Actions = append(step.Actions, SetAccepted)
		accepted.Message = "The hub's policy accepts the cluster." + acceptanceReason("Reason", o.Acceptor.Acceptance)
	case o.Acceptor.Decision == membership.Deny:
		step.Phase, accepted.Reason = v1alpha1.PhaseDenied, v1alpha1.ReasonDenied
		accepted.Message = "The hub's policy denies the cluster: set spec.accepted to true to accept the cluster anyway." +
			acceptanceReason("Reason", o.Acceptor.Acceptance)
	default:
		accepted.Message += acceptanceReason("The hub's policy says", o.Acceptor.Acceptance)
	}
	return step
}

// acceptanceReason formats the reason of a decision, to be appended to a message.
func acceptanceReason(label string, acceptance membership.Acceptance) string {
	if acceptance.Reason == "" {
		return ""
	}
	return " " + label + ": " + acceptance.Reason
}
