// Package agent contains the agent of a member: it requests that its cluster joins a hub, sends heartbeats, reports
// the state of the member, renews its credential, and removes all objects of the hub when the member leaves.
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
// Three parts run concurrently and do not delay each other: the heartbeat, with separate connections; the watch of the
// Membership; and the observation of the member, by probes and collectors.
//
// # Cost for the hub
//
// In steady state the agent sends one Lease update per period, and one request to open the watch again when the API
// server ends it, which happens after half an hour or more. Only the main loop writes the status of the Membership,
// and only when the status has changed. A join costs a JoinRequest, a renewal of the Lease and one status write.
//
// # Reports
//
//   - Version, resources and properties of the member; see [PropertyCollector]. Resources are the sum over the nodes
//     that are ready and not cordoned; available is allocatable minus the requests of pods that have not ended.
//   - With Options.ReportAPIs, the kinds that the member serves. The kinds of an extension API server that does not
//     respond stay unchanged.
//   - Conditions: Joined; PropertiesCollected, which names the collectors that failed; CredentialValid, False with the
//     hub's message if the hub does not renew the credential.
//   - The agent's entry in status.agents, with the conditions Joined and Healthy. Healthy is False after three
//     consecutive failed probes of the member's API server, and True again after two successful ones.
//
// On the member the agent records Events about its Secret: its phases, the reason of a pending JoinRequest with the
// hub's message (action [ActionRegister]), failed companions, and changes of the hub. Events are for users, and
// expire. For programs, such as Register of package admin, an agent that has a manager and stores its record in a
// Secret writes the same information to the annotation membership.muster.dev/agent-state of that Secret when it
// changes: once for a join that need not wait, and never in steady state.
//
// The conditions have no observed generation, because a change of the spec, such as a taint, must not cause a write.
//
// # Credentials
//
// The agent renews its credential when 60 to 75 % of its lifetime have passed, without a restart. The lifetime is the
// difference of two times of the hub's clock. The agent counts it from its request, by its own clock, so errors of
// both clocks have no effect. If the hub refuses a renewal, the agent requests it again after a tenth of the lifetime,
// at least a minute.
//
// The agent removes the bootstrap credential from its Secret when the cluster has joined, and keeps the address and
// the authority of the hub there. If the hub refuses the member later, for example after the hub was restored from a
// backup that is older than the member, the agent needs the credential of another JoinToken, and reports this. The hub
// recognizes the member by its claim key. With Options.KeepBootstrap the agent keeps the credential, and registers
// again without an administrator while the JoinToken is valid.
//
// # A hub that moves
//
// The agent records the address of its hub and the authority of the hub's certificate. The agent reads its bootstrap
// credential once when it starts, and when the hub does not respond at the recorded address. If the credential
// contains another address or authority, for example of a hub that was restored elsewhere, the agent reads the
// Membership there with the member's credential. If this is the agent's Membership, by the UID and the name of the
// MemberCluster and by the namespace, the agent uses the new address from now on. The member keeps its identity, key
// and credential; the agent creates no JoinRequest, and companions continue with their config. If there is another
// Membership or none, the agent keeps its address, reports the reason in the step's message and in an Event, and
// checks again whenever it retries its hub.
//
// Therefore a bootstrap credential must be protected after the join as well: a user who can write its Secret can make
// the agent send its credential, if that is a token, to another server. Grant that permission only to users who may
// act as the member. With csr.Method the agent sends only a certificate. Without a bootstrap credential the agent
// keeps its address.
//
// # Several hubs
//
// With Options.Hubs the agent has a list of hubs, and the member belongs to one of them at a time. The agent begins
// with the first. The agent switches to another hub, without a restart of the program, if the current hub has accepted
// no heartbeat for HubTimeout (it is lost, or refuses the agent), denies the agent, or has released the member
// permanently. The next hub is the first of the list that the agent has never left or, if there is none, the hub that
// it left the longest ago. The agent switches only to a hub that responds. An agent that reaches none of them stays at
// its hub, and its companions continue. The agent stays at the new hub, also when an earlier one responds again,
// because each change ends and starts everything that the hub manages; an administrator of the hub can make the agent
// switch again by denying it. The time between two changes is at least HubTimeout, except for a hub that has released
// the member. The record of a hub contains whether it is the current one, so a restart changes nothing. (MultipleHubs
// of OCM restarts the agent. It also follows the order of a list after the Lease is lost for ten minutes, or when the
// hub no longer accepts the agent, and stays.)
//
// With Options.ReturnToFirst the agent returns to the first hub when that hub has responded for this time while the
// current hub accepted the agent. It continues there with the key and the credential for that hub. A response does not
// mean that the hub accepts the agent. Therefore the agent does not return to a first hub that responded when the
// agent left it, or that had refused or released it, also not after a restart: otherwise the agent would switch back
// and forth forever. If a hub is unstable, the interval between changes is at least ReturnToFirst and HubTimeout
// together.
//
// The metric muster_agent_hub_index is the index of the current hub in the list.
//
// Each hub has another name, key and credential of the member, so no hub can act for another. A hub that the agent has
// left observes the member as unreachable; its objects stay on the member, and the agent uses its record again when it
// returns. The agent cleans up the member only for a hub that deregisters the member or requests a leave, with that
// hub's Cleaners and those of Options. The agent completes the clean-up before it switches, unless the clean-up takes
// longer than the deadline of the leave. [Hub] contains the name of the hub for companions.
//
// To join a member to several hubs at the same time, run one agent for each hub, with a list that contains only that
// hub. All state on the member is separated by the names of the hubs.
//
// # Companions
//
// Other components on the member that need the hub, for example to apply Works or to manage add-ons, can be a
// [Companion]. It runs beside the agent while the cluster is a member, and uses the agent's credential, which it
// cannot read and which changes transparently. It has separate connections, so that neither delays the other. When the
// member leaves, companions continue until the hub reports that all its objects are withdrawn, and have ended before
// the first Cleaner runs.
//
// # Leaving
//
// When the hub requests a leave, or has deregistered the member, the agent runs its Cleaners, which remove the objects
// of the hub according to the last known policy; reports to the hub, if possible; and removes its Secrets. A refused
// credential or a missing Membership does not prove that the member was deregistered. The agent retries for ten
// seconds, because an API server that was started recently refuses all users. Then it stops its heartbeat and requests
// the reason with a JoinRequest and the bootstrap credential. It cleans nothing before its own hub answers that the
// member was deregistered.
//
// # Permissions
//
// On the member the agent needs the permissions in the folder rbac: list nodes, pods and ClusterProperties, get the
// namespace kube-system, probe the API server, whose APIs every user may discover; and its two Secrets and Events in
// its own namespace, which must exist. (Kubernetes cannot restrict create to a name.) With several hubs the Secrets
// are muster-agent-NAME and muster-bootstrap-NAME of each hub. A role of the program must permit them, because the
// role in the folder contains the names for one hub. On the hub the agent has the permissions of the bootstrap
// credential, then those of the ClusterRole that all agents share, in the member's namespace only.
package agent
