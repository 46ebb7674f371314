// Package memberpolicy evaluates the MemberPolicies of a member. With a MemberPolicy, the member's administrator limits
// the objects that an agent applies for a hub.
//
// [Rules] are a pure function of the observed policies. A [Watcher] observes the policies on the member, and passes
// them to the agent of Works as its ObjectPolicy. assembly.SetupAgent sets this up for a complete agent. The types are
// in tenancy/v1alpha1. Package tenancy/crds installs their definition on a member.
//
// # Actions without a limit
//
//   - Deletions. A user of the hub who deletes a Work also deletes objects that are not accepted any more.
//   - Actions of accepted objects. A rule that accepts Pods in a namespace gives the hub the permissions of every
//     ServiceAccount in this namespace. A rule that accepts RoleBindings gives the hub the permissions that the agent
//     may bind.
//   - A modified agent. An agent with the ClusterRole cluster-admin could write MemberPolicies, although the agent of
//     this module never does. Without cluster-admin, RBAC prevents it as well.
//
// # Permissions
//
// A Watcher needs the verbs list and watch on memberpolicies.tenancy.muster.dev of the member. It never writes.
package memberpolicy
