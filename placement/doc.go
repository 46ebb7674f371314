// Package placement decides which clusters things are placed on, and keeps those decisions.
//
// A Placement says which clusters are wanted ([v1alpha1.PlacementPolicy]). The controller that [SetupWithManager] adds answers with
// PlacementDecisions, and with the condition Scheduled, whose message is the scheduler's own sentence:
//
//	kubectl get placement web
//	NAME   TYPE    DESIRED   SELECTED   READY   SCHEDULED   AGE
//	web    PickN   3         2          2       False       5m
//
//	2 of 40 clusters chosen where 3 are wanted; 30 do not match region in (eu), 8 have taint maintenance
//
// # Decisions
//
// The chosen clusters are in slices of at most 100, named <placement>-decision-<index>, labeled with the placement
// and the index, and owned by the Placement. A cluster stays in its slice, and in its place there, as long as it is
// chosen (package decision). Clusters are added before others are removed. A change of a slice by another client is
// undone, and a deleted slice is created again.
//
// A chosen cluster stays until it leaves the fleet, no longer matches the affinity, has a NoExecute taint of a user
// that the placement does not tolerate, is evicted, or is no longer wanted because numberOfClusters was reduced.
// Spread constraints, sorters and preferences apply to newly chosen clusters only, unless the policy says rebalance:
// Always. Only the following has a placement decided anew:
//
//   - its spec changes, or the value of its annotation placement.muster.dev/reschedule does; the latter decides once
//     as if nothing had been chosen, except that clusters of equal score keep the placement and its own usage does
//     not count against its clusters;
//   - a cluster that it is on changes, but for what it has available, its scores and how many placements it has: these change all the time,
//     and partly because of the placement itself;
//   - it lacks clusters, or wants all there are, and another cluster changes in a way that one of the plugins that said no waits for;
//   - the time comes that a toleration ends;
//   - an eviction of it comes or goes, or it waits for clusters to become ready, and one does;
//   - it lacks clusters, or wants all there are, and has not been looked at for five minutes, in case that a plugin waits for the wrong thing.
//
// How many placements are on each cluster is counted, and kept in the scheduler's view of the clusters, so that what
// is decided next can go where there are fewer (the plugin Balance). It is complete before the first decision, after
// a restart as well. Decisions that are made at a time on the same counts, and come to the same cluster, are made
// once more. No placement moves, and no decision is made again, because a count has changed; a plugin that refuses
// clusters for it has to wait for the five minutes. A source that counts itself is believed ([CountingSource]).
//
// A policy that cannot be (InvalidPolicy) and a decision that fails (DecideFailed) leave everything where it is, and say why.
//
// # Failover
//
// A cluster that fails its heartbeat gets the taint membership.muster.dev/unreachable with effect NoExecute, and one
// whose agent reports that it is not ready gets membership.muster.dev/not-ready. No placement is newly put there. A
// placement that is there stays, and its condition Scheduled says so, unless it has a [v1alpha1.FailoverPolicy]. The
// guard of membership against outages of the hub itself withholds the taints, and so the failover, while all or most
// clusters are affected at a time.
//
// With a FailoverPolicy a placement leaves such a cluster, at once or when its toleration ends, if that has seconds.
// Clusters are left only when others are ready in their place ([Options].Ready says when), one in a minute unless the
// policy says more, and returned to when they recover, if wanted. Package failover has the rules. The evictions of a
// period are in the status of the placement, and are there before the clusters are left, so that a controller that
// starts after a crash evicts no more than was allowed.
//
// A cluster that has not joined, such as after a restore of the hub, stays chosen too. A cluster that leaves the
// fleet, or whose acceptance is withdrawn, does not.
//
// # Properties
//
// While the affinity or the sorters of a policy name a property or a resource that no cluster reports, the condition
// PropertiesKnown is False, and its message names the field and the remedy. The placement is decided again every five
// minutes then.
//
// # Evictions
//
// A [v1alpha1.PlacementEviction] has a placement leave a cluster by hand, and keeps it off for as long as the object is there:
//
//	kubectl get plev
//	NAME       PLACEMENT   CLUSTER   EXECUTED   REASON            AGE
//	web-east   web         east      True       Evicted           5m
//	web-west   web         west      False      BudgetExhausted   5m
//
// It waits until the disruption budget of the placement allows it, the oldest first (package eviction); with a policy of failover that
// replaces before it evicts, until another cluster is ready; and its rate counts too. Executed is True once the
// PlacementDecisions say so. A placement that is not on the cluster has nothing to leave: that is executed at once. Before there is a
// placement of the name, it waits. With PickFixed a person has named the clusters, and the eviction says that they are to be changed there.
//
// What a person changes in the spec of a placement takes effect first, and evictions after that. The Decider is not told of clusters
// that a placement is kept off, so none can choose them; placements that are kept off the same clusters share one view of the fleet.
//
// # Parts to replace
//
// A [Decider] decides; *scheduler.Scheduler is one, with plugins of a product's own if need be. One that panics,
// fails or hangs harms none but its own placement. A [ClusterSource] tells of clusters, where they are not
// MemberClusters. A [Readiness] knows when what was placed does its work; if it is a [ReadinessNotifier] as well, it
// is not polled. [Explain] answers why a placement is where it is, or where one that does not exist yet would be, and
// writes nothing.
//
// # What it costs
//
// A decision takes tens of microseconds; the sentence about it up to hundreds of times as much, so it is made only when its numbers
// change. What changes is written, and nothing else: one request for each slice, and one for the status. A restart with everything in place
// lists Placements, PlacementDecisions and clusters, and writes nothing: 200 placements on 100 clusters each take about half a
// second on two cores. To measure:
//
//	go test -run '^$' -bench . ./placement
//
// To count placements costs a decision among 1,000 clusters that moves one of them about 20 µs, most of it for the snapshot that the next
// one is made on and because decisions are no longer brought up to date from the one before.
//
// Memory is that of the objects in the cache, and of one decision a placement with the snapshot that it was made on, which
// is shared by those that were made at the same time.
//
// # Metrics
//
// They are in the registry of controller-runtime while the controller runs:
//
//	muster_placement_decisions_total{result}            Scheduled, Unschedulable, InvalidPolicy, DecideFailed or WriteFailed
//	muster_placement_decision_duration_seconds          how long the Decider takes, without what is written then
//	muster_placement_queue{state}                       active, backoff, unschedulable or in_flight
//	muster_placement_cluster_changes_total{change}      clusters that were added to placements, and removed
//	muster_placement_evictions_total{by}                clusters left by hand, and by failover
//	muster_placement_evictions_waiting{reason}          PlacementEvictions that are not executed, by what they wait for
//
// # Permissions
//
// The folder rbac has the ClusterRole muster-placement: to read Placements and MemberClusters, to patch the status of the former, to write
// PlacementDecisions, to read PlacementEvictions, to patch their status and to delete those whose time to live is over, and to create events. One replica decides, by leader election.
package placement
