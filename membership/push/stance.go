package push

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// observed is the observed state of a member.
type observed struct {
	cluster *v1alpha1.MemberCluster // nil: deleted
	// recorded is true if an agent of this member has stored a record.
	recorded bool
}

// stance is the action of the runner for a member.
type stance string

const (
	// serving runs the member's agent.
	serving stance = "Serve"
	// resting runs no agent, and keeps the record of the agent.
	resting stance = "Rest"
	// forgetting runs no agent, and deletes the state of the agent from the hub.
	forgetting stance = "Forget"
)

// next decides the action of the runner for a member.
func next(o observed) stance {
	if o.cluster == nil {
		return forgetting
	}
	spec := o.cluster.Spec
	// A deletionTimestamp may be caused by the removal of the definition, which is not a request to leave: nothing here
	// changes the member.
	leaving := o.cluster.DeletionTimestamp != nil || spec.State == v1alpha1.StateLeave
	switch {
	case leaving && spec.Claim == "":
		return forgetting // no agent has the claim, or none has it any more
	case spec.JoinMode != v1alpha1.JoinPush:
		return resting
	case leaving && !o.recorded:
		return resting // the agent has left and the hub is about to complete the leave, or another agent has the claim
	case leaving:
		return serving
	case spec.Accepted == nil || !*spec.Accepted:
		return resting
	default:
		return serving
	}
}

// claimState is the state of the claim of a MemberCluster for the agent that the runner starts for it.
type claimState string

const (
	// claimUsable means that the agent has the claim or can create one.
	claimUsable claimState = "Usable"
	// claimLost means that no agent has the key of the claim any more. The MemberCluster was restored or created again,
	// and the record of its agent was collected as garbage with the former MemberCluster.
	claimLost claimState = "Lost"
	// claimTaken means that another agent has the claim and sends heartbeats.
	claimTaken claimState = "Taken"
)

// claimOf evaluates the claim of a member whose agent must run. An agent stores its key before it creates a claim.
// Therefore, if there is no record, the claim was created with another key.
func claimOf(o observed) claimState {
	status := o.cluster.Status
	switch {
	case o.recorded || o.cluster.Spec.Claim == "":
		return claimUsable
	case status.Phase == v1alpha1.PhaseLeaving || status.Phase == v1alpha1.PhaseLeft:
		return claimUsable // the hub clears the claim when the member has left
	case meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionHealthy):
		return claimTaken
	default:
		return claimLost
	}
}
