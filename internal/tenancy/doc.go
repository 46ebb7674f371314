// Package tenancy decides which namespaces may place on which member clusters.
//
// A [Set] selects clusters by label. A [Binding] allows one namespace to place on the clusters of one set. A namespace
// without a binding cannot place on any cluster, and a binding of a set that does not exist grants nothing.
//
// The package contains the decision only. It has no client and no API types, and no controller of muster calls it yet:
// placements are not restricted by namespace.
package tenancy
