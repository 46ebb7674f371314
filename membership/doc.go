// Package membership contains what all packages of membership share: the names of objects, labels and taints, and the
// small interfaces by which a product adds its own policy.
//
// A hub is a Kubernetes API server that manages a fleet of member clusters. An agent on each member connects to the
// hub. The hub need not reach the member, unless it runs or installs the agent. Each of these packages can be used on
// its own:
//
//   - v1alpha1 contains the API, and crds installs the definitions.
//   - lifecycle decides the next step of a hub and of an agent. It performs no I/O.
//   - heartbeat renews a Lease on the member's side and observes all Leases on the hub's side.
//   - registration exchanges a bootstrap credential for a credential of the member.
//   - hub and agent set up the controllers of each side in a controller-runtime manager.
//   - fleet connects a hub to members by kubeconfigs; push runs the agents of such members on the hub, and install
//     installs agents on them.
//   - admin contains the tasks of an administrator as functions.
//
// # Acceptance
//
// A member is admitted only if its MemberCluster has spec.accepted: true. An administrator sets the field, or a policy
// does: a JoinToken, or an [Acceptor] of the product, which decides in the same way on a JoinRequest and on a
// MemberCluster for which the hub provides an agent. Until then the condition Accepted says what is pending, and
// kubectl get memberclusters -o wide shows it.
//
// # Several hubs
//
// A member belongs to one hub at a time. An agent can have a list of hubs: it switches to another hub when its own is
// lost, rejects it or has deregistered it, and fails back to the first hub if so configured. It has a separate name and
// key for each hub; see agent.Options.Hubs.
//
// # Objects of a member on the hub
//
// A member east has a MemberCluster "east" and a namespace "member-east". The namespace contains its Membership "self",
// its Lease "heartbeat", and one RoleBinding to the ClusterRole "muster-agent", which all agents share. The
// MemberCluster is the only cluster-scoped object of a member, so the cost of an authorization does not grow with the
// number of members.
package membership
