// Package tainttoleration is a plugin that rejects clusters with taints that the policy does not tolerate. Taints and
// tolerations have the same meaning as for nodes and pods:
//
//   - NoSchedule rejects a cluster, unless it was chosen before.
//   - NoExecute also rejects a cluster that was chosen before. There is one exception: the taints by which the hub
//     reports bad or unknown health (membership.muster.dev/unreachable and membership.muster.dev/not-ready) only reject
//     new placements, unless the request allows a failover ([scheduler.Request].Failover).
//   - PreferNoSchedule lowers the score of a cluster: to a half of MaxScore with one taint that is not tolerated, to a
//     third with two, and so on.
//
// A toleration with seconds applies to clusters that were chosen before. It starts when the taint was added (timeAdded)
// and lasts for the number of seconds; the result reports the end ([scheduler.Result].Until). It does not apply to new
// clusters, because they would have to be left again soon. If several tolerations match, the longest one applies. A
// taint without timeAdded is tolerated without limit, so that a missing timestamp never removes a cluster. Package
// placement adds the timestamp: the time at which it observed the taint.
//
// With PickFixed, a user has chosen the clusters, and taints are ignored.
package tainttoleration
