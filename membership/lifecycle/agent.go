package lifecycle

import (
	"time"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// AgentPhase summarizes the state of an agent.
type AgentPhase string

// The phases of an agent.
const (
	Unregistered AgentPhase = "Unregistered" // no request was made yet
	Registering  AgentPhase = "Registering"  // has a JoinRequest
	Joining      AgentPhase = "Joining"      // has a credential and has not reported Joined to the hub yet
	Joined       AgentPhase = "Joined"       // in the fleet, sends heartbeats
	Leaving      AgentPhase = "Leaving"      // asked to leave, or deregistered, and cleaning up
	Left         AgentPhase = "Left"         // out of the fleet, the member is clean
	Rejected     AgentPhase = "Rejected"     // the hub refuses the agent, and the agent does not know the reason yet
)

// AgentObserved is the observation of an agent.
type AgentObserved struct {
	Now time.Time

	Record Record
	// JoinRequest is the last observed answer to the recorded JoinRequest.
	JoinRequest JoinRequestState
	// JoinRequestSince is the time since which JoinRequest has been the answer without interruption.
	JoinRequestSince time.Time
	// Hub is the result of the last attempt to read the Membership.
	Hub HubState
	// HubSince is the time since which Hub has been the result without interruption. All kinds of refusal are one result.
	HubSince time.Time
	// Membership is the Membership as read. It applies if Hub is HubSeen.
	Membership MembershipSeen
	// PolicySaved is true if the record contains the policy of the Membership.
	PolicySaved bool
	// Beating is true while the heartbeat runs.
	Beating bool
	// Member is the result of the cleaners, and MemberAt its time. MemberClean must be from this step: cleaned objects
	// may be created again.
	Member   MemberState
	MemberAt time.Time
	// Renewal is the state of the renewal of the credential.
	Renewal RenewalState
	// RenewAt is the time at which to request the next credential; zero: never.
	RenewAt time.Time
	// Reregister is true if the bootstrap credential requires that a registered agent registers again: the bootstrap
	// credential requests a move to another hub, or it belongs to the agent's own hub at an address where the agent's
	// credential is refused, for example after a rebuild.
	Reregister bool
}

// AgentAction is an action of an agent. Every action is idempotent.
type AgentAction string

// The actions of an agent.
const (
	// MakeRequest creates a claim key if none exists, and a request, and records both.
	MakeRequest AgentAction = "MakeRequest"
	// CheckJoinRequest creates the recorded JoinRequest on the hub, or reads the answer to it.
	CheckJoinRequest AgentAction = "CheckJoinRequest"
	// Register records the issued credential and uses it.
	Register AgentAction = "Register"
	// AdoptMember records the current UID and name of the Membership.
	AdoptMember AgentAction = "AdoptMember"
	// ReadMembership reads the Membership on the hub.
	ReadMembership AgentAction = "ReadMembership"
	// SavePolicy records the leave policy, in case the hub deregisters the member while the agent is disconnected, and
	// the identity of the member's hub.
	SavePolicy AgentAction = "SavePolicy"
	StartBeat  AgentAction = "StartBeat"
	StopBeat   AgentAction = "StopBeat"
	// ReportJoined reports to the hub that the member has joined.
	ReportJoined AgentAction = "ReportJoined"
	// RecordDeregistered records that the hub has deregistered the member.
	RecordDeregistered AgentAction = "RecordDeregistered"
	// CleanMember runs the cleaners in order, up to the first that is not done, with the last known policy. The agent
	// then decides again with the result.
	CleanMember AgentAction = "CleanMember"
	// ReportClean reports to the hub that the member is clean.
	ReportClean AgentAction = "ReportClean"
	// RecordOut records that the member has left permanently.
	RecordOut AgentAction = "RecordOut"
	// ForgetBootstrap deletes the bootstrap credential, so that a restart does not join again.
	ForgetBootstrap AgentAction = "ForgetBootstrap"
	// StartOver deletes the record except Kept, which becomes true if the agent was registered. The agent then creates a
	// JoinRequest with a new claim.
	StartOver AgentAction = "StartOver"
	// ForgetRecord deletes the record.
	ForgetRecord AgentAction = "ForgetRecord"
	// RequestRenewal creates a request for the next credential, records it and sends it.
	RequestRenewal AgentAction = "RequestRenewal"
	// AdoptRenewal records the next credential and uses it.
	AdoptRenewal AgentAction = "AdoptRenewal"
)

// AgentStep is the next step of an agent.
type AgentStep struct {
	Phase AgentPhase
	// Message is the reason, and the action that a user must take, if there is one.
	Message string
	// Actions are carried out in order, up to the first that fails, because an action may depend on the ones before it.
	Actions []AgentAction
	// After is the time until the next decision if no observation changes. Zero: immediately.
	After time.Duration
	// Done is true when no further step is necessary.
	Done bool
}

// NextAgent decides the next step of an agent.
func NextAgent(o AgentObserved) AgentStep {
	switch {
	case o.Record.Out:
		return leftPermanently(o)
	case o.Record.Deregistered:
		return cleanDeregistered(o)
	case o.Record.Registered:
		return registered(o)
	default:
		return register(o)
	}
}

// register decides for an agent without its own credential.
func register(o AgentObserved) AgentStep {
	if !o.Record.Claim {
		return AgentStep{
			Phase: Unregistered, Message: "The agent is creating a JoinRequest.", Actions: []AgentAction{MakeRequest},
		}
	}
	step := AgentStep{Phase: Registering, Actions: []AgentAction{CheckJoinRequest}, After: growing(joinRequestPoll,
		o.JoinRequestSince, o.Now)}
	switch o.JoinRequest {
	case JoinRequestNotAsked:
		step.Message, step.After = "The agent is sending its JoinRequest to the hub.", 0
	case JoinRequestUnreachable:
		step.Message = "The hub cannot be reached. The agent retries."
		step.After = growing(RetryPoll, o.JoinRequestSince, o.Now)
	case JoinRequestNotAskable:
		step.Message = "The agent cannot create a JoinRequest for a local reason, and retries."
		step.After = growing(RetryPoll, o.JoinRequestSince, o.Now)
	case JoinRequestNoCredential:
		step.Phase, step.After = Rejected, BlockedPoll
		step.Message = "The agent has no bootstrap credential: provide the credential of a JoinToken that is Ready."
	case JoinRequestRefused:
		step.Phase, step.After = Rejected, BlockedPoll
		step.Message = "The hub refuses the bootstrap credential: provide the credential of a JoinToken that is Ready."
	case JoinRequestFull:
		step.Message, step.After = "The hub's limit of JoinRequests is reached. The agent retries.", BlockedPoll
	case JoinRequestUnfit:
		step.Phase, step.After = Rejected, BlockedPoll
		step.Message = "The hub cannot accept the request: check that it is the right hub, and what the agent requests."
	case JoinRequestPending:
		step.Message = "The hub is processing the JoinRequest."
	case JoinRequestDifferentHub:
		step.Phase, step.Message, step.After = Rejected, otherHubsCredential, BlockedPoll
	case JoinRequestHeld:
		step.Message, step.After = "The JoinRequest is pending: see its status on the hub.", BlockedPoll
	case JoinRequestDenied:
		step.Phase, step.Message, step.After = Rejected, "The JoinRequest is denied: see its status on the hub.", BlockedPoll
	case JoinRequestDeregistered, JoinRequestDeregisteredKept:
		if o.JoinRequest == JoinRequestDeregistered && o.Record.Kept {
			// The MemberCluster was deleted while the agent waited to join it again.
			return AgentStep{Phase: Left, Message: "The hub has removed this member.", Actions: []AgentAction{RecordOut}}
		}
		step.Message = "The hub has dropped the JoinRequest. The agent creates another one."
		step.Actions, step.After = []AgentAction{StartOver}, 0
	case JoinRequestIssued:
		step.Message, step.Actions, step.After = "The hub has issued a credential.", []AgentAction{Register}, 0
	default: // JoinRequestNoRequest
		step.Message = "The agent is sending its JoinRequest to the hub."
	}
	return step
}

// registered decides for an agent with its own credential.
func registered(o AgentObserved) AgentStep {
	return reregister(o, stay(o))
}

// stay decides for an agent that continues with its registration.
func stay(o AgentObserved) AgentStep {
	switch o.Hub {
	case HubSeen:
		if o.Membership.State == v1alpha1.StateLeave {
			return leave(o)
		}
		return join(o)
	case HubGone, HubRefused, HubOther:
		if passing(o) {
			return continueHeartbeat(o)
		}
		return accessRefused(o)
	case HubReplaced:
		return AgentStep{
			Phase:   Joining,
			Message: "The MemberCluster was created again. The agent adopts its UID.",
			Actions: []AgentAction{AdoptMember},
		}
	case HubUnreachable:
		// The heartbeat retries independently. Nothing else changes while the hub cannot be observed.
		step := AgentStep{
			Phase:   Joining,
			Message: "The hub cannot be reached. The agent retries.",
			Actions: []AgentAction{ReadMembership},
		}
		step.After = growing(RetryPoll, o.HubSince, o.Now)
		if o.Beating {
			step.Phase = Joined
		}
		return step
	default:
		return AgentStep{
			Phase: Joining, Message: "The agent is reading its Membership.", Actions: []AgentAction{ReadMembership},
		}
	}
}

func join(o AgentObserved) AgentStep {
	step := AgentStep{Phase: Joined, Message: "The member has joined the hub."}
	if !o.PolicySaved {
		step.Actions = append(step.Actions, SavePolicy)
	}
	if !o.Beating {
		step.Actions = append(step.Actions, StartBeat)
	}
	if o.Membership.Report != ReportedJoined {
		step.Phase, step.Message = Joining, "The agent is reporting to the hub that the member has joined."
		step.Actions = append(step.Actions, ReportJoined)
		step.After = RetryPoll
		return step
	}
	return renew(o, step)
}

// renew renews the credential while the cluster is a member.
func renew(o AgentObserved, step AgentStep) AgentStep {
	switch {
	case o.Renewal == RenewalAnswered:
		step.Actions = append(step.Actions, AdoptRenewal)
		step.After = RetryPoll
	case o.RenewAt.IsZero(), o.Renewal == RenewalAsked:
		step.After = BlockedPoll
	case !o.Now.Before(o.RenewAt):
		step.Actions = append(step.Actions, RequestRenewal)
		step.After = RetryPoll
	default:
		step.After = o.RenewAt.Sub(o.Now)
	}
	if o.Renewal == RenewalRefused {
		step.Message = "The member has joined the hub, but the hub refuses to renew the credential: see the Membership " +
			"on the hub."
	}
	return step
}

// passing reports whether the refusal may be temporary. An API server that was started recently refuses every user
// until its authorizer is ready, and the hub restores a Membership that was deleted by mistake. If the Membership
// belongs to another member, the refusal is permanent, and heartbeats of this agent would make that member appear
// healthy.
func passing(o AgentObserved) bool {
	return o.Hub != HubOther && o.Now.Sub(o.HubSince) < ShutOutTimeout
}

// continueHeartbeat continues the heartbeat. A refused heartbeat has no effect, and an accepted one shows that the
// agent has access again.
func continueHeartbeat(o AgentObserved) AgentStep {
	step := AgentStep{
		Phase:   Joining,
		Message: "The hub refuses the agent's credential. The agent retries.",
		Actions: []AgentAction{ReadMembership},
		After:   RetryPoll,
	}
	if o.Hub == HubGone {
		step.Message = "The hub has no Membership for the agent. The agent retries."
	}
	if o.Beating {
		step.Phase = Joined
	} else {
		// The agent may have received access a moment ago, and not every API server of the hub has observed that yet.
		step.After = growing(joinRequestPoll, o.HubSince, o.Now)
	}
	return step
}

// accessRefused decides for a hub that refuses the credential or has no Membership for the agent. Neither is a reason
// to end the membership: a user may have deleted the Membership by mistake, and the hub may restore it soon. Therefore
// the agent requests the reason through its JoinRequest, and continues to read the Membership.
func accessRefused(o AgentObserved) AgentStep {
	step := AgentStep{
		Phase:   Rejected,
		Message: "The hub refuses the agent's credential. The agent requests the reason with a JoinRequest.",
		After:   BlockedPoll,
	}
	switch o.Hub {
	case HubGone:
		step.Message = "The hub has no Membership for the agent. The agent requests the reason with a JoinRequest."
	case HubOther:
		step.Message = "The hub's Membership belongs to another member. The agent requests the reason with a JoinRequest."
	}
	if o.Beating {
		step.Actions = append(step.Actions, StopBeat)
	}
	switch o.JoinRequest {
	case JoinRequestDeregistered, JoinRequestDeregisteredKept:
		step.Phase, step.Message, step.After = Leaving, "The hub has deregistered this member.", 0
		step.Actions = append(step.Actions, RecordDeregistered)
		return step
	case JoinRequestIssued:
		step.Phase, step.Message, step.After = Joining, "The hub has issued a new credential.", 0
		step.Actions = append(step.Actions, Register)
		return step
	case JoinRequestNotAsked:
		step.After = 0
		step.Actions = append(step.Actions, MakeRequest)
	case JoinRequestNoRequest, JoinRequestPending:
		step.After = growing(joinRequestPoll, o.JoinRequestSince, o.Now)
	case JoinRequestNotAskable:
		step.Message = "The hub refuses the agent. The agent cannot create a JoinRequest for a local reason, and retries."
		step.After = growing(RetryPoll, o.JoinRequestSince, o.Now)
	case JoinRequestNoCredential:
		step.Message = "The hub refuses the agent, and the agent has no bootstrap credential to request the reason: " +
			"provide the credential of a JoinToken that is Ready."
	case JoinRequestRefused:
		step.Message = "The hub refuses the agent and its bootstrap credential: provide the credential of a JoinToken that " +
			"is Ready, so that the agent can request the reason."
	case JoinRequestDifferentHub:
		step.Message = otherHubsCredential
	case JoinRequestHeld:
		step.Message = "The hub refuses the agent until an administrator decides: see its JoinRequest on the hub."
	case JoinRequestDenied:
		step.Message = "The hub refuses the agent: see its JoinRequest on the hub. Its acceptance was withdrawn, or its " +
			"JoinToken no longer admits it."
	case JoinRequestUnreachable:
		step.After = growing(RetryPoll, o.JoinRequestSince, o.Now)
	}
	step.Actions = append(step.Actions, CheckJoinRequest, ReadMembership)
	return step
}

// otherHubsCredential is the message about a bootstrap credential of another hub, which has no effect without a
// requested move.
const otherHubsCredential = "The bootstrap credential belongs to another hub than the member. Nothing changes on the " +
	"member. Provide a join.yaml of the member's hub or, to move the member, a join.yaml whose moveFrom is the identity " +
	"of the member's hub."

// leave decides for an agent whose hub has requested a leave. The agent sends heartbeats until the hub has observed
// that the member is clean, so that a member is not reported as unreachable during a long clean-up.
func leave(o AgentObserved) AgentStep {
	step := AgentStep{Phase: Leaving}
	if !o.PolicySaved {
		step.Actions = append(step.Actions, SavePolicy)
	}
	switch {
	case o.Membership.Report == ReportedClean:
		return depart(o)
	case !o.Beating:
		step.Actions = append(step.Actions, StartBeat)
	}
	switch {
	case !o.Membership.Clean:
		step.Message, step.After = "The member is leaving: waiting for the hub to withdraw its objects.", BlockedPoll
	case o.Member == MemberClean:
		step.Message = "The member is leaving: the agent is reporting to the hub that the member is clean."
		step.After = RetryPoll
		step.Actions = append(step.Actions, ReportClean)
	default:
		step.Message = "The member is leaving: the agent is cleaning up."
		if step.After = untilCleaners(o); step.After == 0 {
			step.Actions = append(step.Actions, CleanMember)
		}
	}
	return step
}

// untilCleaners returns the time until the cleaners run again. The agent reports their result to the hub, and that
// report triggers the agent again: without the pause each result would cause the next run.
func untilCleaners(o AgentObserved) time.Duration {
	if o.Member != MemberDirty {
		return 0
	}
	// The upper bound is effective if the clock was set back.
	return min(max(0, o.MemberAt.Add(GatePoll).Sub(o.Now)), GatePoll)
}

// depart decides for an agent whose hub has observed that the member is clean.
func depart(o AgentObserved) AgentStep {
	step := AgentStep{Phase: Left, Message: "The member is clean, and the hub has observed this."}
	if o.Beating {
		step.Actions = append(step.Actions, StopBeat)
	}
	if o.Membership.Rejoin {
		// The MemberCluster is kept: the agent creates JoinRequests like a new agent until the member may join again.
		step.Actions = append(step.Actions, StartOver)
	} else {
		step.Actions = append(step.Actions, RecordOut)
	}
	return step
}

// cleanDeregistered decides for an agent whose member was deregistered while the agent was disconnected.
func cleanDeregistered(o AgentObserved) AgentStep {
	step := AgentStep{Phase: Leaving, Message: "The hub has deregistered this member. The agent is cleaning up."}
	if o.Beating {
		step.Actions = append(step.Actions, StopBeat)
	}
	switch {
	case o.Member != MemberClean:
		if step.After = untilCleaners(o); step.After == 0 {
			step.Actions = append(step.Actions, CleanMember)
		}
	case o.Record.Kept:
		step.Phase = Left
		step.Actions = append(step.Actions, StartOver)
	default:
		step.Phase = Left
		step.Actions = append(step.Actions, RecordOut)
	}
	return step
}

// leftPermanently removes the agent's own objects. It deletes the record last, because an agent without a record would
// not continue the removal.
func leftPermanently(o AgentObserved) AgentStep {
	step := AgentStep{
		Phase: Left, Done: true,
		Message: "The member has left permanently. To join again, provide a new bootstrap credential and restart the agent.",
		Actions: []AgentAction{ForgetBootstrap, ForgetRecord},
	}
	if o.Beating {
		step.Actions = append([]AgentAction{StopBeat}, step.Actions...)
	}
	return step
}
