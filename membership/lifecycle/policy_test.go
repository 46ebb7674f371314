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

// TestNextHub_Acceptor checks the decisions of the Acceptor on members whose agent the hub provides.
func TestNextHub_Acceptor(t *testing.T) {
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
			name: "no Acceptor", reason: "the message tells an administrator what to do", change: func(*HubObserved) {},
			phase: v1alpha1.PhasePending, accepted: metav1.Condition{Reason: v1alpha1.ReasonNotDecided, Message: undecided},
		},
		{
			name:   "the Acceptor accepts a member whose agent the hub runs",
			reason: "the member does not wait for an administrator",
			change: func(o *HubObserved) { o.Acceptor.Acceptance = accept },
			phase:  v1alpha1.PhasePending, actions: []HubAction{SetAccepted},
			accepted: metav1.Condition{Reason: v1alpha1.ReasonNotDecided, Message: "The hub's policy accepts the cluster. " +
				"Reason: One of ours."},
		},
		{
			name:   "the Acceptor accepts a member whose agent the hub installs",
			reason: "the member has no agent that could send a JoinRequest",
			change: func(o *HubObserved) { o.Acceptor.Decision, o.Spec.JoinMode = membership.Accept, v1alpha1.JoinInstall },
			phase:  v1alpha1.PhasePending, actions: []HubAction{SetAccepted},
			accepted: metav1.Condition{Reason: v1alpha1.ReasonNotDecided, Message: "The hub's policy accepts the cluster."},
		},
		{
			name: "the Acceptor accepts a member without a finalizer", reason: "the finalizer is added first",
			change: func(o *HubObserved) { o.Acceptor.Decision, o.Finalizer = membership.Accept, false },
			phase:  v1alpha1.PhasePending, actions: []HubAction{AddFinalizer},
			accepted: metav1.Condition{Reason: v1alpha1.ReasonNotDecided, Message: "The hub's policy accepts the cluster."},
		},
		{
			name: "the Acceptor denies", reason: "spec.accepted stays unset, so that an administrator can accept anyway",
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
			name: "the Acceptor returns Hold", reason: "the message has the next step and the reason of the Acceptor",
			change: func(o *HubObserved) {
				o.Acceptor.Acceptance = membership.Acceptance{Decision: membership.Hold, Reason: "Ask the network team."}
			},
			phase: v1alpha1.PhasePending,
			accepted: metav1.Condition{Reason: v1alpha1.ReasonNotDecided,
				Message: undecided + " The hub's policy says: Ask the " +
					"network team."},
		},
		{
			name: "the Acceptor fails", reason: "the Acceptor is called again after BlockedPoll",
			change: func(o *HubObserved) { o.Acceptor.Error = "no route" }, after: BlockedPoll,
			phase: v1alpha1.PhasePending,
			accepted: metav1.Condition{
				Reason:  v1alpha1.ReasonPolicyFailed,
				Message: "The hub's policy failed and is retried. To decide without the policy, set spec.accepted. Error: no route",
			},
		},
		{
			name: "the member sends a JoinRequest", reason: "the Acceptor decides on the JoinRequest instead",
			change: func(o *HubObserved) { o.Acceptor.Acceptance, o.Spec.JoinMode = accept, v1alpha1.JoinPull },
			phase:  v1alpha1.PhasePending, accepted: metav1.Condition{Reason: v1alpha1.ReasonNotDecided, Message: undecided},
		},
		{
			name:   "an agent that the hub does not run has claimed the member",
			reason: "the Acceptor decides on the JoinRequest of that agent instead",
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
				t.Errorf("%s: want phase %s and requeue after %s, got %s after %s", test.reason, test.phase, test.after,
					step.Phase, step.After)
			}
		})
	}
}

// TestNextHub_AdministratorOverridesAcceptor checks that the decision of an administrator has precedence over the
// Acceptor, and that a member that leaves is not accepted.
func TestNextHub_AdministratorOverridesAcceptor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyHub(t)
		without := o
		without.Acceptor.Acceptance, without.Acceptor.Error = membership.Acceptance{}, ""
		step := NextHub(without)
		leaving := step.Phase != v1alpha1.PhasePending
		undecided := o.Spec.Accepted == nil && !leaving && !o.Spec.Claimed
		if o.AsksAcceptor() != (undecided && o.Spec.JoinMode != v1alpha1.JoinPull) {
			t.Fatalf("want AsksAcceptor %t, got %t", !o.AsksAcceptor(), o.AsksAcceptor())
		}
		if o.AsksAcceptor() {
			return
		}
		if diff := cmp.Diff(step, NextHub(o)); diff != "" {
			t.Fatalf("the decision of the Acceptor changes the step (-without +with):\n%s", diff)
		}
	})
}
