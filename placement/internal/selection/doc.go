// Package selection watches the objects of the hub that WorkSets select. Objects can be of any kind. Package bundle
// removes their fields that apply to the hub only.
//
// [Watcher.Select] sets the selectors of an owner. A [Watcher] calls [Options].Changed when the selection of an owner
// may have changed. It does not report changes of fields that are never distributed, such as the status of a
// Deployment, managedFields or the resourceVersion.
//
// # Selected objects
//
//   - Package bundle defines which objects are never distributed. Selectors of a whole kind and label selectors omit
//     them silently. If such an object is selected by name, it is a Problem, [ReasonRefused]. An object that could be
//     distributed but is nested too deeply is a Problem with every selector.
//   - An object with a deletionTimestamp stays selected until it is removed. Its finalizers can delay the removal for a
//     long time, and all clients observe the removal. The deletionTimestamp is not distributed.
//   - If an object is deleted or loses its labels, selectors by label or of a whole kind do not select it any more. It
//     is removed from the clusters.
//   - If an object that is selected by name is deleted, this is a Problem, [ReasonNotFound]. The user may be about to
//     create it again, as kubectl replace --force does, or may have deleted the wrong object. To remove the object from
//     the clusters, remove the selector.
//   - An object that several selectors match is selected once, in the version of the first of them.
//
// While there are Problems, a caller must not remove an object from clusters because it is missing in the result. The
// result still contains the objects that were observed before a Problem, as long as the Watcher watches them. A restart
// loses them.
//
// # Objects that a WorkSet may select
//
// The hub's controller reads objects on behalf of users who create WorkSets. These users could thereby read objects
// without permission. [OwnNamespace] prevents this, unless [Options].Allow replaces it: a WorkSet may select objects in
// its own namespace, and that Namespace itself. Within the namespace, the rule is the same as for Pods: a user who can
// create a WorkSet can read the Secrets of the namespace, so do not grant the first to users who must not have the
// second. Extension API servers may ignore selectors and return other objects. Those are dropped.
//
// # Watches
//
// There is one watch for each kind, namespace, name and label selector, for all owners with the same selector. The API
// server filters the objects. The watch ends with its last owner. Only the distributed text of an object is cached.
// Each watch is a stream to the API server, four goroutines and about 13 KiB, so a label selector for a hundred objects
// costs less than a hundred names.
//
// A watch that fails is retried, after one second at first and one minute at most. A missing permission or a missing
// kind is a Problem immediately. Other failures are Problems if they last longer than a minute, or if nothing was
// listed before. Problems end by themselves. The Watcher looks up missing kinds every 30 seconds, with two requests for
// all of them together. While a selector of every kind exists, it lists the kinds of the hub every minute. Nothing else
// is polled.
//
// # Permissions
//
// The hub's controller needs list and watch on the selected objects. For a selector with a name, a rule with
// resourceNames suffices. A Problem contains the missing permission, and the user to grant it to.
//
// # Costs
//
// The cache needs 1.7 KB for each of 1,000 ConfigMaps of 1 KB, of which 1.15 KB are the distributed text, for any
// number of owners. On two cores, the first Select takes 180 ms, while one list of the ConfigMaps takes 90 ms. The
// Select of each other owner takes 250 µs, and a change reaches 50 owners within 5 ms. To measure:
//
//	go test -run '^$' -bench . -benchtime 5x ./placement/internal/selection
package selection
