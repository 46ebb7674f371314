// Package unassigned reports Works that no agent applies, because their namespace belongs to no member cluster.
//
// An agent only watches the namespace of its member. A Work in any other namespace has no agent and would have no
// status. The controller of this package runs on the hub and writes the status of such Works: condition Applied is
// False with the reason NoMember, and the message names the next step. It writes only the status, and never for a
// Work in the namespace of a member, where the agent writes the status.
//
//	err := unassigned.SetupWithManager(mgr, unassigned.Options{})
//
// A namespace belongs to a member if it has the label membership.muster.dev/member, which the hub sets. A product
// that runs agents in other namespaces does not need this package.
//
// # Costs
//
// The controller watches the metadata of Works with a cache of its own, and reads Namespaces from the cache of the
// manager. It caches only the identity of a Work, and sends no request for a namespace that belongs to a member.
//
// # Permissions
//
// The role in the folder rbac grants: get, list and watch on works and namespaces, patch on works/status, create and
// patch on events.
package unassigned
