// Package push runs the agents of members with spec.joinMode Push on the hub, so that nothing is installed on them:
//
//	runner, err := push.New(mgr, push.Options{})
//	... // fleet.Options{Runners: []fleet.Runner{runner}}
//
// An administrator creates a Secret with a kubeconfig of the cluster, and an accepted MemberCluster that references it.
// If the hub has an Acceptor ([membership.Acceptor]) that accepts the MemberCluster, spec.accepted can be left unset.
//
// # Lifecycle
//
// The runner starts the agent of package agent in the process of the hub. The agent uses the same join requests as any
// other agent: it registers with a JoinToken, receives the credential of a member, which is the only credential of the
// agent and its companions on the hub, sends heartbeats, renews the credential, and leaves on request. Therefore a
// compromised companion can access only the namespace of one member.
//
// Only spec.accepted admits a push member. While it is not true the runner sends no requests to the member. If it is
// unset, package hub calls its Acceptor with the name and the labels of the MemberCluster; the condition Accepted
// contains the reason why it is pending and the next step. After an agent represents the member (spec.claim is set),
// only an administrator can restore an acceptance that was withdrawn.
//
// When the member is accepted, the runner writes the cluster ID, which is the UID of the namespace kube-system, to
// spec.clusterID if that is empty. A kubeconfig of another cluster than spec.clusterID, and a cluster that belongs to
// another MemberCluster, cause errors of Run, which the fleet reports by Events.
//
// # Objects on the hub
//
// The MemberCluster owns all objects, and they have the label [membership.MemberLabel]:
//
//   - In Options.StoreNamespace a Secret "agent-<UID of the MemberCluster>" with the state of the agent. It is deleted
//     after the member has left.
//   - In Options.RegistrationNamespace a JoinToken "push-<UID of the MemberCluster>", for one use by this member only.
//     It is deleted when the agent has joined, and when no agent must join.
//
// If the join mode of a MemberCluster changes to Pull or Install, the Secret stays, so that its agent continues if the
// change is reverted. Another agent can register when spec.claim is cleared or set to its own claim.
//
// # Unreachable members
//
// The heartbeat of a push member shows that the agent runs, regardless of the state of the member. The agent reports
// that its cluster is not ready after three failed probes. Therefore the condition Healthy of an unreachable push
// member is False with the reason ClusterNotReady and a message, and not Unknown, which for a push member means that
// the agent on the hub has failed. An unreachable member does not delay others.
//
// The leave of an unreachable member ends at its deadline. Objects on the member stay, because no agent removes them
// later.
//
// # Objects on the member
//
// Agents create no objects on their member, except those of companions. The kubeconfig's account, and definitions that
// companions need, such as AppliedWork, must be removed by their creator after the leave: Unjoin of package admin
// removes those that Join has created.
//
// # Cost
//
// A joined member costs one Lease update per period, and the agent's watch of one Membership, like any member. A
// pending member costs nothing: all MemberClusters are in one cache. Joining needs one JoinToken and one read of the
// member's namespace kube-system in addition to the requests of an agent.
//
// # Permissions
//
// On the hub, those in the folder rbac. Its Roles are for the namespaces muster-registration and muster-connections;
// change their metadata.namespace if the options name others. On the member, the kubeconfig needs the permissions in
// the folder rbac of package agent, and those of companions.
package push
