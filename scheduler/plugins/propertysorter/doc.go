// Package propertysorter is a plugin that prefers clusters by a number: a property that is a quantity, or the quantity
// of a resource.
//
// Each sorter of a policy gives [scheduler.MaxScore] to the first feasible cluster, 0 to the last one, and scales the
// others linearly. If all numbers are equal, all clusters get MaxScore. Several sorters are combined by their weights.
// Clusters that are not feasible do not affect the scores.
//
// A cluster whose number is missing or invalid gets 0 from that sorter. It may still be chosen, after clusters that are
// known to be better.
//
// A sorter by available/<resource> adds the policy's request for the resource to the clusters that the placement runs
// on, so that the placement's own usage does not count against them.
package propertysorter
