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
//   - Conditions: Joined; PropertiesCollected, which names what went wrong; CredentialValid, False with the hub's words
//     when that does not renew the credential.
//   - Its own entry in agents, with Joined and Healthy: False after three probes of the member's API server in a
//     row have failed, True again after two that have not.
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
// # Companions
//
// Whatever else on the member needs the hub, to apply works or manage add-ons, can be a [Companion]: it runs beside the
// agent while the cluster is a member, and uses the agent's credential, which it never sees and which changes under it. It
// has connections of its own, so that neither is held up by the other. When the member leaves, companions go on until
// the hub says that all it had sent is taken back, and have ended before the first Cleaner is asked.
//
// # Leaving
//
// When the hub asks it to leave, or has forgotten it, the agent has its Cleaners take back what belongs to the
// hub, by the policy that it last knew; tells the hub, if that is there; and removes its own Secrets. That a
// credential is refused, or a Membership gone, proves nothing: the agent looks again for ten seconds, since an API
// server that was just started refuses everybody; then it stops its heartbeat and asks at the door, by the
// bootstrap credential, and cleans nothing before it is told that it was forgotten.
//
// # Permissions
//
// On the member those in the folder rbac: list nodes, pods and ClusterProperties, get the namespace kube-system, probe
// the API server; and its two Secrets and events in its own namespace, which has to be there. (Kubernetes cannot
// limit create to a name.) On the hub those of the bootstrap credential, then those of the ClusterRole that all
// agents share, in the member's namespace alone.
package agent
