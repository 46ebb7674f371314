// Package topologyspread is the plugin that spreads clusters over the domains of a topology: with PickN it chooses them so that
// the numbers from each domain, such as a zone, stay near to each other. With PickAll there is nothing to choose.
//
// The domains of a constraint are the values of its label among the clusters that can be chosen. A zone none of whose clusters
// can be chosen, because they are unreachable or do not match, is no domain, so it stands in nobody's way.
//
// The skew is the most clusters that are chosen of a domain less the fewest. As long as there are fewer domains than minDomains, the
// fewest is 0. A cluster without the label is in no domain.
//
// # What is chosen
//
// In this order:
//
//   - With DoNotSchedule the skew is never above maxSkew, and a cluster without the label is not chosen.
//   - Within that, as many clusters as possible, up to numberOfClusters.
//   - With ScheduleAnyway as few clusters without the label as possible, and then the least excess of the skew over maxSkew. Of
//     several such constraints, what the first one wants comes first as to the excess.
//   - The greatest total of scores, to the millionth; of equal totals the one with the most clusters that are bound; then the one
//     that is better cluster by cluster, the best first (those without a label last).
//
// The choice does not depend on anything else, such as the order in which clusters came.
//
// # What is guaranteed
//
// One constraint, and several whose domains nest (each zone lies in one region; and of the clusters of a zone all have the label of
// a region or none has): exactly that. With several it is found by trying how many clusters the domain with the fewest has, for
// each constraint. For one constraint that is numberOfClusters / domains + 1 possibilities at most, and mostly maxSkew + 1. The search
// is cut short after 16,384 combinations or 4,194,304 clusters in them, which takes a tenth of a second. A choice that was
// cut short breaks no DoNotSchedule, and may be of fewer clusters, of more excess or of a smaller total than there could be.
//
// Several constraints whose domains cross (regions and providers): no DoNotSchedule is ever broken. As to the rest the choice cannot be
// bettered by one cluster more, nor, as far as 131,072 tries show, by two in place of one or one in place of another. There may be a
// choice of more clusters, of less excess or of a greater total all the same, and which of equal choices it is, is only up to the clusters.
//
// # In a profile
//
// The plugin leaves in the running what is to be chosen and no more, so it comes last of those that select. In particular it
// comes after GroupSpread, which leaves it the groups to choose from.
package topologyspread
