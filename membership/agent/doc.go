// Package agent is the member's side of membership: it requests that its cluster joins a hub, sends heartbeats, reports
// the state of the member, renews its credential, and leaves without a trace.
//
// A program adds an agent to its manager:
//
//	mgr, err := manager.New(config, manager.Options{LeaderElection: true, LeaderElectionID: "agent", ...})
//	err = agent.SetupWithManager(mgr, agent.Options{})
//
// and an administrator creates the Secret muster-system/muster-bootstrap with the content of the JoinToken's Secret.
// The zero [Options] are for an agent inside the cluster that joins. With Options.Member the agent runs elsewhere and
// uses two configs.
//
// # Main loop
//
// One goroutine observes, calls [lifecycle.NextAgent], carries out the actions in order and waits for the time in the
// step, or for a new observation. State that must survive is saved in a [Store] before it is sent, so the program may
// be killed at any point. Each request has a timeout; a failed step is retried after a second, later after half a
// minute. All these pauses are jittered by half of their length.
//
// Three parts run concurrently, so that they neither delay nor are delayed: the heartbeat, with its own connections;
// the watch of the Membership; and the observation of the member, by probes and collectors.
//
// # Cost for the hub
//
// In steady state one Lease update per period, and one request to open the watch again when the API server ends it,
// which happens after half an hour or more. The status of the Membership is written when it has changed, by one writer.
// A join is a JoinRequest, a renewal of the Lease and one status write.
//
// # Reports
//
//   - Version, resources and properties of the member; see [PropertyCollector]. Resources are the sum over the nodes
//     that are ready and not cordoned; available is allocatable minus the requests of pods that have not ended.
//   - With Options.ReportAPIs, the kinds that the member serves. Those of an extension API server that does not respond
//     stay unchanged.
//   - Conditions: Joined; PropertiesCollected, which names the failures; CredentialValid, False with the hub's message
//     if the hub does not renew the credential.
//   - Its own entry in agents, with Joined and Healthy: False after three consecutive failed probes of the member's API
//     server, True again after two successful ones.
//
// On the member the agent records Events about its Secret: its phases, the reason of a pending JoinRequest with the
// hub's message (action [ActionRegister]), failed companions, and changes of the hub. Events are for people, and
// expire. For programs, such as Register of package admin, an agent that has a manager and stores its record in a
// Secret writes the same to the annotation membership.muster.dev/agent-state of that Secret when it changes: once for a
// join without waiting, and never in steady state.
//
// The conditions have no observed generation, because a change of the spec, such as a taint, must not cause a write.
//
// # Credentials
//
// The agent renews its credential when 60 to 75 % of its lifetime have passed, without a restart. The lifetime is the
// difference of two times of the hub's clock, and the agent counts it from its request, by its own clock; so errors of
// both clocks do not matter. If the hub refuses, the agent asks again after a tenth of the lifetime, at least a minute.
//
// The agent removes the bootstrap credential from its Secret when the cluster has joined, and keeps the address and the
// authority of the hub there. A member that the hub refuses later, for example after the hub was restored from a backup
// that is older than the member, needs the credential of another JoinToken, and reports that. With its claim key it is
// the same member. With Options.KeepBootstrap the agent keeps the credential, and registers again by itself while the
// JoinToken is valid.
//
// # A hub that moves
//
// The agent has recorded the address of its hub and the authority of its certificate. If the hub does not respond
// there, and once when the agent starts, the agent reads its bootstrap credential. If that has another address or
// authority, for example of a hub that was restored elsewhere, the agent reads the Membership there with its own
// credential. If this is its own Membership, by the UID and the name of the MemberCluster and by the namespace, the
// agent uses the new address from now on. The member keeps its identity, key and credential; no JoinRequest is made,
// and companions continue with their config. If there is another Membership or none, the agent keeps its address,
// reports the reason in the step's message and in an Event, and checks again, as often as it retries its hub.
//
// So a bootstrap credential must be protected after the join as well: a user who can write its Secret can make the
// agent send its credential, if that is a token, to another server. Grant that permission only to users who may act as
// the member; csr.Method sends only a certificate. Without a bootstrap credential the agent keeps its address.
//
// # Several hubs
//
// With Options.Hubs the agent has a list of hubs, and the member is in one of them at a time. The agent begins with the
// first. If a hub has accepted no heartbeat for HubTimeout (it is lost, or refuses the agent), denies the agent, or
// has released the member for good, the agent goes to another one without a restart of the program: to the first of the
// list that it never left, or else to the one that it left the longest ago. It goes only to a hub that responds, so an
// agent that is cut off from all of them stays where it is, and so do its companions. It stays at the new hub, also
// when an earlier one responds again, because each change ends and starts everything that the hub manages; an
// administrator of the hub can send it on by denying it. Between two changes is at least HubTimeout, except for a hub
// that has released the member. The record of a hub contains whether the agent is there, so a restart changes nothing.
// (MultipleHubs of OCM restarts the agent, and also follows the order of a list after the Lease is lost for ten
// minutes, or when the hub no longer accepts it, and stays.)
//
// With Options.ReturnToFirst the agent goes back to the first hub by itself, after that has responded for so long while
// the current hub accepted the agent. It continues there with the key and the credential for that hub. A response does
// not mean that the hub accepts the agent. So the agent does not go back to a first hub that responded when the agent
// left it, or that had refused or released it, also not after a restart: the agent would be sent away again, for ever.
// If a hub is unstable, the agent changes no faster than ReturnToFirst and HubTimeout together.
//
// The metric muster_agent_hub_index is the index of the current hub in the list.
//
// Each hub has another name, key and credential of the member, so no hub can act for another. For a hub that was left,
// the member is unreachable; its objects stay on the member, and its record is used when the agent comes back. Only a
// hub that deregisters the member, or requests a leave, has it cleaned up, with the hub's own Cleaners and those of
// Options; this is completed before the agent goes on, unless it takes longer than the deadline of the leave. [Hub]
// tells companions the name of their hub.
//
// To have a member in several hubs at once, run one agent for each, with a list of that hub: all state on the member is
// separated by the names of the hubs.
//
// # Companions
//
// Other components on the member that need the hub, for example to apply Works or to manage add-ons, can be a
// [Companion]: it runs beside the agent while the cluster is a member, and uses the agent's credential, which it never
// sees and which changes transparently. It has its own connections, so that neither delays the other. When the member
// leaves, companions continue until the hub reports that all its objects are withdrawn, and have ended before the first
// Cleaner runs.
//
// # Leaving
//
// When the hub requests a leave, or has deregistered the member, the agent runs its Cleaners, which remove the objects
// of the hub according to the last known policy; reports to the hub, if possible; and removes its own Secrets. A
// refused credential or a missing Membership proves nothing: the agent retries for ten seconds, because an API server
// that was just started refuses all users; then it stops its heartbeat and asks for the reason through a JoinRequest,
// with the bootstrap credential. It cleans nothing before its own hub answers that the member was deregistered.
//
// # Permissions
//
// On the member those in the folder rbac: list nodes, pods and ClusterProperties, get the namespace kube-system, probe
// the API server, whose APIs every user may discover; and its two Secrets and Events in its own namespace, which must
// exist. (Kubernetes cannot restrict create to a name.) With several hubs the Secrets are muster-agent-NAME and
// muster-bootstrap-NAME of each, which the program's own role must allow: the role in the folder contains the names for
// one hub. On the hub those of the bootstrap credential, then those of the ClusterRole that all agents share, in the
// member's namespace only.
package agent
