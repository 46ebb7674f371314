// Package work documents its subpackages, which deliver objects from a hub to its members. It has no code:
//
//   - v1alpha1 has the kinds Work, the desired objects of one member, and AppliedWork, the inventory on the member.
//     crds installs their definitions.
//   - apply is an engine that applies objects, detects changes by other clients, and deletes the objects. It does not
//     depend on Work, and any controller can use it.
//   - readiness evaluates whether an object is ready, by its kind or by a rule. feedback extracts values from an
//     object. Both are pure.
//   - agent applies Works with these packages. It runs on the member, or on the hub for a member in push mode.
//   - leave delays the leave of a member until the objects of its Works are deleted. companion adds the agent of
//     Works to an agent of membership.
//   - unassigned reports Works in namespaces that belong to no member.
package work
