// Package tenancy decides which namespaces may place on which member clusters, and runs the controllers of ClusterSets
// and ClusterSetBindings on the hub.
//
// A ClusterSet selects clusters by label. A ClusterSetBinding allows its namespace to place on the clusters of one set.
// A namespace without a binding cannot place on any cluster.
//
// # Decision
//
// [Rules.Decide] is a pure function of the observed sets and bindings with three results:
//
//   - [Allowed]: a Placement may newly choose the cluster.
//   - [Denied]: a cluster that is already chosen is withdrawn. This requires an observable request: the binding by
//     which the cluster was chosen is being deleted, or the set of this binding exists and does not select the cluster
//     any more.
//   - [Unknown]: everything else, such as a missing binding or set. A Placement does not newly choose the cluster, but
//     chosen clusters stay, because absence is not a request.
//
// # Controllers
//
// [SetupWithManager] creates the ClusterSet global, which selects every cluster, if it does not exist when the manager
// starts. The controllers maintain the status and the finalizers of sets and bindings. A binding exists until no
// Placement of its namespace has a cluster by it. A set exists until it has no bindings. The [Grants] that
// SetupWithManager returns are the value of placement.Options.Tenancy.
//
// A binding grants clusters only after it has its finalizer, so that no deletion is missed. The folder rbac contains
// the permissions of the controllers.
package tenancy
