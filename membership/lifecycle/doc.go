// Package lifecycle decides what becomes of a member, and does nothing about it.
//
// Three pure functions share the work, and each looks at what one controller has observed:
//
//   - [NextHub] moves a MemberCluster: acceptance, preparation, leave.
//   - [NextDoor] answers a JoinRequest: whose it is, and whether anything is to be issued for it.
//   - [NextAgent] moves the agent on the member: registration, joining, clean-up.
//
// Each returns a step: the phase to show, the conditions to set, the actions to carry out in order, and when
// to look again although nothing has happened. [Health] and [Taints] decide how a member that is in the fleet fares, [NextAddress]
// where an agent finds its hub, and [SelectHub] at which of several it is.
// The functions do no I/O, read no clock and keep no state,
// and may be called concurrently. They are level-triggered: correct from any observation, however often they are asked,
// so a controller may die between any two actions and its successor goes on from what it then observes.
//
// # What holds
//
// A test walks every joint state that hub, door, agent and administrators can reach together with
// messages lost, processes restarted, agents dead, deadlines passed and the hub's caches lagging, and proves of each:
//
//   - Nobody is Joined, or given access, who is not accepted; whose acceptance is withdrawn loses access in the next step.
//   - The agent's access outlives the clean-up of its member, unless the deadline passed or acceptance was withdrawn,
//     and that a leave is forced is on record before anything is.
//   - The namespace goes when all gates are open, or have been forced.
//   - Every leave reaches Left, also when neither the agent nor a gate ever answers; with an agent that lives, in time.
//   - Left leaves nothing on the hub, and a member that was told, or finds out, that it is out is clean.
//   - A member that shall be in comes in, whatever happened before, unless its MemberCluster was deleted: then its
//     agent is out until somebody gives it a new bootstrap credential, and no JoinRequest makes the MemberCluster anew.
//   - A member is never cleaned up because of an answer that might mean something else. That access is refused, or
//     the Membership missing, proves nothing, so the agent asks at the door whether it was deregistered.
//   - Of two agents with one cluster ID the one that has the claim is in, and the other held, and they do not fight.
//   - Whatever wants nothing more is left alone: no actions, and no looking again but by those who wait.
//
// # What controllers owe
//
// The proof is one of what they do, so it is this that they have to do:
//
//   - Carry out actions in their order up to the first that fails, but for [ForceGates], which holds up nothing, and then observe
//     anew. Writes of a MemberCluster and its status are refused when somebody else wrote it since it was observed.
//   - Where a step is final, observe anew past all caches, and carry out what is decided on that. All others may be taken on what
//     caches show, each kind as of another time; only the MemberCluster must be no older than the controller's own last write.
//   - A claim key has one JoinRequest at a time. Where there is an older one of the agent's, an answer Issued in it is not for
//     the request that it has now: that is [DoorHeld] or [DoorPending], until the hub has removed it. So the hub removes
//     every request in time.
//   - [DoorDeregisteredKept] is an answer Deregistered with a member's UID in the status, and [DoorDeregistered] one without.
//   - What an agent has seen of its Membership follows the watch, and is looked at anew when its heartbeat is refused. A
//     Membership of another UID than the one registered with is [HubOther].
//   - An agent that is shut out looks again and again, so that it does not miss that it is let in: a refusal counts only
//     once it has stood for [ShutOutPatience] without a break.
//
// One gap is left. An agent that has just left a MemberCluster that is kept, and is cut off before the hub has
// answered its next JoinRequest, cannot know that the MemberCluster was deleted meanwhile: the request makes it anew, to be
// accepted or denied as any other.
//
// # The hub's machine
//
// [HubDiagram] prints it:
//
//	stateDiagram-v2
//	    [*] --> Pending: made
//	    [*] --> Accepted: made and accepted
//	    [*] --> Joining: accepted, and an agent waits
//	    Pending --> Joining: accepted, and an agent waits
//	    Denied --> Joining: accepted, and an agent waits
//	    Pending --> Accepted: accepted
//	    Denied --> Accepted: accepted
//	    Accepted --> Joining: an agent asks to join
//	    Joining --> Joined: the agent confirms
//	    Pending --> Joined: accepted again
//	    Denied --> Joined: accepted again
//	    Accepted --> Pending: spec.accepted unset
//	    Joining --> Pending: spec.accepted unset
//	    Joined --> Pending: spec.accepted unset
//	    Denied --> Pending: spec.accepted unset
//	    Accepted --> Denied: denied
//	    Joining --> Denied: denied
//	    Joined --> Denied: denied
//	    Pending --> Denied: denied
//	    Pending --> Leaving: deleted or state Leave
//	    Denied --> Leaving: deleted or state Leave
//	    Accepted --> Leaving: deleted or state Leave
//	    Joining --> Leaving: deleted or state Leave
//	    Joined --> Leaving: deleted or state Leave
//	    Pending --> Left: deleted or state Leave, and nothing is on the hub
//	    Denied --> Left: deleted or state Leave, and nothing is on the hub
//	    Accepted --> Left: deleted or state Leave, and nothing is on the hub
//	    Joining --> Left: deleted or state Leave, and nothing is on the hub
//	    Leaving --> Left: confirmed or forced, and gone from the hub
//	    Leaving --> Pending: called off, and not accepted
//	    Leaving --> Denied: called off, and denied
//	    Leaving --> Accepted: called off
//	    Leaving --> Joining: called off
//	    Leaving --> Joined: called off
//	    Left --> Pending: state Join, and not accepted
//	    Left --> Denied: state Join, and denied
//	    Left --> Accepted: state Join
//	    Left --> Leaving: something is on the hub again
//	    Left --> [*]: deleted
//	    Pending --> [*]: deleted, and nothing was on the hub
//	    Denied --> [*]: deleted, and nothing was on the hub
//	    Accepted --> [*]: deleted, and nothing was on the hub
//
// # The agent's machine
//
// [AgentDiagram] prints it:
//
//	stateDiagram-v2
//	    [*] --> Unregistered: installed
//	    Unregistered --> Registering: has made a request
//	    Registering --> Joining: has a credential
//	    Joining --> Joined: has told the hub
//	    Registering --> Rejected: denied, or its bootstrap credential is refused
//	    Rejected --> Registering: no longer denied
//	    Registering --> Unregistered: the hub has dropped the request
//	    Registering --> Left: the MemberCluster that it waited for was deleted
//	    Joining --> Rejected: shut out for a while, and asks at the door why
//	    Joined --> Rejected: shut out for a while, and asks at the door why
//	    Rejected --> Joining: has a new credential, or is let in again
//	    Rejected --> Joined: let in again
//	    Rejected --> Leaving: deregistered, or let in again to leave
//	    Joining --> Leaving: told to leave
//	    Joined --> Leaving: told to leave
//	    Joined --> Joining: has to tell the hub again
//	    Leaving --> Joined: called off, or the hub is out of reach or shuts it out
//	    Leaving --> Joining: called off, or the hub is out of reach or shuts it out
//	    Leaving --> Left: clean, and the hub knows or has deregistered it
//	    Joining --> Left: sees that the hub knows that it is clean
//	    Joined --> Left: sees that the hub knows that it is clean
//	    Left --> Joining: the hub is out of reach or shuts it out
//	    Left --> Joined: the hub is out of reach or shuts it out
//	    Left --> Unregistered: asks to come back to a MemberCluster that is kept
package lifecycle
