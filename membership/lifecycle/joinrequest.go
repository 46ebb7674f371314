package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// JoinRequestObserved is the hub's observation of one JoinRequest.
type JoinRequestObserved struct {
	// Status is the answer, as recorded.
	Status AnswerSeen
	// Invalid is the reason why the request is invalid; empty: it is valid.
	Invalid string
	Token   TokenSeen
	// Acceptor is zero if the token is refused or a decision exists.
	Acceptor AcceptorSeen

	CreatedAt time.Time // of the request, by the API server's clock
	ClusterID string
	Name      string // requested name of the cluster
	Type      v1alpha1.CredentialType
	Agent     RequesterSeen

	HubID string // of this hub
	// Tombstones of members with the request's cluster ID. They are required if the request has a member UID, or if the
	// MemberCluster that it waited for was deleted.
	Tombstones []Tombstone
	Members    MembersSeen
}

// AnswerSeen is the answer in the status of a JoinRequest.
type AnswerSeen struct {
	Answer v1alpha1.JoinAnswer
	Reason string    // of the condition Issued
	Bound  types.UID // status.memberUID: the MemberCluster that had the request's claim
}

// RequesterSeen describes the agent of a JoinRequest, according to the request.
type RequesterSeen struct {
	Claim     string    // fingerprint of the agent's key
	Keys      []string  // fingerprints of the later claim keys that the request proves, newest first
	MemberUID types.UID // of the MemberCluster that the agent is registered with
	HubID     string    // of the hub that the agent is registered with; empty: unknown
}

// TokenSeen is the JoinToken of a JoinRequest.
type TokenSeen struct {
	// Refused is the reason why the JoinToken of the request does not admit it, for example because the JoinToken does
	// not exist; empty: it admits the request. It does not apply to an agent whose claim was admitted before, or whose
	// member left.
	Refused string
	// Ended is the reason why the JoinToken with which the request was created admits no more requests, although it
	// admitted this one: it expired or was deleted. Empty: the JoinToken is valid. It ends a request that waits for a
	// decision, but not that of an agent that is registered as a member.
	Ended string
	// EndsIn is the time until the JoinToken expires. Zero: unknown, or never.
	EndsIn time.Duration
	// Readopt is true if the JoinToken automatically accepts exactly this cluster. Otherwise only an administrator can
	// accept a cluster that is registered as a member that does not exist on the hub.
	Readopt bool
}

// MembersSeen are the MemberClusters that a JoinRequest may be for.
type MembersSeen struct {
	ByClaim *MemberSeen // the MemberCluster with the request's claim
	ByID    *MemberSeen // the MemberCluster with the request's cluster ID
	Others  []string    // further MemberClusters with that cluster ID, which is a conflict
	ByName  *MemberSeen // the MemberCluster with the requested name
}

// MemberSeen is a MemberCluster as observed for a JoinRequest.
type MemberSeen struct {
	Name       string
	UID        types.UID
	ClusterID  string
	Claim      string
	Credential v1alpha1.CredentialType // its subject follows from the type
	Accepted   *bool
	Deleting   bool
	Desired    v1alpha1.DesiredState
	Leaving    bool // a leave is in progress, whatever the desired state is
	Prepared   bool // its namespace and Membership exist, and its subject has access
	Identified bool // spec.identity is set
	AgentSeen
}

// AgentSeen describes the agent of a MemberCluster besides its claim.
type AgentSeen struct {
	// Keys is spec.claimKeys. Nil: the current key is the claim key.
	Keys *v1alpha1.ClaimKeys
	// Reported is the claim of the agent that last wrote the status of the Membership. Empty: no agent has written it.
	Reported string
}

// JoinRequestAction is an action of the hub for a JoinRequest. Every action is idempotent.
type JoinRequestAction string

// The actions for a JoinRequest.
const (
	// CreateMember creates a MemberCluster for the request.
	CreateMember JoinRequestAction = "CreateMember"
	// BindMember writes the request's cluster ID, claim and credential type into the MemberCluster, and adds the hub's
	// finalizer, so that the hub observes a deletion of the MemberCluster.
	BindMember JoinRequestAction = "BindMember"
	// AcceptMember sets spec.accepted in the same write as CreateMember or BindMember.
	AcceptMember JoinRequestAction = "AcceptMember"
	// ReportReuse records in the MemberCluster that the request was signed with replaced keys.
	ReportReuse JoinRequestAction = "ReportReuse"
	// IssueCredential issues the credential and writes it into the status.
	IssueCredential JoinRequestAction = "IssueCredential"
)

// JoinRequestStep is the next step of the hub for a JoinRequest.
type JoinRequestStep struct {
	Answer  v1alpha1.JoinAnswer
	Reason  string
	Message string
	// Member is the MemberCluster of the request; nil: none.
	Member  *MemberSeen
	Actions []JoinRequestAction
	// After is the time until the next reconcile if no object changes. Zero: never.
	After time.Duration
	// Final is true if the step cannot be undone: the agent acts on the answer, or a member is added. The decision must
	// then be repeated on state that was read from the API server, not from a cache, while no other request with the same
	// cluster ID can be decided.
	Final bool
}

// NextJoinRequest decides the next step of the hub for a JoinRequest.
//
// A cluster ID belongs to one member, and a member to the first claim. A request with another claim is pending, with a
// message that describes how an administrator can admit it instead.
func NextJoinRequest(o JoinRequestObserved) JoinRequestStep {
	step := nextJoinRequest(o)
	if o.waitsWithToken(step) {
		if o.Token.Ended != "" {
			step = JoinRequestStep{Answer: v1alpha1.AnswerDenied, Reason: v1alpha1.ReasonTokenEnded, Message: o.Token.Ended,
				Member: step.Member}
		} else if o.Token.EndsIn > 0 {
			step.After = o.Token.EndsIn
		}
	}
	step.Message = FormatMessage(step.Message)
	notified := step.Answer == v1alpha1.AnswerDeregistered && o.Status.Answer != v1alpha1.AnswerDeregistered
	step.Final = notified || slices.Contains(step.Actions, CreateMember)
	return step
}

// waitsWithToken reports whether the request waits for a decision on its cluster, and needs its JoinToken until then.
// The request of an agent that is registered as a member waits for an administrator even without a valid token.
func (o JoinRequestObserved) waitsWithToken(step JoinRequestStep) bool {
	member := o.Members.ByClaim
	return step.Answer == v1alpha1.AnswerHeld && o.Agent.MemberUID == "" && (member == nil || member.Accepted == nil)
}

func nextJoinRequest(o JoinRequestObserved) JoinRequestStep {
	member := o.Members.ByID
	if o.Members.ByClaim == nil && member != nil && member.Claim == o.Agent.Claim {
		o.Members.ByClaim = member
	}
	switch {
	case o.Status.Answer == v1alpha1.AnswerDeregistered:
		// The answer is never withdrawn: the agent may act on it at any time.
		return deregistered(sameUID(member, o.memberUID()))
	case o.Invalid != "":
		return JoinRequestStep{Answer: v1alpha1.AnswerDenied, Reason: v1alpha1.ReasonInvalidRequest, Message: o.Invalid}
	case o.Agent.HubID != "" && o.Agent.HubID != o.HubID:
		return differentHub(o)
	case o.Members.ByClaim != nil:
		return sameClaim(o)
	case o.left():
		return deregistered(sameUID(member, o.memberUID()))
	default:
		return otherClaim(o.cautious(), member)
	}
}

// sameClaim decides for an agent whose claim belongs to a MemberCluster, regardless of the UID that the agent has
// registered.
func sameClaim(o JoinRequestObserved) JoinRequestStep {
	member := o.Members.ByClaim
	if member.ClusterID != "" && member.ClusterID != o.ClusterID {
		return blocked(nil, v1alpha1.ReasonClusterIDChanged, fmt.Sprintf(
			"The claim of the agent belongs to MemberCluster %s with cluster ID %s, and the agent reports cluster ID %s: "+
				"restore the agent's cluster ID, or clear spec.claim of MemberCluster %s.", member.Name, member.ClusterID,
			o.ClusterID, member.Name))
	}
	if o.Agent.unknownMember(member) {
		o = o.cautious()
	}
	return claimed(o, member)
}

// cautious prevents that a policy accepts a cluster whose MemberCluster does not exist and has no tombstone: an
// administrator may have deleted it.
func (o JoinRequestObserved) cautious() JoinRequestObserved {
	if (o.memberUID() != "" || o.Status.waited()) && !o.Token.Readopt && o.Acceptor.Decision == membership.Accept {
		o.Acceptor.Acceptance = membership.Acceptance{Decision: membership.Hold}
	}
	return o
}

// otherClaim decides for an agent whose claim belongs to no MemberCluster.
func otherClaim(o JoinRequestObserved, member *MemberSeen) JoinRequestStep {
	switch {
	case len(o.Members.Others) > 0:
		return blocked(member, v1alpha1.ReasonClusterIDTaken, fmt.Sprintf(
			"Cluster ID %s belongs to MemberCluster %s and also to %s: delete all but one of them.",
			o.ClusterID, member.Name, strings.Join(o.Members.Others, ", ")))
	case member != nil && o.lost(member) && !member.leaving():
		// The agent had the claim, and an administrator cleared it: the next other agent receives the claim.
		return blocked(member, v1alpha1.ReasonClaimReleased, fmt.Sprintf(
			"The claim of MemberCluster %s was cleared: set its spec.claim to %s to let this agent join again.", member.Name,
			o.Agent.Claim))
	case member == nil && o.Members.ByName == nil && o.memberUID() == "" && o.Status.waited():
		return blocked(nil, o.Status.Reason, fmt.Sprintf(
			"The MemberCluster that this request waited for was deleted. Create MemberCluster %s with spec.clusterID %s and "+
				"spec.accepted true to accept the cluster.", o.Name, o.ClusterID))
	case member == nil && o.removed():
		return blocked(nil, v1alpha1.ReasonUnknownMember, fmt.Sprintf(
			"The MemberCluster that was created for this request was deleted. Create MemberCluster %s with spec.clusterID %s "+
				"and spec.accepted true to adopt the cluster.", o.Name, o.ClusterID))
	case o.Token.Refused != "":
		return JoinRequestStep{Answer: v1alpha1.AnswerDenied, Reason: v1alpha1.ReasonTokenRefused, Message: o.Token.Refused}
	case member == nil && o.Members.ByName != nil:
		return nameKnown(o)
	case member == nil:
		return unknown(o)
	case member.Claim != "":
		return blocked(member, v1alpha1.ReasonClusterIDTaken, fmt.Sprintf(
			"Cluster ID %s belongs to member %s, which another agent has claimed. To let this agent take over, set spec.claim "+
				"of MemberCluster %s to %s.", o.ClusterID, member.Name, member.Name, o.Agent.Claim))
	case member.leaving():
		return leavingMember(member)
	default:
		return bind(o, member)
	}
}

// memberUID returns the UID of the MemberCluster that had the request's claim. Empty: unknown.
func (o *JoinRequestObserved) memberUID() types.UID { return cmp.Or(o.Agent.MemberUID, o.Status.Bound) }

// waited reports whether the request waited for a MemberCluster that existed.
func (a AnswerSeen) waited() bool {
	return a.Reason == v1alpha1.ReasonStateLeave || a.Reason == v1alpha1.ReasonClusterIDTaken
}

// lost reports whether the agent had the claim of the member, according to its request or its Membership, and does not
// have it any more.
func (o *JoinRequestObserved) lost(member *MemberSeen) bool {
	return member.Claim == "" && member.UID == o.memberUID() &&
		(o.Status.Bound == member.UID || member.Reported == o.Agent.Claim)
}

// unknownMember reports whether the agent is registered as a member that does not exist on the hub. The argument is
// the MemberCluster that the agent would adopt; nil: none yet.
func (r RequesterSeen) unknownMember(member *MemberSeen) bool {
	return r.MemberUID != "" && (member == nil || member.UID != r.MemberUID)
}

// differentHub decides for an agent that is registered with another hub. Only an administrator can move a member.
func differentHub(o JoinRequestObserved) JoinRequestStep {
	return blocked(nil, v1alpha1.ReasonDifferentHub, fmt.Sprintf(
		"The agent is a member of hub %s, and this is hub %s: give the agent a join.yaml of its own hub or, to move the "+
			"member to this hub, a join.yaml whose moveFrom is %s.", o.Agent.HubID, o.HubID, o.Agent.HubID))
}

// deregistered returns the answer for a member that left on request. The argument is its MemberCluster if that was
// kept.
func deregistered(kept *MemberSeen) JoinRequestStep {
	return JoinRequestStep{
		Answer: v1alpha1.AnswerDeregistered, Reason: v1alpha1.ReasonDeregistered, Member: kept,
		Message: "The member left on request: its MemberCluster was deleted, or its spec.state was set to Leave.",
	}
}

// unknown decides for a cluster without a MemberCluster.
func unknown(o JoinRequestObserved) JoinRequestStep {
	if o.Acceptor.Error != "" {
		return acceptorFailed(o, nil)
	}
	if o.Acceptor.Decision == membership.Deny {
		return denied(nil, o.Acceptor.Reason)
	}
	step := waiting(o, nil, o.Name)
	step.Actions = []JoinRequestAction{CreateMember}
	if o.Acceptor.Decision == membership.Accept {
		step = preparing(nil)
		step.Actions = []JoinRequestAction{CreateMember, AcceptMember}
	}
	return step
}

// nameKnown decides for a cluster with a new ID and the name of an existing MemberCluster.
func nameKnown(o JoinRequestObserved) JoinRequestStep {
	named := o.Members.ByName
	switch {
	case named.ClusterID != "" || named.Claim != "" || named.Deleting:
		return blocked(named, v1alpha1.ReasonNameTaken, fmt.Sprintf(
			"The name %s belongs to another cluster (%s): start the agent with another name, or delete MemberCluster %s.",
			o.Name, named.ClusterID, named.Name))
	case accepted(named) && o.Acceptor.Error != "":
		return acceptorFailed(o, named)
	case accepted(named) && o.Acceptor.Decision != membership.Accept:
		// The MemberCluster was accepted before its cluster was known: any user with a token could request its name.
		return blocked(named, v1alpha1.ReasonNameReserved, fmt.Sprintf(
			"MemberCluster %s is accepted without a cluster ID: set its spec.clusterID to %s to accept this cluster.",
			named.Name, o.ClusterID))
	case named.Leaving || named.Desired == v1alpha1.StateLeave:
		return leavingMember(named)
	default:
		return bind(o, named)
	}
}

// bind decides for a member that no agent has claimed.
func bind(o JoinRequestObserved, member *MemberSeen) JoinRequestStep {
	if member.Accepted == nil && o.Acceptor.Error != "" {
		return acceptorFailed(o, member)
	}
	if !accepted(member) && o.Acceptor.Decision == membership.Deny {
		return denied(member, o.Acceptor.Reason)
	}
	step := waiting(o, member, member.Name)
	if accepted(member) {
		step = preparing(member)
	}
	step.Actions = []JoinRequestAction{BindMember}
	if member.Accepted == nil && o.Acceptor.Decision == membership.Accept {
		step = preparing(member)
		step.Actions = []JoinRequestAction{BindMember, AcceptMember}
	}
	return step
}

// claimed decides for the agent that has the claim of the member.
func claimed(o JoinRequestObserved, member *MemberSeen) JoinRequestStep {
	switch {
	case member.Accepted != nil && !*member.Accepted:
		return denied(member, "The cluster is denied, or its acceptance was withdrawn.")
	case o.Status.Answer == v1alpha1.AnswerIssued && (o.Status.Bound == "" || o.Status.Bound == member.UID):
		return JoinRequestStep{
			Answer:  o.Status.Answer,
			Reason:  v1alpha1.ReasonIssued,
			Message: "The credential is in the status.",
			Member:  member,
		}
	case !HasCurrentKey(member.Claim, member.Keys, append(slices.Clip(o.Agent.Keys), o.Agent.Claim)):
		return replacedKey(o, member)
	case member.leaving() &&
		(o.Agent.MemberUID == "" || !member.Prepared || !accepted(member) || o.Type != member.Credential):
		// An agent that was a member and still has access receives a credential nevertheless, because it must confirm that
		// the member is clean.
		return leavingMember(member)
	case !accepted(member) && o.Acceptor.Error != "":
		return acceptorFailed(o, member)
	case !accepted(member) && o.Token.Refused == "" && o.Acceptor.Decision == membership.Accept:
		step := preparing(member)
		step.Actions = []JoinRequestAction{BindMember, AcceptMember}
		return step
	case !accepted(member) && o.Acceptor.Decision == membership.Deny:
		return denied(member, o.Acceptor.Reason)
	case !accepted(member):
		return waiting(o, member, member.Name)
	case o.Type != member.Credential || member.ClusterID == "" && !member.leaving():
		// An administrator set the claim and cannot know the type: the existing access may be that of the previous agent.
		step := preparing(member)
		step.Actions = []JoinRequestAction{BindMember}
		return step
	case o.Type == v1alpha1.CredentialIdentity && !member.Identified:
		return blocked(member, v1alpha1.ReasonIdentityMissing, fmt.Sprintf(
			"The agent has its own credential: set spec.identity of MemberCluster %s to the subject that the agent "+
				"authenticates as.", member.Name))
	case !member.Prepared:
		return preparing(member)
	default:
		return JoinRequestStep{
			Answer: v1alpha1.AnswerPending, Reason: v1alpha1.ReasonIssuing, Message: "The credential is being issued.",
			Member: member, Actions: []JoinRequestAction{IssueCredential},
		}
	}
}

// replacedKey decides for an agent that does not have the current key of its claim. A request that is older than that
// key does not indicate a second agent.
func replacedKey(o JoinRequestObserved, member *MemberSeen) JoinRequestStep {
	step := blocked(member, v1alpha1.ReasonClaimKeyReplaced, KeyReplaced)
	if keys := member.Keys; keys != nil && keys.ReusedAt == nil && !o.CreatedAt.Before(keys.Since.Time) {
		step.Actions = []JoinRequestAction{ReportReuse}
	}
	return step
}

func (m *MemberSeen) leaving() bool {
	return m.Deleting || m.Leaving || m.Desired == v1alpha1.StateLeave
}

func accepted(member *MemberSeen) bool { return member.Accepted != nil && *member.Accepted }

func sameUID(member *MemberSeen, uid types.UID) *MemberSeen {
	if member == nil || member.UID != uid {
		return nil
	}
	return member
}

func blocked(member *MemberSeen, reason, message string) JoinRequestStep {
	return JoinRequestStep{Answer: v1alpha1.AnswerHeld, Reason: reason, Message: message, Member: member}
}

func waiting(o JoinRequestObserved, member *MemberSeen, name string) JoinRequestStep {
	message := fmt.Sprintf("Waiting for an administrator to set spec.accepted of MemberCluster %s to true.", name)
	if o.Agent.unknownMember(member) {
		return blocked(member, v1alpha1.ReasonUnknownMember, fmt.Sprintf(
			"The agent is registered as member %s, which does not exist on this hub, and no request to remove that member is "+
				"recorded. Nothing changes on the cluster. Set spec.accepted of MemberCluster %s to true to adopt the cluster.",
			o.Agent.MemberUID, name))
	}
	return blocked(member, v1alpha1.ReasonWaitingForAcceptance, message+acceptanceReason("The hub's policy "+
		"says", o.Acceptor.Acceptance))
}

func leavingMember(member *MemberSeen) JoinRequestStep {
	return blocked(member, v1alpha1.ReasonStateLeave, fmt.Sprintf(
		"MemberCluster %s is leaving or has left: set its spec.state to Join to let the cluster join again.", member.Name))
}

// acceptorFailed decides for a request that only the Acceptor can decide on, after the Acceptor failed.
func acceptorFailed(o JoinRequestObserved, member *MemberSeen) JoinRequestStep {
	return JoinRequestStep{
		Answer: v1alpha1.AnswerPending, Reason: v1alpha1.ReasonPolicyFailed, Member: member, After: BlockedPoll,
		Message: "The hub's policy failed and is retried: " + o.Acceptor.Error,
	}
}

func denied(member *MemberSeen, reason string) JoinRequestStep {
	if reason == "" {
		reason = "The hub's policy denies the request."
	}
	return JoinRequestStep{Answer: v1alpha1.AnswerDenied, Reason: v1alpha1.ReasonDenied, Message: reason, Member: member}
}

func preparing(member *MemberSeen) JoinRequestStep {
	return JoinRequestStep{
		Answer:  v1alpha1.AnswerPending,
		Reason:  v1alpha1.ReasonPreparing,
		Message: "The hub is preparing for the cluster.",
		Member:  member,
	}
}
