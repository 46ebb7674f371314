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
// The chosen clusters are in slices of at most 100, named <placement>-decision-<index>, labeled with the placement and the index, and owned
// by the Placement. A cluster stays in its slice, and in its place there, as long as it is chosen (package decision). Clusters are added
// before others are taken away. A change of a slice by anybody else is undone, and one that is deleted comes back as it was.
//
// Decisions are sticky. What a placement is on counts as a reason to stay, and nothing but the following has it decided anew:
//
//   - its spec changes, or the value of its annotation placement.muster.dev/reschedule does; the latter decides once as if nothing had been chosen;
//   - a cluster that it is on changes, but for what it has available, its scores and how many placements it has: these change all the time,
//     and partly because of the placement itself;
//   - it lacks clusters, or wants all there are, and another cluster changes in a way that one of the plugins that said no waits for;
//   - the time comes that a toleration ends;
//   - it lacks clusters, or wants all there are, and has not been looked at for five minutes, in case that a plugin waits for the wrong thing.
//
// A policy that cannot be (InvalidPolicy) and a decision that fails (DecideFailed) leave everything where it is, and say why.
//
// # Failover
//
// A cluster that fails its heartbeat gets the taint membership.muster.dev/unreachable with effect NoExecute. A placement leaves it at once, or
// when its toleration ends, if that has seconds. A cluster that is merely not known to be healthy is not left, only not chosen. The guard
// of membership against outages of the hub itself withholds the taints, and so the failover, if most clusters seem lost at a time.
//
// With [v1alpha1.FailoverPolicy] healthy clusters are left only when others are ready in their place ([Options].Ready says when), only
// so many in each period, and returned to when they recover, if wanted. Package failover has the rules. What was evicted lately is
// forgotten in a restart.
//
// # Parts to replace
//
// A [Decider] decides; *scheduler.Scheduler is one, with plugins of a product's own if need be. One that panics, fails or hangs harms
// none but its own placement. A [ClusterSource] tells of clusters, where they are not MemberClusters. [Explain] answers
// why a placement is where it is, or where one that does not exist yet would be, and writes nothing.
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
// Memory is that of the objects in the cache, and of one decision a placement with the snapshot that it was made on, which
// is shared by those that were made at the same time.
//
// # Permissions
//
// The folder rbac has the ClusterRole muster-placement: to read Placements and MemberClusters, to patch the status of the former, to write
// PlacementDecisions, and to create events. One replica decides, by leader election.
package placement
