// Package agent is the member's side of membership: it asks a hub to let its cluster join, keeps it in by
// heartbeat, tells the hub what the member is like, keeps its credential fresh, and leaves without a trace.
//
// A program adds an agent to its manager:
//
//	mgr, err := manager.New(config, manager.Options{LeaderElection: true, LeaderElectionID: "agent", ...})
//	err = agent.SetupWithManager(mgr, agent.Options{})
//
// and an administrator gives it the Secret of a JoinToken as muster-system/muster-bootstrap. That is all: the
// zero [Options] are those of an agent inside the cluster that joins. With Options.Member it runs elsewhere, and does the
// same by two configs.
//
// # How it works
//
// One goroutine goes around: it observes, has [lifecycle.NextAgent] decide, carries out the actions one by one and waits
// for the time that the decision named, or for something to happen. What it must not forget is in a [Store]
// before it is sent, so the program may be killed at any line. Each request has a deadline; a step that failed is
// taken again after a second, later after half a minute. All such pauses are jittered, by half of their length.
//
// Three things run beside it, so that nothing can delay them and they delay nothing: the heartbeat, over connections
// of its own; the watch of the one Membership; and the look at the member, by probes and collectors.
//
// # What it costs the hub
//
// In steady state one Lease update a period, no other request but to open the watch anew when the API server ends
// it, which it does after half an hour or more. The status of the Membership is written when it changed, by
// one writer. A join is a JoinRequest, a Lease and one status write.
//
// # What it tells
//
//   - Version, resources and properties of the member; see [PropertyCollector]. Resources sum up the nodes that are
//     ready and not cordoned; what is available is allocatable less what pods request that have not ended.
//   - With Options.ReportAPIs, the kinds that the member serves. Those of an extension that does not answer stay what they were.
//   - Conditions: Joined; PropertiesCollected, which names what went wrong; CredentialValid, False with the hub's words
//     when that does not renew the credential.
//   - Its own entry in agents, with Joined and Healthy: False after three probes of the member's API server in a
//     row have failed, True again after two that have not.
//
// On the member it tells by Events about its Secret: its phases, what it waits for at the door in the hub's words (action [ActionRegister]), which
// companion fails, and where it goes. Events are for people, and end. For programs, such as Register of package admin, an agent that has a manager
// and keeps its record in a Secret writes the same into an annotation of that, membership.muster.dev/agent-state, when it changes: once for a join that waits for
// nobody, and never at rest.
//
// None of the conditions has an observed generation, since a change of the spec, such as a taint, is to cost the hub
// no answer.
//
// # Credentials
//
// The agent renews its credential when 60 to 75 % of its life are over, without a restart. It counts the life, which is
// the difference of two times of the hub's clock, from when it asked, by its own clock; so it does
// not matter how wrong either clock is. When the hub refuses, it asks again after a tenth of the lifetime, at
// least a minute.
//
// # A hub that moves
//
// The agent has written down the address of its hub and the authority of its certificate. When the hub does not answer there, and
// once when the agent starts, it looks into its bootstrap credential. If that has another address or authority, such as of a hub that was
// restored somewhere else, the agent reads the Membership there, by its own credential; if it is the one that it is of, by the UID and the name
// of the MemberCluster and by the namespace, that is where its hub is from now on. It stays the same member, with the same key and credential;
// nothing is asked at the door, and companions go on with the config that they have. If it is another one, or none, the agent stays
// with the address that it has, says why in the step's message and in an Event, and looks again, as seldom as for its hub.
//
// So a bootstrap credential is trusted as much afterwards as it was to join: whoever can write its Secret can have the agent show its
// credential, if that is a token, to a server of his. Do not leave that right with anybody who may not act as the member; with csr.Method
// there is nothing to show but a certificate. Without a bootstrap credential the agent knows one address and keeps it.
//
// # Several hubs
//
// With Options.Hubs the agent has a list of hubs, of which the member is in one at a time. It begins with the first. When a hub has
// taken no heartbeat for HubPatience (it is lost, or refuses the agent), denies it, or is done with it for good, the agent goes to another, without
// a restart of the program: to the first of the list that it never left, else to the one that it left the longest ago. It goes only where a hub
// answers, so one that is cut off from all of them stays where it is, and so do its companions. It stays where it went, also when
// an earlier one is back, since each change ends and begins all that the hub manages; an administrator of the hub
// sends it on by denying it. Between two changes there is always the patience, but for a hub that is done with the member.
// Which hub it is at is in the record of that hub, so a restart changes nothing. (OCM's MultipleHubs, which has its agent restart itself, also goes by the
// order of a list on the loss of the Lease, after ten minutes, or when the hub no longer accepts it, and stays.)
//
// With Options.ReturnToFirst it goes back to the first hub by itself, when that has answered for so long while the one where it is took it: to
// what it was there, by the key and the credential that it has for that hub. But to answer is not to take the agent. So a first hub that
// answered when the agent left it, or had refused it, or was done with it, is not gone back to, also not after a restart: the agent would be sent away
// again, and so on for ever. With a hub that comes and goes it goes to and fro no faster than ReturnToFirst and HubPatience together.
//
// The metric muster_agent_hub_index says which hub of the list it is at.
//
// Each hub knows the member by a name, a key and a credential of its own, so no hub can act for another. A hub that is left takes the
// member for unreachable; what it had sent stays on the member, and its record is used when the agent comes back. Only a hub that forgets the member, or asks it to
// leave, has it cleaned up, by its own Cleaners and those of Options; that is done before the agent goes on, unless it takes longer than the
// deadline of the leave. [Hub] tells companions which hub they are called for.
//
// To have a member in several hubs at once, run an agent for each, with a list of that one: all that is kept on the member is told apart by the names of the hubs.
//
// # Companions
//
// Whatever else on the member needs the hub, to apply works or manage add-ons, can be a [Companion]: it runs beside the
// agent while the cluster is a member, and uses the agent's credential, which it never sees and which changes under it. It
// has connections of its own, so that neither is held up by the other. When the member leaves, companions go on until
// the hub says that all it had sent is taken back, and have ended before the first Cleaner is asked.
//
// # Leaving
//
// When the hub asks it to leave, or has deregistered it, the agent has its Cleaners take back what belongs to the
// hub, by the policy that it last knew; tells the hub, if that is there; and removes its own Secrets. That a
// credential is refused, or a Membership gone, proves nothing: the agent looks again for ten seconds, since an API
// server that was just started refuses everybody; then it stops its heartbeat and asks at the door, by the
// bootstrap credential, and cleans nothing before its own hub answers that it was deregistered.
//
// # Permissions
//
// On the member those in the folder rbac: list nodes, pods and ClusterProperties, get the namespace kube-system, probe
// the API server, whose APIs everybody may discover; and its two Secrets and events in its own namespace, which has to be there. (Kubernetes cannot
// limit create to a name.) With several hubs the Secrets are muster-agent-NAME and muster-bootstrap-NAME of each, which is for the program's own role to
// allow: the one in the folder names those of one hub. On the hub those of the bootstrap credential, then those of the ClusterRole that all
// agents share, in the member's namespace alone.
package agent
