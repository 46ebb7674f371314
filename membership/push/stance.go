package push

import (
	"github.com/muster-sdk/muster/internal/deletion"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// observed is what the runner sees of a member.
type observed struct {
	cluster *v1alpha1.MemberCluster // nil: it is gone
	// recorded is true when an agent of this member has written something down.
	recorded bool
}

// stance is what the runner is to do about a member.
type stance string

const (
	// serving runs the member's agent.
	serving stance = "Serve"
	// resting runs nothing, and keeps what the agent has written down.
	resting stance = "Rest"
	// forgetting runs nothing, and leaves nothing on the hub.
	forgetting stance = "Forget"
)

// next decides what to do about a member.
func next(o observed) stance {
	if o.cluster == nil {
		return forgetting
	}
	spec := o.cluster.Spec
	leaving := deletion.OfMember(o.cluster)
	switch {
	case leaving && spec.Claim == "":
		return forgetting // no agent speaks for it, or none does any more
	case spec.JoinMode != v1alpha1.JoinPush:
		return resting
	case leaving && !o.recorded:
		return resting // it has left and the hub is about to conclude that, or another agent speaks for it
	case leaving:
		return serving
	case spec.Accepted == nil || !*spec.Accepted:
		return resting
	default:
		return serving
	}
}
