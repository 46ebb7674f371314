// Package work is about what a hub wants on its members. It has no code of its own; take what you need:
//
//   - v1alpha1 has Work, what the hub wants on one member, and AppliedWork, the inventory that is kept there; crds
//     installs their definitions.
//   - apply is an engine that brings objects to what is wanted, notices what others change, and takes them back. It
//     knows of no Work and fits into any controller.
//   - readiness says whether an object is ready, by its kind or by a rule; feedback takes values from it. Both are
//     pure.
//   - agent drives them from Works: on the member, or on the hub for a member that is pushed to.
//   - leave makes a leave of membership wait for the Works.
package work
