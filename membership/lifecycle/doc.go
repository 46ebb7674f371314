// Package lifecycle decides the next step of a member, and has no side effects.
//
// It contains three pure functions, each of which decides on the observation of one controller:
//
//   - [NextHub] decides for a MemberCluster: acceptance, preparation, leave.
//   - [NextJoinRequest] answers a JoinRequest: which member it belongs to, and whether a credential is issued.
//   - [NextAgent] decides for the agent on the member: registration, joining, clean-up.
//
// Each returns a step: the phase, the conditions, the actions in order, and the time until the next decision if no
// observation changes. [Health] and [Taints] decide the health of a member and its taints, [NextAddress] the address
// of an agent's hub, and [SelectHub] which of several hubs an agent uses. The functions perform no I/O, read no clock,
// keep no state, and may be called concurrently. They are level-triggered: the result is correct for any observation
// and any number of calls. Therefore a controller may stop between any two actions, and its successor continues from
// its own observation.
//
// # Guarantees
//
// A test visits every joint state that hub, JoinRequests, agent and administrators can reach together with lost
// messages, restarts, failed agents, passed deadlines and lagging caches. It proves for each state:
//
//   - No cluster is Joined, or has access, without being accepted. Withdrawn acceptance removes access in the next
//     step.
//   - The agent has access until its member is cleaned up, unless the deadline passed or acceptance was withdrawn. The
//     hub records that it forces a leave before it does so.
//   - The namespace is deleted after all gates are open or have been forced.
//   - Every leave reaches Left, also if neither the agent nor a gate ever responds; with a running agent, before the
//     deadline.
//   - After Left no object of the member exists on the hub. A member whose agent has observed its deregistration is
//     clean.
//   - A member whose desired state is Join joins from every earlier state, unless its MemberCluster was deleted: then
//     its agent does not join until it receives a new bootstrap credential, and no JoinRequest creates the
//     MemberCluster again.
//   - A member is never cleaned up because of an ambiguous answer. Refused access or a missing Membership does not
//     prove a deregistration, so the agent requests the reason through its JoinRequest.
//   - Of two agents with one cluster ID, the one with the claim is a member, and the request of the other is pending.
//   - For an object in its desired state there are no actions, and no repeated decisions except for pending objects.
//
// # Requirements for controllers
//
// The proof assumes that controllers do the following:
//
//   - Carry out actions in order, up to the first that fails, and then observe again. [ForceGates] is the exception:
//     its failure does not stop the actions after it. The API server must reject a write of a MemberCluster or its
//     status if the object changed since it was observed.
//   - If a step is final, observe again without caches, and carry out the decision on that observation. All other
//     decisions may use caches, each kind from a different time. Only the MemberCluster must be at least as new as the
//     controller's own last write.
//   - A claim key has one JoinRequest at a time. If an older one of the agent exists, an answer Issued in the older
//     one does not belong to the current request: it is [JoinRequestHeld] or [JoinRequestPending] until the hub has
//     deleted the older one. Therefore the hub must delete every request in time.
//   - [JoinRequestDeregisteredKept] is an answer Deregistered with a member's UID in the status, and
//     [JoinRequestDeregistered] one without.
//   - The agent observes its Membership through the watch, and reads it again if its heartbeat is refused. A
//     Membership with another UID than the registered one is [HubOther].
//   - An agent that is refused continues to read the Membership, so that it observes when it has access again. It acts
//     on a refusal only after the refusal has lasted for [ShutOutTimeout] without interruption.
//
// One gap remains. An agent that has left a MemberCluster that is kept, and is disconnected before the hub has
// answered its next JoinRequest, cannot observe that the MemberCluster was deleted in the meantime: the request
// creates it again, to be accepted or denied like any other.
//
// # The hub's machine
//
// [HubDiagram] prints it:
//
//	stateDiagram-v2
//	    [*] --> Pending: created
//	    [*] --> Accepted: created and accepted
//	    [*] --> Joining: accepted, and an agent has requested to join
//	    Pending --> Joining: accepted, and an agent has requested to join
//	    Denied --> Joining: accepted, and an agent has requested to join
//	    Pending --> Accepted: accepted
//	    Denied --> Accepted: accepted
//	    Accepted --> Joining: an agent requests to join
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
//	    Pending --> Left: deleted or state Leave, and no objects exist on the hub
//	    Denied --> Left: deleted or state Leave, and no objects exist on the hub
//	    Accepted --> Left: deleted or state Leave, and no objects exist on the hub
//	    Joining --> Left: deleted or state Leave, and no objects exist on the hub
//	    Leaving --> Left: confirmed or forced, and removed from the hub
//	    Leaving --> Pending: canceled, and not accepted
//	    Leaving --> Denied: canceled, and denied
//	    Leaving --> Accepted: canceled
//	    Leaving --> Joining: canceled
//	    Leaving --> Joined: canceled
//	    Left --> Pending: state Join, and not accepted
//	    Left --> Denied: state Join, and denied
//	    Left --> Accepted: state Join
//	    Left --> Leaving: objects exist on the hub again
//	    Left --> [*]: deleted
//	    Pending --> [*]: deleted, and no objects existed on the hub
//	    Denied --> [*]: deleted, and no objects existed on the hub
//	    Accepted --> [*]: deleted, and no objects existed on the hub
//
// # The agent's machine
//
// [AgentDiagram] prints it:
//
//	stateDiagram-v2
//	    [*] --> Unregistered: installed
//	    Unregistered --> Registering: has created a JoinRequest
//	    Registering --> Joining: has a credential
//	    Joining --> Joined: has reported to the hub
//	    Registering --> Rejected: denied, or its bootstrap credential is refused
//	    Rejected --> Registering: no longer denied
//	    Registering --> Unregistered: the hub has dropped the JoinRequest
//	    Registering --> Left: the awaited MemberCluster was deleted
//	    Joining --> Rejected: refused for a while, and requests the reason with a JoinRequest
//	    Joined --> Rejected: refused for a while, and requests the reason with a JoinRequest
//	    Rejected --> Joining: has a new credential, or access again
//	    Rejected --> Joined: has access again
//	    Rejected --> Leaving: deregistered, or has access again to leave
//	    Joining --> Leaving: leave requested
//	    Joined --> Leaving: leave requested
//	    Joined --> Joining: must report to the hub again
//	    Leaving --> Joined: canceled, or the hub cannot be reached or refuses the agent
//	    Leaving --> Joining: canceled, or the hub cannot be reached or refuses the agent
//	    Leaving --> Left: clean, and recorded or deregistered by the hub
//	    Joining --> Left: observes that the hub has recorded the clean state
//	    Joined --> Left: observes that the hub has recorded the clean state
//	    Left --> Joining: the hub cannot be reached or refuses the agent
//	    Left --> Joined: the hub cannot be reached or refuses the agent
//	    Left --> Unregistered: requests to join a kept MemberCluster again
package lifecycle
