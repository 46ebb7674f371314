// Package tainttoleration is the plugin that keeps what does not tolerate the taints of a cluster away from it. Taints
// and tolerations mean what they mean for nodes and pods:
//
//   - NoSchedule leaves a cluster out, unless it was chosen before.
//   - NoExecute leaves it out even then, with one exception: the taints by which the hub reports bad or unknown health
//     (membership.muster.dev/unreachable and membership.muster.dev/not-ready) only keep new placements away, unless the
//     request allows a failover ([scheduler.Request].Failover).
//   - PreferNoSchedule lowers its score: with one that is not tolerated to a half of MaxScore, with two to a third, and
//     so on.
//
// A toleration with seconds is for clusters that were chosen before, from when the taint was put on (its timeAdded)
// for so many seconds; the result then says when that ends ([scheduler.Result].Until). It does not admit new
// clusters, which would soon have to be left again. If several tolerations match, the one that lasts longest counts.
// A taint that does not say when it was put on is tolerated for as long as it is there: nothing is given up for want
// of a date. Package placement gives it one, which is when it saw the taint.
//
// With PickFixed a person has chosen the clusters, and their taints are not looked at.
package tainttoleration
