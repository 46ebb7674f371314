// Package tenancy decides which namespaces may place on which member clusters, and runs the controllers of ClusterSets
// and ClusterSetBindings on the hub.
//
// A ClusterSet selects clusters by label. A ClusterSetBinding allows its namespace to place on the clusters of one set.
// A namespace without a binding cannot place on any cluster.
//
// # Decision
//
// [Rules.Decide] is a pure function of the observed sets and bindings, with three answers. A Placement newly chooses
// only clusters that are [Allowed]. A cluster that is already chosen is withdrawn only if it is [Denied], which
// requires that a request is observable: the binding by which the cluster was chosen is being deleted, or the set of
// this binding exists and does not select the cluster any more. Everything else is [Unknown], such as a binding or a
// set that is missing. Chosen clusters stay then, because absence is not a request.
//
// # Controllers
//
// [SetupWithManager] creates the ClusterSet global, which selects every cluster, if it does not exist when the manager
// starts. It maintains the status of sets and bindings, and their finalizers: a binding exists until no Placement of
// its namespace has a cluster by it, and a set exists until it has no bindings. The [Grants] that it returns are the
// value of placement.Options.Tenancy.
//
// A binding grants clusters from when it has its finalizer, so that no deletion is missed. The folder rbac has the
// permissions that the controllers need.
package tenancy
