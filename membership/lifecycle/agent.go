package lifecycle

import (
	"time"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// AgentPhase sums up where an agent stands.
type AgentPhase string

// The phases of an agent.
const (
	Unregistered AgentPhase = "Unregistered" // nothing asked yet
	Registering  AgentPhase = "Registering"  // at the door
	Joining      AgentPhase = "Joining"      // has a credential, and has not told the hub yet
	Joined       AgentPhase = "Joined"       // in the fleet, beating
	Leaving      AgentPhase = "Leaving"      // told to leave, or deregistered, and cleaning up
	Left         AgentPhase = "Left"         // out, the member is clean
	Rejected     AgentPhase = "Rejected"     // the hub refuses it, and it does not know yet what for
)

// AgentObserved is what an agent sees.
type AgentObserved struct {
	Now time.Time

	Record Record
	// Door is the answer to the request that the record has, when it was last asked for.
	Door DoorSight
	// DoorSince is since when that has been the answer without a break.
	DoorSince time.Time
	// Hub is what became of reading the Membership, when that was last tried.
	Hub HubSight
	// HubSince is since when the hub has shown that without a break. All the ways to shut the agent out count as one.
	HubSince time.Time
	// Membership is what was read, when Hub is HubSeen.
	Membership MembershipSeen
	// PolicySaved is true when the record's policy is the one of the Membership.
	PolicySaved bool
	// Beating is true while the heartbeat runs.
	Beating bool
	// Member is what the cleaners said, and MemberAt when. MemberClean is of this round: what is clean may not stay so.
	Member   MemberState
	MemberAt time.Time
	// Renewal is where the renewal of the credential stands.
	Renewal RenewalState
	// RenewAt is when to ask for the next credential; zero: never.
	RenewAt time.Time
	// Reregister is true if the bootstrap credential requires an agent that is registered to register again: it
	// requests a move to another hub, or it is that of the agent's own hub at an address where the agent's
	// credential is refused, as after a rebuild.
	Reregister bool
}

// AgentAction is something that an agent does. Each is idempotent.
type AgentAction string

// The actions of an agent.
const (
	// MakeRequest makes a claim key where there is none, and a request, and writes both down.
	MakeRequest AgentAction = "MakeRequest"
	// AskDoor creates the JoinRequest that was written down, or looks at the answer to it.
	AskDoor AgentAction = "AskDoor"
	// Register writes down what the door has issued, and uses it.
	Register AgentAction = "Register"
	// AdoptMember writes down the UID and the name that the Membership has by now.
	AdoptMember AgentAction = "AdoptMember"
	// ReadMembership looks at the Membership in the hub.
	ReadMembership AgentAction = "ReadMembership"
	// SavePolicy writes down how to leave, in case the hub deregisters the member while the agent is away, and which hub
	// the member belongs to.
	SavePolicy AgentAction = "SavePolicy"
	StartBeat  AgentAction = "StartBeat"
	StopBeat   AgentAction = "StopBeat"
	// ReportJoined tells the hub that the member has joined.
	ReportJoined AgentAction = "ReportJoined"
	// RecordDeregistered writes down that the hub has deregistered the member.
	RecordDeregistered AgentAction = "RecordDeregistered"
	// CleanMember asks the cleaners in their order up to the first that is not done, by the policy that was
	// last known; the agent decides anew with what they said.
	CleanMember AgentAction = "CleanMember"
	// ReportClean tells the hub that the member is clean.
	ReportClean AgentAction = "ReportClean"
	// RecordOut writes down that the agent is out for good.
	RecordOut AgentAction = "RecordOut"
	// ForgetBootstrap throws away the bootstrap credential, so that a restart does not join anew.
	ForgetBootstrap AgentAction = "ForgetBootstrap"
	// StartOver throws away all that was written down but Kept, which becomes true if the agent was registered, so
	// that the agent asks at the door with a new claim.
	StartOver AgentAction = "StartOver"
	// ForgetRecord throws away all that was written down.
	ForgetRecord AgentAction = "ForgetRecord"
	// RequestRenewal makes a request for the next credential, writes it down and sends it.
	RequestRenewal AgentAction = "RequestRenewal"
	// AdoptRenewal writes down the next credential and uses it.
	AdoptRenewal AgentAction = "AdoptRenewal"
)

// AgentStep is what an agent does next.
type AgentStep struct {
	Phase AgentPhase
	// Message says why, and what a person can do about it where somebody has to.
	Message string
	// Actions in their order. A later one may rely on an earlier one, so the first that fails ends the step.
	Actions []AgentAction
	// After is when to look again although nothing has happened. Zero: at once.
	After time.Duration
	// Done is true when there is nothing to do ever again.
	Done bool
}

// NextAgent decides what an agent does next.
func NextAgent(o AgentObserved) AgentStep {
	switch {
	case o.Record.Out:
		return outForGood(o)
	case o.Record.Deregistered:
		return cleanDeregistered(o)
	case o.Record.Registered:
		return registered(o)
	default:
		return register(o)
	}
}

// register is about an agent that has no credential of its own yet.
func register(o AgentObserved) AgentStep {
	if !o.Record.Claim {
		return AgentStep{Phase: Unregistered, Message: "Making a request to join.", Actions: []AgentAction{MakeRequest}}
	}
	step := AgentStep{Phase: Registering, Actions: []AgentAction{AskDoor}, After: growing(DoorPoll, o.DoorSince, o.Now)}
	switch o.Door {
	case DoorNotAsked:
		step.Message, step.After = "Asking to join.", 0
	case DoorUnreachable:
		step.Message, step.After = "The hub cannot be reached; trying again.", growing(RetryPoll, o.DoorSince, o.Now)
	case DoorNotAskable:
		step.Message, step.After = "The agent cannot ask to join, for a reason on its own side; trying again.", growing(RetryPoll, o.DoorSince, o.Now)
	case DoorNoCredential:
		step.Phase, step.After = Rejected, HeldPoll
		step.Message = "The agent has nothing to ask to join with: give it the bootstrap credential of a JoinToken which is Ready."
	case DoorRefused:
		step.Phase, step.After = Rejected, HeldPoll
		step.Message = "The hub refuses the bootstrap credential: give the agent that of a JoinToken which is Ready."
	case DoorFull:
		step.Message, step.After = "The hub has as many requests as it takes; trying again.", HeldPoll
	case DoorUnfit:
		step.Phase, step.After = Rejected, HeldPoll
		step.Message = "The hub cannot take the request: see whether it is the right hub, and what the agent asks for."
	case DoorPending:
		step.Message = "The hub is at work on the request."
	case DoorDifferentHub:
		step.Phase, step.Message, step.After = Rejected, otherHubsCredential, HeldPoll
	case DoorHeld:
		step.Message, step.After = "The request is held, see its status on the hub.", HeldPoll
	case DoorDenied:
		step.Phase, step.Message, step.After = Rejected, "The request is denied, see its status on the hub.", HeldPoll
	case DoorDeregistered, DoorDeregisteredKept:
		if o.Door == DoorDeregistered && o.Record.Kept {
			// The MemberCluster that it waited to come back to was deleted.
			return AgentStep{Phase: Left, Message: "The hub has removed this member.", Actions: []AgentAction{RecordOut}}
		}
		step.Message, step.Actions, step.After = "The hub has dropped the request; starting over.", []AgentAction{StartOver}, 0
	case DoorIssued:
		step.Message, step.Actions, step.After = "The hub has issued a credential.", []AgentAction{Register}, 0
	default: // DoorNoRequest
		step.Message = "Asking to join."
	}
	return step
}

// registered is about an agent that has a credential of its own.
func registered(o AgentObserved) AgentStep {
	return reregister(o, stay(o))
}

// stay is about an agent that goes on with the registration that it has.
func stay(o AgentObserved) AgentStep {
	switch o.Hub {
	case HubSeen:
		if o.Membership.State == v1alpha1.StateLeave {
			return leave(o)
		}
		return join(o)
	case HubGone, HubRefused, HubOther:
		if passing(o) {
			return beatOn(o)
		}
		return shutOut(o)
	case HubReplaced:
		return AgentStep{Phase: Joining, Message: "The hub has created the MemberCluster again; taking over its UID.", Actions: []AgentAction{AdoptMember}}
	case HubUnreachable:
		// The heartbeat goes on trying on its own; nothing else changes because of what cannot be seen.
		step := AgentStep{Phase: Joining, Message: "The hub cannot be reached; trying again.", Actions: []AgentAction{ReadMembership}}
		step.After = growing(RetryPoll, o.HubSince, o.Now)
		if o.Beating {
			step.Phase = Joined
		}
		return step
	default:
		return AgentStep{Phase: Joining, Message: "Looking for the Membership.", Actions: []AgentAction{ReadMembership}}
	}
}

func join(o AgentObserved) AgentStep {
	step := AgentStep{Phase: Joined, Message: "In the fleet."}
	if !o.PolicySaved {
		step.Actions = append(step.Actions, SavePolicy)
	}
	if !o.Beating {
		step.Actions = append(step.Actions, StartBeat)
	}
	if o.Membership.Report != ReportedJoined {
		step.Phase, step.Message = Joining, "Telling the hub that the member has joined."
		step.Actions = append(step.Actions, ReportJoined)
		step.After = RetryPoll
		return step
	}
	return renew(o, step)
}

// renew keeps the credential fresh while the agent is in the fleet.
func renew(o AgentObserved, step AgentStep) AgentStep {
	switch {
	case o.Renewal == RenewalAnswered:
		step.Actions = append(step.Actions, AdoptRenewal)
		step.After = RetryPoll
	case o.RenewAt.IsZero(), o.Renewal == RenewalAsked:
		step.After = HeldPoll
	case !o.Now.Before(o.RenewAt):
		step.Actions = append(step.Actions, RequestRenewal)
		step.After = RetryPoll
	default:
		step.After = o.RenewAt.Sub(o.Now)
	}
	if o.Renewal == RenewalRefused {
		step.Message = "In the fleet; the hub refuses to renew the credential, see the Membership on the hub."
	}
	return step
}

// passing reports whether the agent may be shut out for no more than a moment: an API server that was just started
// refuses everybody until it knows who may do what, and a Membership that was deleted by mistake is made anew. Where the
// Membership is another member's there is nothing to wait for, and a heartbeat would keep that one alive.
func passing(o AgentObserved) bool {
	return o.Hub != HubOther && o.Now.Sub(o.HubSince) < ShutOutPatience
}

// beatOn changes nothing for the time being. A heartbeat that is refused costs nothing, and the one that is taken
// tells that the agent is let in again.
func beatOn(o AgentObserved) AgentStep {
	step := AgentStep{Phase: Joining, Message: "The hub refuses the agent's credential; looking again.", Actions: []AgentAction{ReadMembership}, After: RetryPoll}
	if o.Hub == HubGone {
		step.Message = "The hub has no Membership for the agent; looking again."
	}
	if o.Beating {
		step.Phase = Joined
	} else {
		step.After = growing(DoorPoll, o.HubSince, o.Now) // it may have been let in a moment ago, and not all of the hub know that yet
	}
	return step
}

// shutOut is about a hub that will not talk to the credential, or has no Membership to show. Neither proves
// anything (somebody may have deleted the Membership by mistake, and the hub be about to make it anew), so the agent asks
// at the door whether the hub still knows it, and looks whether it is over.
func shutOut(o AgentObserved) AgentStep {
	step := AgentStep{Phase: Rejected, Message: "The hub refuses the agent's credential; asking at the door why.", After: HeldPoll}
	switch o.Hub {
	case HubGone:
		step.Message = "The hub has no Membership for the agent; asking at the door why."
	case HubOther:
		step.Message = "The hub's Membership is that of another member; asking at the door why."
	}
	if o.Beating {
		step.Actions = append(step.Actions, StopBeat)
	}
	switch o.Door {
	case DoorDeregistered, DoorDeregisteredKept:
		step.Phase, step.Message, step.After = Leaving, "The hub has deregistered this member.", 0
		step.Actions = append(step.Actions, RecordDeregistered)
		return step
	case DoorIssued:
		step.Phase, step.Message, step.After = Joining, "The hub has issued a new credential.", 0
		step.Actions = append(step.Actions, Register)
		return step
	case DoorNotAsked:
		step.After = 0
		step.Actions = append(step.Actions, MakeRequest)
	case DoorNoRequest, DoorPending:
		step.After = growing(DoorPoll, o.DoorSince, o.Now)
	case DoorNotAskable:
		step.Message, step.After = "The hub shuts the agent out, which cannot ask why, for a reason on its own side; trying again.", growing(RetryPoll, o.DoorSince, o.Now)
	case DoorNoCredential:
		step.Message = "The hub shuts the agent out, which has nothing to ask why with: give it the bootstrap credential of a JoinToken which is Ready."
	case DoorRefused:
		step.Message = "The hub shuts the agent out, and refuses its bootstrap credential as well: give the agent that of a JoinToken which is Ready, so that it can ask why."
	case DoorDifferentHub:
		step.Message = otherHubsCredential
	case DoorHeld:
		step.Message = "The hub shuts the agent out until somebody decides, see its JoinRequest on the hub."
	case DoorDenied:
		step.Message = "The hub shuts the agent out: see its JoinRequest on the hub. Its acceptance was withdrawn, or its JoinToken lets it in no more."
	case DoorUnreachable:
		step.After = growing(RetryPoll, o.DoorSince, o.Now)
	}
	step.Actions = append(step.Actions, AskDoor, ReadMembership)
	return step
}

// otherHubsCredential says what to do about a bootstrap credential of another hub, which changes nothing by itself.
const otherHubsCredential = "The agent is a member of another hub than that of its bootstrap credential, and keeps everything: " +
	"give it a join.yaml of its own hub, or one with moveFrom set to the identity of its own hub to move it."

// leave is about an agent that the hub has asked to leave. It beats until the hub knows that the member is
// clean, so that nobody takes a long clean-up for a death.
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
		step.Message, step.After = "Leaving: the hub is still taking back what it had sent.", HeldPoll
	case o.Member == MemberClean:
		step.Message, step.After = "Leaving: telling the hub that the member is clean.", RetryPoll
		step.Actions = append(step.Actions, ReportClean)
	default:
		step.Message = "Leaving: cleaning up."
		if step.After = untilCleaners(o); step.After == 0 {
			step.Actions = append(step.Actions, CleanMember)
		}
	}
	return step
}

// untilCleaners is how long to leave the cleaners alone. What they leave to do is reported to the hub, which is news for
// the agent as well: without the pause each answer would bring about the next question.
func untilCleaners(o AgentObserved) time.Duration {
	if o.Member != MemberDirty {
		return 0
	}
	return min(max(0, o.MemberAt.Add(GatePoll).Sub(o.Now)), GatePoll) // or a clock that was set back could hold it up
}

// depart is about an agent whose hub knows that its member is clean.
func depart(o AgentObserved) AgentStep {
	step := AgentStep{Phase: Left, Message: "The member is clean, and the hub knows it."}
	if o.Beating {
		step.Actions = append(step.Actions, StopBeat)
	}
	if o.Membership.Rejoin {
		// The MemberCluster is kept: ask at the door, as anybody would, until it may come back.
		step.Actions = append(step.Actions, StartOver)
	} else {
		step.Actions = append(step.Actions, RecordOut)
	}
	return step
}

// cleanDeregistered is about an agent that came back to find itself deregistered.
func cleanDeregistered(o AgentObserved) AgentStep {
	step := AgentStep{Phase: Leaving, Message: "The hub has deregistered this member; cleaning up."}
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

// outForGood removes the agent's own traces. The record goes last: it is what says to go on.
func outForGood(o AgentObserved) AgentStep {
	step := AgentStep{
		Phase: Left, Done: true,
		Message: "Out for good. To join again, give the agent a new bootstrap credential and restart it.",
		Actions: []AgentAction{ForgetBootstrap, ForgetRecord},
	}
	if o.Beating {
		step.Actions = append([]AgentAction{StopBeat}, step.Actions...)
	}
	return step
}
