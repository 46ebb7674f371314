// Package topologyspread is the plugin that spreads clusters over the domains of a topology: with PickN it chooses them
// so that the numbers from each domain, such as a zone, stay near to each other. With PickAll there is nothing to
// choose.
//
// The domains of a constraint are the values of its label among the clusters that can be chosen. A zone none of whose
// clusters can be chosen, because they are unreachable or do not match, is not a domain, so it does not restrict
// other zones.
//
// The skew is the most clusters that are chosen of a domain less the fewest. As long as there are fewer domains than
// minDomains, the fewest is 0. A cluster without the label is in no domain.
//
// # Clusters that were chosen before
//
// They stay, unless the policy rebalances: a zone that is lost, or one that joins, moves nothing. Then the
// constraints apply to the clusters that are chosen besides, one by one: with DoNotSchedule the domain of a new
// cluster may be ahead of the domain with the fewest by maxSkew at most, and if that admits no cluster, fewer are
// chosen than are wanted. Of the admissible clusters the one comes first that lacks the fewest labels, then the one
// with the least excess, and then the one with the greatest score.
//
// # What is chosen
//
// If nothing was chosen before, or the policy rebalances, in this order:
//
//   - With DoNotSchedule the skew is never above maxSkew, and a cluster without the label is not chosen.
//   - Within that, as many clusters as possible, up to numberOfClusters.
//   - With ScheduleAnyway as few clusters without the label as possible, and then the least excess of the skew over
//     maxSkew. Of several such constraints, what the first one wants comes first as to the excess.
//   - The greatest total of scores, to the millionth; of equal totals the one with the most clusters that are bound;
//     then the one that is better cluster by cluster, the best first (those without a label last).
//
// The choice does not depend on anything else, such as the order in which clusters came.
//
// # What is guaranteed
//
// One family of constraints, or two: exactly that. A family is one constraint, or several whose domains nest (each zone
// lies in one region; and of the clusters of a zone all have the label of a region or none has). Two families may cross
// in any way, such as regions with their zones, and versions. If it were known for each constraint how many clusters
// the domain with the fewest has, one family would be a matroid, and two a flow, and both are solved exactly. What it
// is, is found by trying ranges of it, which are cut in two where they have to be; mostly that takes a few. 100 of
// 10,000 clusters, in 30 zones and 20 versions, take milliseconds. The search is cut short after 16,777,216 clusters,
// domains and cells (what a zone and a version have in common, say) that were looked at in all, which takes about a
// third of a second.
//
// Three families or more, such as regions, versions and tiers: exactly that, as far as 131,072 tries show, which is
// enough for all choices from ten clusters. More cannot be promised: where each domain may have one cluster, it is the
// problem of matching in three dimensions to find out how many there can be (Karp, "Reducibility among combinatorial
// problems", 1972), and no way is known to solve that which is not exponential.
//
// A choice from more than that, or one whose search was cut short, breaks no DoNotSchedule either, and there is no
// cluster that could be chosen besides. It may be of fewer clusters, of more excess or of a smaller total than there
// could be.
//
// # In a profile
//
// The plugin leaves in the running what is to be chosen and no more, so it comes last of those that select. In
// particular it comes after GroupSpread, which leaves it the groups to choose from.
package topologyspread
