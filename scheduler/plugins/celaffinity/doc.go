// Package celaffinity lets the terms of a policy ask for anything that can be said in CEL, the Common Expression
// Language: [Matcher] is for package clusteraffinity.
//
// An expression is about the variable cluster, and is true or false:
//
//	cluster.labels["region"] in ["eu", "us"] && !cluster.taints.exists(t, t.effect == "NoExecute")
//
// The fields of cluster are
//
//	name                               string
//	labels, properties                 map of string to string
//	joined, healthy                    bool
//	taints                             list of what has key, value and effect, which are strings
//	capacity, allocatable, available   map of a resource's name to its quantity
//
// Besides what every CEL has, there are quantities and semantic versions. They are compared with ==, !=, <, <=, > and
// >=, or as in Kubernetes with isLessThan, isGreaterThan and compareTo:
//
//	cluster.available["cpu"] >= quantity("4") && cluster.available["memory"].isGreaterThan(quantity("1.5Gi"))
//	semver(cluster.properties["version"]) >= semver("1.31.0")
//
// isQuantity and isSemver say whether a text is one, and asApproximateFloat makes a number of a quantity to calculate
// with.
//
// An expression is compiled and its types are checked once. Its answer is kept for as long as the cluster does not
// change. A cluster that there is no answer for is refused, with a reason, and nothing else happens: where a label is
// not there, a text is no quantity, or the cost limit is reached. To ask for a label that may not be there write
// "region" in cluster.labels && cluster.labels["region"] == "eu".
package celaffinity
