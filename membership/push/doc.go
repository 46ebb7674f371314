// Package push has the hub run the agents of the members whose spec.joinMode is Push, so that nothing is installed on them:
//
//	runner, err := push.New(mgr, push.Options{})
//	... // fleet.Options{Runners: []fleet.Runner{runner}}
//
// An administrator makes a Secret with a kubeconfig of the cluster and a MemberCluster that is accepted and names it; nothing else is to be done. Where
// the hub has an Acceptor ([membership.Acceptor]) that lets the MemberCluster in, it need not say that it is accepted.
//
// # The same life
//
// What runs is the agent of package agent, in the hub's process, and it comes and goes through the same door as any other: it asks with a JoinToken, gets
// the credential of a member, which is all that it and its companions use on the hub, beats, renews, and leaves when it is told to. So a hub that is broken
// into by way of a companion is broken into no further than the namespace of one member.
//
// Only spec.accepted says whether a push member comes in. While that is not true the runner asks nobody anything. Where nobody has set it package hub
// asks its Acceptor, by the name and the labels of the MemberCluster; what is waited for, and what to do, is in the condition Accepted.
// Once an agent speaks for the member, as spec.claim tells, that is over: an acceptance that is taken back is an administrator's to give back.
//
// When the member is accepted the runner writes the cluster's ID, the UID of its namespace kube-system, into spec.clusterID where that is empty. A
// kubeconfig that leads to another cluster than spec.clusterID says, and a cluster that is another MemberCluster already, are errors of Run, which the
// fleet tells by Events.
//
// # What is where
//
// All of it is owned by the MemberCluster and has the label [membership.MemberLabel], so that nothing is left should nobody be there to remove it:
//
//   - In Options.StoreNamespace a Secret "agent-<UID of the MemberCluster>" with what the agent remembers. It goes when the member has left, and not before.
//   - In Options.RegistrationNamespace a JoinToken "push-<UID of the MemberCluster>", for one use by this member alone. It goes as soon as the agent has
//     joined, and when nobody is to join any more.
//
// A MemberCluster that is made Pull or Install keeps the Secret, so that its agent goes on should that be taken back. Another agent gets in when spec.claim
// is cleared, or set to its own.
//
// # Members that do not answer
//
// The heartbeat says that the agent is alive, which reaches the hub whatever becomes of the member. What the hub cannot know then is not whether somebody is there
// but how the member fares, and the agent has a word on that: after three probes without an answer it says that its cluster is not ready. So the condition
// Healthy of a push member that is out of reach is False, with the reason ClusterNotReady and a message that says what is wrong, and not Unknown, which here means that the
// hub's own part has failed. A member that does not answer delays nobody else.
//
// Its leave ends at its deadline as that of any dead member. What was on it stays there: nobody is left who would come back for it.
//
// # What else is on the member
//
// Agents put nothing on their member but what companions do. The kubeconfig's account there, and what companions need, such as the definition of AppliedWork, are
// somebody else's, who takes them away when the member has left: Unjoin of package admin does, where Join has made them.
//
// # What it costs
//
// A member that is in costs what any member costs, one Lease a period, and the agent's watch of one Membership. One that waits costs nothing: all
// MemberClusters are in one cache. Joining takes a JoinToken more than an agent by itself, and a look at the member's namespace kube-system.
//
// # Permissions
//
// On the hub those in the folder rbac. Its Roles are for the namespaces muster-registration and muster-connections: change their metadata.namespace where the options
// name others. On the member, with what the kubeconfig has, those in the folder rbac of package agent, and what companions need.
package push
