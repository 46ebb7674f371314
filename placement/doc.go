// Package placement chooses member clusters for Placements and stores the decisions as PlacementDecisions.
//
// A Placement states the required clusters ([v1alpha1.PlacementPolicy]). The controller that [SetupWithManager] adds
// responds with PlacementDecisions and with the condition Scheduled, whose message is the diagnosis of the scheduler:
//
//	kubectl get placement web
//	NAME   TYPE    DESIRED   SELECTED   READY   SCHEDULED   AGE
//	web    PickN   3         2          2       False       5m
//
//	2 of 40 clusters chosen, but 3 are desired; 30 do not match region in (eu), 8 have taint maintenance
//
// The cluster-scoped ClusterPlacement of a platform team is treated in the same way. Its PlacementDecisions are in the
// namespace [v1alpha1.ClusterScopeNamespace] and named <placement>-clusterdecision-<index>.
//
// # Decisions
//
// The chosen clusters are in slices of at most 100, named <placement>-decision-<index>, labeled with the placement and
// the index, and owned by the Placement. A cluster keeps its slice and its position there as long as it is chosen
// (package internal/decision). The controller adds clusters before it removes others. It reverts a change of a slice by
// another client, and creates a deleted slice again.
//
// A chosen cluster stays until it leaves the fleet, no longer matches the affinity, has a NoExecute taint of a user
// that the placement does not tolerate, is evicted, or is no longer required because numberOfClusters was reduced.
// Spread constraints, sorters and preferences apply to newly chosen clusters only, unless the policy says rebalance:
// Always. The controller decides again if:
//
//   - The spec changes.
//   - The value of the annotation placement.muster.dev/reschedule changes. The controller then decides once as if no
//     cluster had been chosen. Clusters of equal score keep the placement, and its own usage does not count against its
//     clusters.
//   - A chosen cluster changes, except for its available resources, its scores and its number of placements. These
//     change all the time, partly because of the placement itself.
//   - The placement lacks clusters or requires all clusters, and another cluster changes in a way that a plugin which
//     rejected it waits for.
//   - The time of a toleration ends.
//   - An eviction of the placement is created or deleted, or a cluster becomes ready that the placement waits for.
//   - The placement lacks clusters or requires all clusters, and five minutes have passed, in case a plugin waits for
//     the wrong change.
//
// The scheduler's view of the clusters contains the number of placements on each of them, so that later decisions can
// prefer clusters with fewer (plugin Balance). The counts are complete before the first decision, also after a restart.
// If concurrent decisions used the same counts and chose the same cluster, the later one is made again. A changed count
// moves no placement and causes no decision. A plugin that rejects clusters because of it waits up to five minutes. A
// [CountingSource] provides its own counts.
//
// An invalid policy (InvalidPolicy) and a failed decision (DecideFailed) change no decision; the message contains the
// cause.
//
// # Failover
//
// A cluster whose heartbeats stop gets the taint membership.muster.dev/unreachable with effect NoExecute, and a cluster
// whose agent reports that it is not ready gets membership.muster.dev/not-ready. No placement newly chooses such a
// cluster. A placement that has chosen it keeps it, with a note in the condition Scheduled, unless the placement has a
// [v1alpha1.FailoverPolicy]. While all or most clusters are affected at once, the outage guard of package
// membership/heartbeat withholds the taints, because the cause is probably an outage of the hub.
//
// With a FailoverPolicy, a placement leaves such a cluster immediately, or after the seconds of its toleration. It
// leaves clusters only when others are ready to replace them ([Options].Ready), at most one in a minute unless the
// policy sets another rate, and can return to them when they recover. Package internal/failover has the rules. The
// status of the placement contains the evictions of a period before the clusters are left, so that a controller that
// restarts after a crash does not exceed the rate.
//
// A cluster that has not joined, such as after a restore of the hub or because its acceptance was withdrawn, also stays
// chosen. A cluster that was asked to leave the fleet does not.
//
// # Placements that are created again
//
// A Placement that is deleted loses its PlacementDecisions, but WorkSets and Addons keep what they delivered for it. If
// the Placement is created again, such as by kubectl replace --force, from a backup, or after the removal of its
// definition, its first decision starts from the clusters that have these objects ([Options].Deliveries): it selects
// them again if the policy allows them, also while they are unhealthy or do not exist. The annotation
// [v1alpha1.RescheduleAnnotation] has no effect on this decision.
//
// # Properties
//
// While the affinity, the sorters or the decision groups of a Placement name a property or a resource that no cluster
// reports, or a sorter names a property that is not a number on any cluster, the condition PropertiesKnown is False.
// Its message names the field and the remedy. Meanwhile the controller decides again every five minutes.
//
// # Evictions
//
// A user creates a [v1alpha1.PlacementEviction] to remove a placement from a cluster. The placement does not return as
// long as the object exists:
//
//	kubectl get plev
//	NAME       PLACEMENT   CLUSTER   EXECUTED   REASON            AGE
//	web-east   web         east      True       Evicted           5m
//	web-west   web         west      False      BudgetExhausted   5m
//
// The eviction waits until the disruption budget of the placement allows it; the oldest eviction is first (package
// internal/eviction). If the failover policy replaces before it evicts, the eviction also waits until another cluster
// is ready, and the rate of the policy applies. Executed becomes True when the PlacementDecisions no longer contain the
// cluster. An eviction of a placement that is not on the cluster is executed immediately. An eviction whose Placement
// does not exist waits. With PickFixed the policy names the clusters, and the eviction reports that a user must change
// the policy.
//
// A change of the placement's spec takes effect before evictions do. The Decider does not see evicted clusters and
// cannot choose them. Placements with the same evicted clusters share one view of the fleet.
//
// # Extension points
//
// A [Decider] decides. *scheduler.Scheduler is one, with plugins of the product if required. A Decider that panics,
// fails or hangs affects only its own placement. A [ClusterSource] provides clusters that are not MemberClusters;
// [Objects] makes one of any kind of object. A [Readiness] reports whether the workloads of a placement are ready.
// If it is also a [ReadinessNotifier], the controller does not poll it. [Explain] reports why a placement has its
// clusters, or which clusters a placement that does not exist yet would have; it writes nothing.
//
// # Costs
//
// A decision takes tens of microseconds. Its message takes up to hundreds of times as long, so the controller computes
// it only when its numbers change. The controller writes only changes: one request for each slice, and one for the
// status. A restart without changes lists Placements, PlacementDecisions and clusters, and writes nothing: 200
// placements on 100 clusters each take about half a second on two cores. To measure:
//
//	go test -run '^$' -bench . ./placement
//
// Counting placements adds about 20 µs to a decision among 1,000 clusters that moves one of them. Most of that time is
// spent on the snapshot of the next decision, and on decisions that can no longer be updated incrementally.
//
// Memory is used for the cached objects, and for one decision per placement with its snapshot. Decisions that were made
// at the same time share a snapshot.
//
// # Metrics
//
// The registry of controller-runtime contains these metrics while the controller runs:
//
//	muster_placement_decisions_total{result}            Scheduled, Unschedulable, InvalidPolicy, DecideFailed or WriteFailed
//	muster_placement_decision_duration_seconds          duration of the Decider's call, without the writes that follow
//	muster_placement_queue{state}                       active, backoff, unschedulable or in_flight
//	muster_placement_cluster_changes_total{change}      clusters that were added to placements, and removed
//	muster_placement_evictions_total{by}                clusters left by hand (PlacementEviction) or failover
//	muster_placement_evictions_waiting{reason}          PlacementEvictions that are not executed, by the reason
//
// # Permissions
//
// The folder rbac contains the ClusterRole muster-placement: read Placements and MemberClusters, patch the status of
// Placements, write PlacementDecisions, read PlacementEvictions, patch their status and delete them after their time to
// live, and create Events. One replica decides, by leader election.
package placement
