// Package scheduler chooses member clusters. It is a framework of plugins in pure Go, without a client, a clock or a
// goroutine that outlives a decision. It receives clusters as [Cluster] values, so a product can use it with its own
// objects.
//
// # Decisions
//
// A [Cache] collects the changes of the fleet and returns immutable [Snapshot]s. A [Policy] describes the desired
// clusters; it is compiled once and used for any number of decisions. [Scheduler.Schedule] decides:
//
//	var cache scheduler.Cache                              // updated by a watch of clusters
//	cache.Update(&scheduler.Cluster{Name: "east", Labels: labels, Joined: true, Healthy: true})
//	policy, err := scheduler.NewPolicy(&placement.Spec.Policy)
//	result, err := s.Schedule(ctx, cache.Snapshot(), &scheduler.Request{Name: "shop", Policy: policy})
//
// The same snapshot and request always give the same [Result]. A decision collects no reasons. [Result.Diagnose]
// repeats the decision, and every plugin reports its reasons.
//
// # Plugins
//
// A plugin is a type that implements some of the interfaces of the extension points. The points have the names and
// meanings of kube-scheduler. A nil [Status] is success:
//
//	PreFilter → Filter → PostFilter → PreScore → Score → NormalizeScore → Select → Reserve
//
// The [Factory] of a plugin is registered in a [Registry]. A [Profile] contains the name, the weight and the arguments
// of each plugin. Package scheduler/plugins has the plugins of muster and their default profile. Package
// scheduler/schedulertest tests the plugins of other projects.
//
// Scores are from 0 to [MaxScore], and the weighted sum of the scores ranks a cluster. If scores are equal, clusters on
// which the placement runs come first ([Request].Placed), and then the order of names decides.
//
// # Pending requests
//
// A request that receives fewer clusters than desired waits in package scheduler/queue. It is retried after an event
// that may change the result of a plugin that rejected clusters ([HintPlugin], [Scheduler.MayHelp]):
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
// A satisfied request is decided again when the fleet changes. It should contain its last [Result]
// ([Request].Previous): most changes do not affect it, and the scheduler then detects this in a few microseconds.
//
// # Performance
//
// Facts about a single cluster, such as a label, a parsed property or the result of an expression, are the same for all
// decisions. They are computed once per change of a cluster and kept in columns ([Column], [Snapshot.Where],
// [Snapshot.GroupBy]). A plugin with a batch form combines whole columns, 64 clusters at a time. A plugin without a
// batch form is called for each remaining cluster, and adds only the cost of these calls.
//
// The table shows decisions of the default profile among 10,000 clusters, on one core at 2.5 GHz under other load. The
// floor is the duration of a plain loop over the clusters that evaluates the same conditions with compiled selectors,
// without ranking or spreading:
//
//	                                                       time     × floor   allocations
//	10 of the 5,000 clusters with a label, some preferred  28 µs    0.03      21
//	the 10 of the 5,000 with the most available CPU        42 µs    0.05      29
//	30 of the 5,000, one in each of 30 zones               48 µs    0.10      55
//	all 5,000                                              52 µs    0.10      17
//	change of one cluster and the next decision            140 µs
//	1,000 decisions after a change of an unchosen cluster  6 ms
//	1,000 decisions after a change of a chosen cluster     9 ms
//	1,000 decisions after the loss of a chosen cluster     11 ms
//
// The decisions of the last three rows have a previous result ([Request].Previous), which contains some spare clusters
// in addition to the chosen ones. A decision takes as long as one without a previous result if no spare remains, if
// more than 16 clusters have changed at once, or if scores or the selection depend on all eligible clusters, as with
// sorted numbers and spread constraints.
//
// The number of allocations does not depend on the number of clusters. A plugin without a batch form adds one call for
// each remaining cluster and a few nanoseconds per call. If the call only looks up a label, the total is 1.15 times the
// time of the calls alone.
//
//	go test -run '^$' -bench . ./scheduler
//
// # Errors
//
// A plugin that panics, does not return, or returns an invalid score ends its own cycle with a [*PluginError], which
// names the plugin, the extension point and the cluster. A problem of one cluster, such as a property that cannot be
// parsed, is a reason against that cluster and does not end the cycle.
package scheduler
