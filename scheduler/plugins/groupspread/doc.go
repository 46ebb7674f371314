// Package groupspread is a plugin that limits the number of groups from which clusters are chosen. A group consists of
// the clusters with the same value of a label, such as a provider. A cluster without the label is in no group, and is
// not chosen.
//
// # Clusters that were chosen before
//
// Clusters that were chosen before stay, unless the policy rebalances. Their groups are counted, even if they exceed
// maxGroups. The constraints apply to additional clusters: these belong to groups that are already chosen, or to
// further groups up to maxGroups. If minGroups cannot be reached, no additional cluster is chosen.
//
// # With PickN
//
// Clusters are chosen from at least minGroups and at most maxGroups groups, and at least one from each of these groups.
// Among all such choices, the plugin maximizes in this order:
//
//   - The number of clusters, up to numberOfClusters.
//   - The sum of the scores, with a precision of one millionth. If sums are equal, the number of bound clusters
//     decides, then the rank of the groups, and then the rank of their clusters.
//
// If there are fewer eligible groups than minGroups, or numberOfClusters is less than minGroups, no cluster is chosen.
//
// # With PickAll
//
// If there are at least minGroups groups, all clusters of the maxGroups groups with the highest rank are chosen.
//
// # The rank of a group
//
// The rank of a group is the sum of the scores of its best clusters that could be chosen. With PickAll these are all of
// its clusters. With PickN these are at most numberOfClusters - minGroups + 1 clusters, because each of the other
// required groups has at least one. If sums are equal, the group with more such clusters ranks higher, then the group
// with more bound clusters, and then the group with the better best cluster.
//
// With PickN, the search for the maximum sum is replaced if it would take too long: if the product of groups, maxGroups
// and the square of numberOfClusters exceeds 4,194,304, such as 40 groups of which 10 are chosen for 103 clusters. Then
// the groups are chosen one by one in descending order of their rank. A group is skipped if the maximum number of
// clusters could not be reached with it.
//
// # Several constraints
//
// Constraints are applied in the order of the policy. Each constraint leaves to the next one only the clusters of the
// groups that it has chosen, so no maxGroups is ever exceeded. Then clusters for the minGroups of all constraints are
// chosen one by one, the cluster that serves the most constraints first. If this does not satisfy all constraints, no
// cluster is chosen, although another choice of groups or clusters might satisfy them.
//
// # In a profile
//
// The plugin must precede TopologySpread. If a PickN policy has constraints of both plugins, GroupSpread leaves all
// clusters of the groups that it has chosen, up to maxGroups groups, and TopologySpread chooses among them. Therefore
// maxGroups holds. MinGroups only guarantees that TopologySpread can choose from that many groups, because
// TopologySpread does not consider groups.
package groupspread
