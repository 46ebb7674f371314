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

// DoorObserved is what the hub sees of one JoinRequest.
type DoorObserved struct {
	Answer v1alpha1.JoinAnswer // as recorded in its status
	Reason string              // of the condition Issued, as recorded
	Bound  types.UID           // status.memberUID: the MemberCluster that had the request's claim, as recorded

	// Invalid says what is wrong with the request as it stands; empty: nothing is.
	Invalid string
	// TokenRefused says why the JoinToken that it was made with does not let it in, or that there is none and has to be
	// one; empty: it may come in. It says nothing about a claim that was let in before: whoever has lost its member is to learn that, and an
	// acceptance that comes late strands nobody. So ByID and ByName have to be looked at all the same.
	TokenRefused string
	// Verdict of the Acceptor; zero: it was not asked, since the token is refused or somebody has decided.
	Verdict membership.Verdict
	// NoVerdict says why there is none, because the Acceptor failed; empty: there is one.
	NoVerdict string

	ClusterID string
	Name      string    // that the cluster would like to have
	Claim     string    // fingerprint of the agent's key
	MemberUID types.UID // that the agent believes to belong to
	Type      v1alpha1.CredentialType

	ByID   *MemberSeen // the MemberCluster with the request's cluster ID
	Others []string    // more MemberClusters with it, which there must not be
	ByName *MemberSeen // the one with its name
}

// MemberSeen is a MemberCluster as seen from the door.
type MemberSeen struct {
	Name       string
	UID        types.UID
	ClusterID  string
	Claim      string
	Credential v1alpha1.CredentialType // that its subject follows from
	Accepted   *bool
	Deleting   bool
	Desired    v1alpha1.DesiredState
	Leaving    bool // a leave is under way, whatever is desired by now
	Prepared   bool // its namespace and Membership are there, and its subject has access
	Identified bool // an administrator has named its subject
}

// DoorAction is something that the hub does about a JoinRequest. Each is idempotent.
type DoorAction string

// The actions at the door.
const (
	// CreateMember makes a MemberCluster for the request.
	CreateMember DoorAction = "CreateMember"
	// BindMember writes cluster ID, claim and type of credential of the request into the MemberCluster.
	BindMember DoorAction = "BindMember"
	// AcceptMember sets spec.accepted, together with what CreateMember or BindMember write.
	AcceptMember DoorAction = "AcceptMember"
	// IssueCredential has the credential issued and puts it into the status.
	IssueCredential DoorAction = "IssueCredential"
)

// DoorStep is what the hub does next about a JoinRequest.
type DoorStep struct {
	Answer  v1alpha1.JoinAnswer
	Reason  string
	Message string
	// Member is the MemberCluster that the request is for; nil: there is none.
	Member  *MemberSeen
	Actions []DoorAction
	// After is when to look again although nothing has happened. Zero: never.
	After time.Duration
	// Final is true when the step cannot be taken back: the agent acts on what it is told now, or there is one member more.
	// It must not be taken on what a cache shows, but on what was read from the API server since nobody else could take one
	// for the same cluster ID.
	Final bool
}

// NextDoor decides what the hub does next about a JoinRequest.
//
// One cluster ID belongs to one member, and a member to the one claim that came first; whoever comes second
// is held with a message that tells an administrator how to let it in instead.
func NextDoor(o DoorObserved) DoorStep {
	step := nextDoor(o)
	step.Message = Sentence(step.Message)
	told := step.Answer == v1alpha1.AnswerForgotten && o.Answer != v1alpha1.AnswerForgotten
	step.Final = told || slices.Contains(step.Actions, CreateMember)
	return step
}

func nextDoor(o DoorObserved) DoorStep {
	member := o.ByID
	switch {
	case o.Answer == v1alpha1.AnswerForgotten:
		// Said once, it stays said: the agent may act on it at any time.
		return forgotten(sameUID(member, o.memberUID()))
	case o.Invalid != "":
		return DoorStep{Answer: v1alpha1.AnswerDenied, Reason: v1alpha1.ReasonInvalidRequest, Message: o.Invalid}
	case len(o.Others) > 0:
		return held(member, v1alpha1.ReasonClusterIDTaken, fmt.Sprintf(
			"Cluster ID %s is that of MemberCluster %s and also of %s: delete all but one.",
			o.ClusterID, member.Name, strings.Join(o.Others, ", ")))
	case o.memberUID() != "" && (sameUID(member, o.memberUID()) == nil || member.Claim == ""):
		// Also when the request does not say so itself: one whose member is gone must not make another, and one
		// whose claim was released must not take it again, since its agent may have another key by now.
		return forgotten(sameUID(member, o.memberUID()))
	case member == nil && o.ByName == nil && (o.Reason == v1alpha1.ReasonStateLeave || o.Reason == v1alpha1.ReasonClusterIDTaken):
		// What it waited for was deleted. To make it anew would undo that.
		return forgotten(nil)
	case member != nil && member.Claim == o.Claim:
		return claimed(o, member)
	case o.TokenRefused != "":
		return DoorStep{Answer: v1alpha1.AnswerDenied, Reason: v1alpha1.ReasonTokenRefused, Message: o.TokenRefused}
	case member == nil && o.ByName != nil:
		return nameKnown(o)
	case member == nil:
		return unknown(o)
	case member.Claim != "":
		return held(member, v1alpha1.ReasonClusterIDTaken, fmt.Sprintf(
			"Cluster ID %s belongs to member %s, which another agent speaks for. If this agent shall take over, set spec.claim of MemberCluster %s to %s.",
			o.ClusterID, member.Name, member.Name, o.Claim))
	case member.leaving():
		return leavingMember(member)
	default:
		return bind(o, member)
	}
}

// memberUID is the UID of the MemberCluster that the request's claim spoke for; empty: none that is known of.
func (o *DoorObserved) memberUID() types.UID { return cmp.Or(o.MemberUID, o.Bound) }

// forgotten is about a claim that is none any more. Where its MemberCluster is kept, that is the answer's member.
func forgotten(kept *MemberSeen) DoorStep {
	return DoorStep{
		Answer: v1alpha1.AnswerForgotten, Reason: v1alpha1.ReasonForgotten, Member: kept,
		Message: "The hub does not know this member any more: it has left, or its MemberCluster was deleted.",
	}
}

// unknown is about a cluster that nobody has announced.
func unknown(o DoorObserved) DoorStep {
	if o.NoVerdict != "" {
		return noVerdict(o, nil)
	}
	if o.Verdict.Decision == membership.Deny {
		return denied(nil, o.Verdict.Reason)
	}
	step := waiting(o, nil, o.Name)
	step.Actions = []DoorAction{CreateMember}
	if o.Verdict.Decision == membership.Accept {
		step = preparing(nil)
		step.Actions = []DoorAction{CreateMember, AcceptMember}
	}
	return step
}

// nameKnown is about a cluster whose ID is new and whose name is not.
func nameKnown(o DoorObserved) DoorStep {
	named := o.ByName
	switch {
	case named.ClusterID != "" || named.Claim != "" || named.Deleting:
		return held(named, v1alpha1.ReasonNameTaken, fmt.Sprintf(
			"The name %s belongs to another cluster (%s): start the agent with another name, or delete MemberCluster %s.",
			o.Name, named.ClusterID, named.Name))
	case accepted(named) && o.NoVerdict != "":
		return noVerdict(o, named)
	case accepted(named) && o.Verdict.Decision != membership.Accept:
		// Accepted before it was known which cluster it would be: whoever holds a token could take the name.
		return held(named, v1alpha1.ReasonNameReserved, fmt.Sprintf(
			"MemberCluster %s is accepted and waits for a cluster, without saying which: set its spec.clusterID to %s to let this one in.",
			named.Name, o.ClusterID))
	case named.Leaving || named.Desired == v1alpha1.StateLeave:
		return leavingMember(named)
	default:
		return bind(o, named)
	}
}

// bind is about a member that no agent speaks for.
func bind(o DoorObserved, member *MemberSeen) DoorStep {
	if member.Accepted == nil && o.NoVerdict != "" {
		return noVerdict(o, member)
	}
	if !accepted(member) && o.Verdict.Decision == membership.Deny {
		return denied(member, o.Verdict.Reason)
	}
	step := waiting(o, member, member.Name)
	if accepted(member) {
		step = preparing(member)
	}
	step.Actions = []DoorAction{BindMember}
	if member.Accepted == nil && o.Verdict.Decision == membership.Accept {
		step = preparing(member)
		step.Actions = []DoorAction{BindMember, AcceptMember}
	}
	return step
}

// claimed is about the agent that speaks for the member.
func claimed(o DoorObserved, member *MemberSeen) DoorStep {
	switch {
	case member.Accepted != nil && !*member.Accepted:
		return denied(member, "The cluster is denied, or its acceptance was withdrawn.")
	case o.Answer == v1alpha1.AnswerIssued:
		return DoorStep{Answer: o.Answer, Reason: v1alpha1.ReasonIssued, Message: "The credential is in the status.", Member: member}
	case member.leaving() && (o.MemberUID == "" || !member.Prepared || !accepted(member) || o.Type != member.Credential):
		// An agent that was in, and still has access, gets a credential all the same: it is to confirm that the
		// member is clean.
		return leavingMember(member)
	case !accepted(member) && o.NoVerdict != "":
		return noVerdict(o, member)
	case !accepted(member) && o.TokenRefused == "" && o.Verdict.Decision == membership.Accept:
		step := preparing(member)
		step.Actions = []DoorAction{BindMember, AcceptMember}
		return step
	case !accepted(member) && o.Verdict.Decision == membership.Deny:
		return denied(member, o.Verdict.Reason)
	case !accepted(member):
		return waiting(o, member, member.Name)
	case o.Type != member.Credential:
		// The claim was given to it by an administrator, who cannot know the type: the access that there is may be that
		// of the agent before.
		step := preparing(member)
		step.Actions = []DoorAction{BindMember}
		return step
	case o.Type == v1alpha1.CredentialIdentity && !member.Identified:
		return held(member, v1alpha1.ReasonIdentityMissing, fmt.Sprintf(
			"The agent brings its own credential: set spec.identity of MemberCluster %s to the subject that it authenticates as.", member.Name))
	case !member.Prepared:
		return preparing(member)
	default:
		return DoorStep{
			Answer: v1alpha1.AnswerPending, Reason: v1alpha1.ReasonIssuing, Message: "The credential is being issued.",
			Member: member, Actions: []DoorAction{IssueCredential},
		}
	}
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

func held(member *MemberSeen, reason, message string) DoorStep {
	return DoorStep{Answer: v1alpha1.AnswerHeld, Reason: reason, Message: message, Member: member}
}

func waiting(o DoorObserved, member *MemberSeen, name string) DoorStep {
	message := fmt.Sprintf("Waiting for an administrator to set spec.accepted of MemberCluster %s to true.", name)
	return held(member, v1alpha1.ReasonWaitingForAcceptance, message+said("The hub's policy", o.Verdict))
}

func leavingMember(member *MemberSeen) DoorStep {
	return held(member, v1alpha1.ReasonStateLeave, fmt.Sprintf(
		"MemberCluster %s is leaving or has left: set its spec.state to Join to let the cluster come back.", member.Name))
}

// noVerdict is about a request that only the Acceptor can decide on, and that it failed to.
func noVerdict(o DoorObserved, member *MemberSeen) DoorStep {
	return DoorStep{
		Answer: v1alpha1.AnswerPending, Reason: v1alpha1.ReasonPolicyFailed, Member: member, After: HeldPoll,
		Message: "The hub's policy could not decide, and is asked again: " + o.NoVerdict,
	}
}

func denied(member *MemberSeen, reason string) DoorStep {
	if reason == "" {
		reason = "The hub's policy denies the request."
	}
	return DoorStep{Answer: v1alpha1.AnswerDenied, Reason: v1alpha1.ReasonDenied, Message: reason, Member: member}
}

func preparing(member *MemberSeen) DoorStep {
	return DoorStep{Answer: v1alpha1.AnswerPending, Reason: v1alpha1.ReasonPreparing, Message: "The hub is preparing for the cluster.", Member: member}
}
