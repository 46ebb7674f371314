// Package membership has the words that all of membership shares: names of objects, labels and taints,
// and the small interfaces through which a product puts its own policy in.
//
// A hub is a Kubernetes API server that the fleet is managed from, and a member one that is managed.
// A program on the member, the agent, speaks to the hub; the hub need not reach the member, unless it is to run or install that program.
// These packages do the work, and each can be taken on its own:
//
//   - v1alpha1 has the API objects, and crds installs their definitions.
//   - lifecycle decides, without doing anything: what a hub and an agent do next.
//   - heartbeat keeps a Lease fresh on one side and watches all of them on the other.
//   - registration has the ways to get from a bootstrap credential to one of the member's own.
//   - hub and agent wire all of it into a controller-runtime manager, one on each side.
//   - fleet connects a hub to members that it has kubeconfigs for; push runs their agents there, and install brings agents to them.
//   - admin has what an administrator does, as functions.
//
// # Who comes in
//
// Nobody does whose MemberCluster is not accepted, by spec.accepted. An administrator sets it, or a policy does: a JoinToken that says so, or an [Acceptor] of
// the product's, which decides the same way on an agent that asks at the door and on a MemberCluster that the hub is to bring an agent to. While
// it is not set the condition Accepted says what is waited for, and kubectl get memberclusters -o wide shows that.
//
// # Several hubs
//
// A member is in one hub at a time. Its agent can have a list of them: it goes to another when its own is lost, denies it or is done with it, and goes back
// to the first when that answers again for long enough, if it is told to. Each hub knows it by a name and a key of its own; see agent.Options.Hubs.
//
// # What a member is, on the hub
//
// A member east is a MemberCluster "east" and a namespace "member-east", which holds its Membership
// "self", its Lease "heartbeat" and one RoleBinding to the one ClusterRole "muster-agent" that all agents
// share. Nothing of a member is cluster-scoped but its MemberCluster, so that an API server that
// authorizes requests never has more to look through because there are more members.
package membership
