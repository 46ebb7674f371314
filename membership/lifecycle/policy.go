package lifecycle

import (
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// AsksAcceptor reports whether the member is one that the Acceptor decides on without a request: nobody has decided on it, and the hub brings it
// an agent only when somebody has. Where there is an agent it is at the door that the Acceptor is asked.
func (o HubObserved) AsksAcceptor() bool {
	ofHub := o.JoinMode == v1alpha1.JoinPush || o.JoinMode == v1alpha1.JoinInstall
	return ofHub && o.Accepted == nil && !o.Claimed && !leaves(o)
}

// byAcceptor is about a member that the Acceptor may decide on.
func byAcceptor(o HubObserved) HubStep {
	step := notAccepted(o)
	accepted := &step.Conditions[0]
	switch {
	case o.NoVerdict != "":
		accepted.Reason, step.After = v1alpha1.ReasonPolicyFailed, HeldPoll
		accepted.Message = "The hub's policy could not decide, and is asked again; set spec.accepted to decide yourself. It failed: " + o.NoVerdict
	case o.Verdict.Decision == membership.Accept:
		step.Actions = append(step.Actions, SetAccepted)
		accepted.Message = "The hub's policy lets the cluster in." + said("It", o.Verdict)
	case o.Verdict.Decision == membership.Deny:
		step.Phase, accepted.Reason = v1alpha1.PhaseDenied, v1alpha1.ReasonDenied
		accepted.Message = "The hub's policy denies the cluster: set spec.accepted to true to let it in all the same." + said("It", o.Verdict)
	default:
		accepted.Message += said("The hub's policy", o.Verdict)
	}
	return step
}

// said is the reason of a verdict, as it goes behind a sentence.
func said(who string, verdict membership.Verdict) string {
	if verdict.Reason == "" {
		return ""
	}
	return " " + who + " says: " + verdict.Reason
}
