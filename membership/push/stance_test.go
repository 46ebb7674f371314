package push

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestStance(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		change       func(*observed)
		want         stance
	}{
		{"accepted", "an administrator has accepted the member", func(*observed) {}, serving},
		{"accepted, with a record", "the hub was restarted", func(o *observed) { o.recorded = true }, serving},
		{"another agent's claim", "the response to the JoinRequest contains the next step",
			func(o *observed) { o.cluster.Spec.Claim = "c" }, serving},
		{"no decision", "a JoinRequest would create an unused claim",
			func(o *observed) { o.cluster.Spec.Accepted = nil }, resting},
		{"denied", "a JoinRequest would be denied", func(o *observed) { o.cluster.Spec.Accepted = new(false) }, resting},
		{"acceptance is withdrawn", "the member may be accepted again, with the same agent", func(o *observed) {
			o.cluster.Spec.Accepted, o.cluster.Spec.Claim, o.recorded = new(false), "c", true
		}, resting},
		{"join mode Pull", "the agent on the member must be accepted first",
			func(o *observed) { o.cluster.Spec.JoinMode, o.recorded = v1alpha1.JoinPull, true }, resting},
		{"leaving", "the agent cleans the member", func(o *observed) {
			o.cluster.Spec.State, o.cluster.Spec.Claim, o.recorded = v1alpha1.StateLeave, "c", true
		}, serving},
		{"deleted", "the agent cleans the member", func(o *observed) {
			o.cluster.DeletionTimestamp, o.cluster.Spec.Claim, o.recorded = new(metav1.Now()), "c", true
		}, serving},
		{"leaving, withdrawn", "the agent may be accepted again to clean the member", func(o *observed) {
			o.cluster.Spec.State, o.cluster.Spec.Claim, o.recorded, o.cluster.Spec.Accepted = v1alpha1.StateLeave, "c", true,
				new(false)
		}, serving},
		{"has left, phase not updated yet", "the JoinRequest of another agent would only be pending", func(o *observed) {
			o.cluster.Spec.State, o.cluster.Spec.Claim = v1alpha1.StateLeave, "c"
		}, resting},
		{"left", "all objects of the member are removed",
			func(o *observed) { o.cluster.Spec.State, o.recorded = v1alpha1.StateLeave, true }, forgetting},
		{"left, join mode Pull", "all objects of the member are removed", func(o *observed) {
			o.cluster.Spec.State, o.recorded, o.cluster.Spec.JoinMode = v1alpha1.StateLeave, true, v1alpha1.JoinPull
		}, forgetting},
		{"deleted before the join", "all objects of the member are removed",
			func(o *observed) { o.cluster.DeletionTimestamp = new(metav1.Now()) }, forgetting},
		{"no MemberCluster", "all objects of the member are removed", func(o *observed) { o.cluster = nil }, forgetting},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := observed{cluster: &v1alpha1.MemberCluster{Spec: v1alpha1.MemberClusterSpec{
				JoinMode: v1alpha1.JoinPush, Accepted: new(true), State: v1alpha1.StateJoin,
			}}}
			test.change(&o)
			require.Equal(t, test.want, next(o), test.reason)
		})
	}
}

// TestClaimOf checks the state of the claim of a member.
func TestClaimOf(t *testing.T) {
	healthy := func(o *observed, status metav1.ConditionStatus) {
		o.cluster.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionHealthy, Status: status}}
	}
	for _, test := range []struct {
		name   string
		change func(*observed)
		want   claimState
	}{
		{"no claim", func(o *observed) { o.cluster.Spec.Claim = "" }, claimUsable},
		{"the agent's own claim", func(o *observed) { o.recorded = true; healthy(o, metav1.ConditionTrue) }, claimUsable},
		{"claim of a MemberCluster created again from YAML", func(*observed) {}, claimLost},
		{"restored with its status", func(o *observed) {
			o.cluster.Status.Phase = v1alpha1.PhaseJoined
			healthy(o, metav1.ConditionUnknown)
		}, claimLost},
		{"another agent sends heartbeats", func(o *observed) { healthy(o, metav1.ConditionTrue) }, claimTaken},
		{"leaving", func(o *observed) { o.cluster.Status.Phase = v1alpha1.PhaseLeaving }, claimUsable},
		{"left", func(o *observed) { o.cluster.Status.Phase = v1alpha1.PhaseLeft }, claimUsable},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := observed{cluster: &v1alpha1.MemberCluster{Spec: v1alpha1.MemberClusterSpec{Claim: "c"}}}
			test.change(&o)
			require.Equal(t, test.want, claimOf(o))
		})
	}
}

func TestBells(t *testing.T) {
	var b bells
	b.ring("east") // no listener
	rung, done := b.listen("east")
	b.ring("west")
	require.Empty(t, rung)
	b.ring("east")
	b.ring("east")
	require.Len(t, rung, 1)
	again, doneAgain := b.listen("east")
	done()
	b.ring("east")
	require.Len(t, again, 1)
	doneAgain()
	require.Empty(t, b.byName)
}
