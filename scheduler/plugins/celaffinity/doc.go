// Package celaffinity supports terms of a policy in CEL, the Common Expression Language. Its [Matcher] is an extension
// of package clusteraffinity.
//
// An expression refers to the variable cluster and returns a boolean:
//
//	cluster.labels["region"] in ["eu", "us"] && !cluster.taints.exists(t, t.effect == "NoExecute")
//
// The fields of cluster are
//
//	name                               string
//	labels, properties                 map of string to string
//	joined, healthy                    bool
//	taints                             list of objects with the strings key, value and effect
//	capacity, allocatable, available   map of resource name to quantity
//
// In addition to standard CEL, there are quantities and semantic versions. They are compared with ==, !=, <, <=, > and
// >=, or as in Kubernetes with isLessThan, isGreaterThan and compareTo:
//
//	cluster.available["cpu"] >= quantity("4") && cluster.available["memory"].isGreaterThan(quantity("1.5Gi"))
//	semver(cluster.properties["version"]) >= semver("1.31.0")
//
// isQuantity and isSemver report whether a string is valid. asApproximateFloat converts a quantity to a floating-point
// number.
//
// An expression is compiled and type-checked once. Its result is cached until the cluster changes. If an expression
// fails for a cluster, the plugin rejects this cluster with a reason; other clusters are not affected. Typical failures
// are a label that does not exist, a string that is not a quantity, and an exceeded cost limit. To test a label that
// may not exist, write "region" in cluster.labels && cluster.labels["region"] == "eu".
package celaffinity
