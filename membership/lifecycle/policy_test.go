package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestNextHubByAcceptor checks the decisions of the Acceptor on members whose agent the hub provides.
func TestNextHubByAcceptor(t *testing.T) {
	const undecided = "No administrator has decided: set spec.accepted to true to accept the cluster, or to false to " +
		"deny it."
	accept := membership.Acceptance{Decision: membership.Accept, Reason: "One of ours."}
	for _, test := range []struct {
		name, reason string
		change       func(*HubObserved)
		phase        v1alpha1.Phase
		actions      []HubAction
		accepted     metav1.Condition
		after        time.Duration
	}{
		{
			name: "no Acceptor", reason: "an administrator is told what to do", change: func(*HubObserved) {},
			phase: v1alpha1.PhasePending, accepted: metav1.Condition{Reason: v1alpha1.ReasonNotDecided, Message: undecided},
		},
		{
			name: "accepted", reason: "it needs no administrator",
			change: func(o *HubObserved) { o.Acceptor.Acceptance = accept },
			phase:  v1alpha1.PhasePending, actions: []HubAction{SetAccepted},
			accepted: metav1.Condition{Reason: v1alpha1.ReasonNotDecided, Message: "The hub's policy accepts the cluster. " +
				"Reason: One of ours."},
		},
		{
			name: "accepted, and installed", reason: "there is no agent on the member that could ask",
			change: func(o *HubObserved) { o.Acceptor.Decision, o.Spec.JoinMode = membership.Accept, v1alpha1.JoinInstall },
			phase:  v1alpha1.PhasePending, actions: []HubAction{SetAccepted},
			accepted: metav1.Condition{Reason: v1alpha1.ReasonNotDecided, Message: "The hub's policy accepts the cluster."},
		},
		{
			name: "accepted, and new", reason: "nothing is done about a member that could go without the hub's knowing",
			change: func(o *HubObserved) { o.Acceptor.Decision, o.Finalizer = membership.Accept, false },
			phase:  v1alpha1.PhasePending, actions: []HubAction{AddFinalizer},
			accepted: metav1.Condition{Reason: v1alpha1.ReasonNotDecided, Message: "The hub's policy accepts the cluster."},
		},
		{
			name: "denied", reason: "spec.accepted stays an administrator's to set, who may know better",
			change: func(o *HubObserved) {
				o.Acceptor.Acceptance = membership.Acceptance{Decision: membership.Deny, Reason: "None of ours."}
			},
			phase: v1alpha1.PhaseDenied,
			accepted: metav1.Condition{
				Reason: v1alpha1.ReasonDenied,
				Message: "The hub's policy denies the cluster: set spec.accepted to true to accept the cluster anyway. Reason: " +
					"None of ours.",
			},
		},
		{
			name: "held", reason: "an administrator is told what to do, and why",
			change: func(o *HubObserved) {
				o.Acceptor.Acceptance = membership.Acceptance{Decision: membership.Hold, Reason: "Ask the network team."}
			},
			phase: v1alpha1.PhasePending,
			accepted: metav1.Condition{Reason: v1alpha1.ReasonNotDecided,
				Message: undecided + " The hub's policy says: Ask the " +
					"network team."},
		},
		{
			name: "no decision", reason: "the Acceptor is asked again, and no caller waits for it",
			change: func(o *HubObserved) { o.Acceptor.Error = "no route" }, after: BlockedPoll,
			phase: v1alpha1.PhasePending,
			accepted: metav1.Condition{
				Reason:  v1alpha1.ReasonPolicyFailed,
				Message: "The hub's policy failed and is retried. To decide without the policy, set spec.accepted. Error: no route",
			},
		},
		{
			name: "pulled", reason: "the Acceptor decides on the JoinRequest, about who is there",
			change: func(o *HubObserved) { o.Acceptor.Acceptance, o.Spec.JoinMode = accept, v1alpha1.JoinPull },
			phase:  v1alpha1.PhasePending, accepted: metav1.Condition{Reason: v1alpha1.ReasonNotDecided, Message: undecided},
		},
		{
			name: "claimed", reason: "an agent that runs elsewhere has claimed it, and its JoinRequest is decided",
			change: func(o *HubObserved) { o.Acceptor.Acceptance, o.Spec.Claimed = accept, true },
			phase:  v1alpha1.PhasePending, accepted: metav1.Condition{Reason: v1alpha1.ReasonNotDecided, Message: undecided},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := HubObserved{Spec: SpecSeen{Desired: v1alpha1.StateJoin, JoinMode: v1alpha1.JoinPush}, Finalizer: true}
			test.change(&o)
			step := NextHub(o)
			test.accepted.Type, test.accepted.Status = v1alpha1.ConditionAccepted, metav1.ConditionFalse
			if diff := cmp.Diff(test.accepted, step.Conditions[0]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(test.actions, step.Actions); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if step.Phase != test.phase || step.After != test.after {
				t.Errorf("%s: it is %s, to be looked at after %s", test.reason, step.Phase, step.After)
			}
		})
	}
}

// TestAcceptorDecidesOnNothingElse checks that the decision of an administrator has precedence over the Acceptor, and
// that a member that leaves is not accepted.
func TestAcceptorDecidesOnNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyHub(t)
		without := o
		without.Acceptor.Acceptance, without.Acceptor.Error = membership.Acceptance{}, ""
		step := NextHub(without)
		leaving := step.Phase != v1alpha1.PhasePending
		undecided := o.Spec.Accepted == nil && !leaving && !o.Spec.Claimed
		if o.AsksAcceptor() != (undecided && o.Spec.JoinMode != v1alpha1.JoinPull) {
			t.Fatalf("it is asked: %t", o.AsksAcceptor())
		}
		if o.AsksAcceptor() {
			return
		}
		if diff := cmp.Diff(step, NextHub(o)); diff != "" {
			t.Fatalf("the decision changes the result (-without +with):\n%s", diff)
		}
	})
}
