package lifecycle

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Tombstone is the hub's record that a member left because a user requested it. The hub answers Deregistered only if a
// tombstone exists.
type Tombstone struct {
	// MemberUID and MemberName are those of the MemberCluster that was deleted, or left.
	MemberUID  types.UID
	MemberName string
	ClusterID  string
	// Claim is the fingerprint of the agent's key when the member left. Empty: no agent had the claim.
	Claim string
	// Decided is true if an administrator or a policy had accepted or denied the member.
	Decided bool
	// Kept is true if the MemberCluster was not deleted: its spec.state was set to Leave.
	Kept bool
	// Resources is the leave policy that the user had set.
	Resources v1alpha1.ResourcePolicy
	// Time is the time at which the hub recorded the leave.
	Time time.Time
}

// deregisters reports whether the tombstone belongs to the member that the agent of a request is registered as. The
// claim key and the cluster ID identify a member; if no agent had the claim, the UID does.
func (t Tombstone) deregisters(o JoinRequestObserved) bool {
	if t.ClusterID != o.ClusterID {
		return false
	}
	same := o.memberUID() != "" && t.MemberUID == o.memberUID()
	if t.Claim == "" {
		return same
	}
	return t.Claim == o.Agent.Claim && (same || t.Decided)
}

// dropsWaiting reports whether the tombstone belongs to the MemberCluster that a request waited for. The agent of such
// a request is not a member.
func (t Tombstone) dropsWaiting(o JoinRequestObserved) bool {
	return o.memberUID() == "" && o.Status.waited() && o.Members.ByID == nil && o.Members.ByName == nil &&
		t.ClusterID == o.ClusterID && !t.Kept && !t.Time.Before(o.CreatedAt)
}

// NeedsTombstones reports whether the decision always depends on [JoinRequestObserved.Tombstones]. Without them a
// MemberCluster may be created only for a claim whose member has not left before.
func (o *JoinRequestObserved) NeedsTombstones() bool { return o.memberUID() != "" || o.Status.waited() }

// removed reports whether the MemberCluster with the request's claim, or the one that was created for the request, was
// deleted on request. Another agent may have received its claim by then.
func (o *JoinRequestObserved) removed() bool {
	return slices.ContainsFunc(o.Tombstones, func(t Tombstone) bool {
		return t.MemberUID != "" && (t.MemberUID == o.Status.Bound || t.MemberUID == o.Agent.MemberUID)
	})
}

// left reports whether the member that the agent of the request is registered as, or waited for, left on request.
func (o *JoinRequestObserved) left() bool {
	return slices.ContainsFunc(o.Tombstones, func(t Tombstone) bool { return t.deregisters(*o) || t.dropsWaiting(*o) })
}
