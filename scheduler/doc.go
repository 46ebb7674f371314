// Package scheduler chooses member clusters: a framework of plugins that is pure Go. It has no client, no clock and no goroutine
// that outlives a decision, and knows clusters as nothing but [Cluster] values, so a product can use it with objects of its own.
//
// # A decision
//
// A [Cache] collects what changes in the fleet and hands out [Snapshot]s, which never change. A [Policy] says where something is to
// be placed; it is made once and used as often as one likes. [Scheduler.Schedule] puts the two together:
//
//	var cache scheduler.Cache                              // updated by a watch of clusters
//	cache.Update(&scheduler.Cluster{Name: "east", Labels: labels, Joined: true, Healthy: true})
//	policy, err := scheduler.NewPolicy(&placement.Spec.Policy)
//	result, err := s.Schedule(ctx, cache.Snapshot(), &scheduler.Request{Name: "shop", Policy: policy})
//
// The same snapshot and request always give the same [Result]. A decision collects no reasons: [Result.Diagnose]
// makes the decision once more, and every plugin reports its reasons.
//
// # Plugins
//
// A plugin is a small type with some of the interfaces named for the extension points of a cycle, which mean what they mean in
// kube-scheduler; a nil [Status] is success:
//
//	PreFilter → Filter → PostFilter → PreScore → Score → NormalizeScore → Select → Reserve
//
// Its [Factory] goes into a [Registry], and its name with a weight and arguments into a [Profile]. Package plugins has those that
// come with muster and the profile that is made of them; package schedulertest tests those of others.
//
// Scores are from 0 to [MaxScore], and the sum of them by their weights counts. Of two clusters that are as good as each other the
// one that the request is bound to comes first, then the one whose name does.
//
// # What has to wait
//
// A request that gets fewer clusters than it wants waits in package queue until an event happens that one of the plugins which
// refused clusters to it says may help ([HintPlugin], [Scheduler.MayHelp]):
//
//	q := queue.New(queue.Options[string, scheduler.Event]{
//		Hint: func(plugin string, event scheduler.Event) func(key string) bool {
//			return func(key string) bool { return s.MayHelp(requests[key], []string{plugin}, event) }
//		},
//	})
//	...
//	if result.Missing() > 0 {
//		q.Done(key, queue.Unschedulable(result.RejectedBy...))
//	}
//
// A placement that has what it wants is decided anew as the fleet changes, and should give its last [Result] along
// ([Request].Previous): most changes have no part in it, and to see that takes a few microseconds.
//
// # Speed
//
// What is so of a cluster alone, such as a label, a parsed property or whether an expression holds, does not change from one
// decision to the next, so it is worked out once for each change of a cluster and kept in columns ([Column], [Snapshot.Where],
// [Snapshot.GroupBy]). A plugin with a batch form combines whole columns, 64 clusters at a time. One without is asked about each
// cluster that is left by then, and costs no more than that.
//
// Decisions by the default profile among 10,000 clusters, on one core at 2.5 GHz that had other work as well; the floor is a plain
// loop over the clusters that looks at the same conditions with selectors compiled before, and it neither ranks nor spreads:
//
//	                                                       time     × floor   allocations
//	ten of the half with a label, some preferred           28 µs    0.03      21
//	the ten of them with the most CPU available            42 µs    0.05      29
//	thirty of them, one in each of 30 zones                48 µs    0.10      55
//	all of them                                            52 µs    0.10      17
//	one cluster changes, and the next decision             140 µs
//	1,000 decisions after a change of another cluster      6 ms
//	1,000 decisions after a change of one that all chose   9 ms
//	1,000 decisions after the loss of one that all chose   11 ms
//
// The last three know the decisions before ([Request].Previous), each of which remembers some more clusters than it chose. Where none of
// these is left, where more than sixteen clusters have changed at once, or where scores or the choice depend on all that can, as they do where
// numbers are sorted or clusters are spread, a decision takes as long as the first.
//
// The number of allocations does not depend on the number of clusters. A plugin without a batch form adds its own calls, one for each
// cluster that is left by then, and a few nanoseconds to each of them: 1.15 times what the calls take if they do no more than look up a
// label.
//
//	go test -run '^$' -bench . ./scheduler
//
// # Faults
//
// A plugin that panics, does not come back, or gives what is no score ends its own cycle, with a [*PluginError] that says which,
// where and on which cluster. What a plugin cannot make of one cluster, such as a property that it cannot read, is a reason
// against that cluster and never the end of a cycle.
package scheduler
