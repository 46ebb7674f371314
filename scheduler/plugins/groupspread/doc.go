// Package groupspread is the plugin that bounds from how many groups clusters are chosen. The clusters with one value
// of a label, such as a provider, make a group. A cluster without the label is in none, and is not chosen.
//
// # Clusters that were chosen before
//
// They stay, unless the policy rebalances. Their groups count, even if there are more of them than maxGroups, and the
// constraints apply to the clusters that are chosen besides: these are of groups that are chosen already, or of as
// many others as maxGroups leaves. If minGroups cannot be reached, nothing is chosen besides.
//
// # With PickN
//
// At most maxGroups groups are chosen from, and at least minGroups, of each of which at least one cluster is chosen.
// Within that, in this order:
//
//   - As many clusters as possible, up to numberOfClusters.
//   - The greatest total of scores, to the millionth; of equal totals the one with the most clusters that are bound;
//     then the one with the groups that rank higher, and of their clusters the better ones.
//
// If clusters of fewer groups than minGroups can be chosen, or fewer clusters are wanted than that, none is.
//
// # With PickAll
//
// All clusters of the maxGroups groups that rank highest are chosen, if there are minGroups groups.
//
// # The rank of a group
//
// The greater is the sum of the scores of those of its clusters that could be chosen, the best first, the higher it
// ranks. With PickAll these are all; with PickN they are numberOfClusters - minGroups + 1 at most, since each of the
// other groups that there have to be has one. Of equal sums the group with more such clusters ranks higher; then the
// one with more that are bound; then the one with the better best cluster.
//
// With PickN the rank decides by itself where it would take too long to find the greatest total: where the product of
// groups, maxGroups and the square of numberOfClusters is above 4,194,304, such as 40 groups of which 10 are chosen for
// 103 clusters. Then the groups are chosen one by one, the highest first, passing over those with which there could not
// be as many clusters as possible.
//
// # Several constraints
//
// They are applied in the order of the policy, and each leaves the next one only the clusters of the groups that it has
// chosen. So no maxGroups is ever exceeded. Clusters for the minima are then chosen one by one, the first one that
// serves the most constraints. If that does not fulfill all of them, none is chosen, although there might have been
// other groups or clusters that would.
//
// # In a profile
//
// The plugin comes before TopologySpread. For a policy that has constraints of both with PickN it leaves all clusters
// of the groups that it has chosen, maxGroups of them if there are as many, and which of them are chosen is up to
// TopologySpread. So maxGroups holds, while minGroups only makes sure that there are as many groups to choose from:
// TopologySpread knows nothing of groups.
package groupspread
