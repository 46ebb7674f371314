// Package membership has the words that all of membership shares: names of objects, labels and taints,
// and the small interfaces through which a product puts its own policy in.
//
// A hub is a Kubernetes API server that the fleet is managed from, and a member one that is managed.
// A program on the member, the agent, speaks to the hub; the hub never needs to reach the member.
// These packages do the work, and each can be taken on its own:
//
//   - v1alpha1 has the API objects, and crds installs their definitions.
//   - lifecycle decides, without doing anything: what a hub and an agent do next.
//   - heartbeat keeps a Lease fresh on one side and watches all of them on the other.
//   - registration has the ways to get from a bootstrap credential to one of the member's own.
//   - hub and agent wire all of it into a controller-runtime manager, one on each side.
//
// # What a member is, on the hub
//
// A member east is a MemberCluster "east" and a namespace "member-east", which holds its Membership
// "self", its Lease "heartbeat" and one RoleBinding to the one ClusterRole "muster-agent" that all agents
// share. Nothing of a member is cluster-scoped but its MemberCluster, so that an API server that
// authorizes requests never has more to look through because there are more members.
package membership
