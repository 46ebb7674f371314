// Package memberpolicy evaluates the MemberPolicies of a member, with which its administrator limits what an agent
// applies for a hub.
//
// [Rules] are a pure function of the observed policies. A [Watcher] observes them on the member, and gives them to the
// agent of Works as its ObjectPolicy: assembly.SetupAgent does that for a complete agent. The types are in
// tenancy/v1alpha1, and tenancy/crds installs their definition on a member.
//
// # What a policy does not limit
//
//   - Deletions. A user of the hub who deletes a Work also deletes objects that are not accepted any more.
//   - What accepted objects do. A rule that accepts Pods in a namespace gives the hub the permissions of every
//     ServiceAccount of this namespace. A rule that accepts RoleBindings gives it what the agent may bind.
//   - A modified agent. An agent with the ClusterRole cluster-admin could write MemberPolicies; the agent of this
//     module refuses to. Without cluster-admin, RBAC refuses as well.
//
// # Permissions
//
// A Watcher needs the verbs list and watch on memberpolicies.tenancy.muster.dev of the member. It never writes.
package memberpolicy
