// Package propertysorter is the plugin that prefers clusters by the numbers that they have: quantities among their
// properties, or what they have of a resource.
//
// Each sorter of a policy gives [scheduler.MaxScore] to the feasible cluster that comes first, 0 to the one that comes
// last, and to the others in proportion; where all have the same number, all get MaxScore. Several sorters are combined
// by their weights. Clusters that are not feasible have no part in it.
//
// A cluster without the number, or with something that is none, gets 0 from that sorter: it may still be chosen, after
// those that are known to be better.
//
// A sorter by available/<resource> adds what the policy asks for of the resource to the clusters that the placement
// is on, so that the placement's own usage does not count against them.
package propertysorter
