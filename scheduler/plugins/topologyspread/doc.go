// Package topologyspread is a plugin that spreads clusters over the domains of a topology. With PickN, it chooses
// clusters so that the numbers of clusters per domain, such as a zone, are similar. With PickAll, all feasible clusters
// are chosen, so the plugin has no effect.
//
// The domains of a constraint are the values of its label among the clusters that can be chosen. If no cluster of a
// zone can be chosen, because they are unreachable or do not match, the zone is not a domain and does not restrict
// other zones.
//
// The skew is the difference between the maximum and the minimum number of chosen clusters per domain. While there are
// fewer domains than minDomains, the minimum is 0. A cluster without the label is in no domain.
//
// # Clusters that were chosen before
//
// Clusters that were chosen before stay, unless the policy rebalances: the loss or addition of a zone moves nothing.
// The constraints then apply to each additional cluster. With DoNotSchedule, the domain of a new cluster may exceed the
// domain with the fewest clusters by at most maxSkew. If this permits no cluster, fewer clusters than wanted are
// chosen. Among the permitted clusters, those with the fewest missing labels come first, then those with the least
// excess, and then those with the highest score.
//
// # Choice of clusters
//
// If no cluster was chosen before, or the policy rebalances, the choice satisfies in this order:
//
//   - With DoNotSchedule, the skew never exceeds maxSkew, and a cluster without the label is not chosen.
//   - The number of clusters is maximal, up to numberOfClusters.
//   - With ScheduleAnyway, the number of clusters without the label is minimal, and then the excess of the skew over
//     maxSkew. With several such constraints, the excess of the first constraint is minimized first.
//   - The sum of the scores is maximal, with a precision of one millionth. If sums are equal, the number of bound
//     clusters decides, and then the comparison of the clusters one by one, the best first (clusters without a label
//     are last).
//
// The choice does not depend on anything else, such as the order in which clusters were added.
//
// # Guarantees
//
// With one or two families of constraints, the choice is exactly the one specified above. A family is one constraint,
// or several constraints with nested domains: each zone belongs to one region, and either all clusters of a zone have
// the label of a region or none has. Two families may cross in any way, such as regions with their zones, and versions.
// If the minimum number of clusters per domain were known for each constraint, one family would be a matroid and two
// families a flow, and both can be solved exactly. The minimum is found by a search over ranges that are bisected if
// necessary; mostly a few ranges suffice. Choosing 100 of 10,000 clusters, in 30 zones and 20 versions, takes
// milliseconds. The search ends after it has visited 16,777,216 clusters, domains and cells (such as the intersection
// of a zone and a version) in total, which takes about a third of a second.
//
// With three or more families, such as regions, versions and tiers, the choice is the best of up to 131,072 tries. This
// is sufficient for all choices from ten clusters. An exact choice cannot be guaranteed: if each domain may have one
// cluster, the maximum number of clusters is the problem of three-dimensional matching (Karp, "Reducibility among
// combinatorial problems", 1972), for which only exponential algorithms are known.
//
// A choice from more clusters, or one whose search ended early, also satisfies all DoNotSchedule constraints, and no
// further cluster could be added. It may have fewer clusters, more excess or a smaller sum of scores than possible.
//
// # In a profile
//
// The plugin leaves exactly the clusters that are chosen, so it must be the last SelectPlugin. In particular, it must
// follow GroupSpread, which leaves the groups from which it chooses.
package topologyspread
