// Package workset distributes the objects of WorkSets to the clusters that Placements have chosen.
//
// A WorkSet ([v1alpha1.WorkSet]) contains manifests, selects objects of the hub, or both. The controller that
// [SetupWithManager] adds creates Works from them in the namespaces of the members. The agents of the members (package
// work/agent) apply the Works and report their status:
//
//	kubectl get worksets
//	NAME   CLUSTERS   UPDATED   AVAILABLE   ROLLOUT       MESSAGE                                          AGE
//	web    40         12        10          Progressing   revision web-5f6d8c9b7a12 is on 12 of 40 …       5m
//
// The cluster-scoped ClusterWorkSet of a platform team is treated in the same way. It refers to ClusterPlacements, and
// its revisions are in the namespace [v1alpha1.ClusterScopeNamespace].
//
// # Revisions
//
// The selected objects, the manifests, the overrides, the division of replicas and the options of Works form a
// revision, whose name is a hash of its content. The controller stores each revision (package
// placement/internal/revision) before it delivers it to any cluster. So clusters that wait for the rollout keep their
// revision, whatever happens to the objects on the hub. spec.revision selects an earlier revision or pins the current
// one.
//
// While a selected kind cannot be read, or a named object does not exist, there is no new revision, and the clusters
// keep theirs. While spec.revision is set, the controller does not read the selected objects.
//
// No cluster is updated to a revision that cannot be read any more, because a user deleted it or a later release of
// muster wrote it. Clusters that have such a revision keep it.
//
// # Clusters
//
// The clusters are those in all PlacementDecisions of the Placements. They are updated in the order and at the rate of
// the rollout (package placement/rollout). The Works of a cluster that is not chosen any more are deleted immediately:
// a Placement with a failover policy keeps a cluster in its decisions as long as the cluster is needed.
//
// Uncertainty deletes nothing. Every cluster keeps its Works while a Placement does not exist, has no decision for its
// current spec or lacks a slice of its decisions, or while the namespace of a chosen cluster is unknown. Meanwhile
// clusters still get new revisions, unless the rollout follows decision groups, whose order is unknown then.
//
// A cluster without Works waits neither for the rollout nor for an approval: it gets the revision whose rollout
// succeeded last, if there is one. So a cluster that replaces another one runs the same revision, also while a new
// revision is paused or halted. A cluster that failed with a new revision and is not chosen any more still counts as
// failed; see package placement/rollout.
//
// A chosen cluster that is not in the fleet, or has no namespace yet, is not part of the rollout. A custom source of
// clusters need not report that the namespace of a cluster became known: the controller observes that within 15
// seconds, or immediately if the source sets the cluster again.
//
// Annotations of the first Work of a cluster contain the revision that was assigned to the cluster, and the time. They
// are written together with the content, and a restarted controller needs nothing else. If overrides leave no object
// for a cluster, it has no Work, and after a restart the revision is assigned once more.
//
// # Works
//
// Works are named <namespace>.<name>-<number> after their WorkSet. Package placement/bundle assigns objects to Works.
// The controller writes only Works that differ from the desired ones, and restores Works that another client changed or
// deleted on the hub. When an object moves to another Work, that Work is written and applied before the former one
// loses the object. Works are created with the finalizer of work/agent, so that the agent deletes the objects also if
// the Work is deleted before the agent adds its finalizer.
//
// Works belong to a WorkSet by its namespace and name, so a WorkSet that is created again adopts them. Works whose
// WorkSet is missing are kept, and are reported by the Event WorksUnclaimed and the metric
// muster_workset_unclaimed_works. Before the controller deletes a Work, it sets the annotation
// work.muster.dev/deletion-requested-by. A generated Work that is deleted without the annotation leaves its objects on
// the member, and the Work that the controller creates again adopts them. Works of clusters that are not in the fleet
// are kept. Before the controller deletes Works of clusters that are not chosen any more, it reads the WorkSet, its
// Placements and their decisions from the API server.
//
// If a selector that matched objects matches nothing, nothing changes: the condition Degraded has the reason
// SelectionEmpty until objects match again or spec.allowEmpty is set.
//
// If a user deletes a WorkSet, the controller deletes its Works, and removes the WorkSet's finalizer when the deletion
// of all of them has begun. If the WorkSet is deleted together with its definition, the Works are kept. Each Work
// exists until its member has deleted the objects according to spec.work.delete. An unreachable member delays only its
// own Work.
//
// spec.work.delete takes effect when a user deletes the WorkSet, or a cluster is not chosen any more. If a Work still
// has an earlier value, because the revision is pinned or the rollout waits, the controller updates the Work before it
// deletes it. The field delete in spec.work.manifestOptions is part of the revision, and takes effect when the cluster
// has that revision.
//
// The controller does not change the Works of a member that leaves the fleet: its leave deletes or keeps their objects
// (package work/leave). A custom source of clusters that reports a leaving cluster must do the same.
//
// # Failed writes
//
// The controller repeats a failed write, after 100 milliseconds at first and 30 seconds at most. Meanwhile the cluster
// is being updated, its message contains the error, and the deadline of the rollout limits the time: a slow API server
// or a missing namespace is not a fault of the revision. The cluster has failed if only a user can resolve the error:
// the Work is invalid or forbidden, or another object has its name.
//
// # Replicas
//
// With spec.replicas, the controller divides the replicas of workloads among the clusters (packages
// placement/internal/division and scheduler/replicas). The numbers are not part of the revision: when a cluster is
// added or removed, the others get theirs immediately. While the Estimator fails, or takes more than five seconds,
// clusters keep their replicas.
//
// All replicas should run at all times, and none twice for long:
//
//   - A cluster has a share from the time at which its first revision is assigned. Until then, no replica of another
//     cluster is removed for it.
//   - While no rollout has succeeded yet, the shares of waiting clusters stay free unless another cluster has them: the
//     first cluster of a new WorkSet gets its own share, and not all replicas.
//   - A cluster that leaves the fleet, is not in it, or has an unknown namespace counts with the replicas in its Works
//     until their deletion has begun. Then the others get them.
//   - The same applies to a cluster whose overrides fail: it keeps its replicas, and the others share the rest.
//   - A cluster that is not chosen any more does not count: the others get its share while its objects are deleted.
//
// # Costs
//
// Each Work that must change is written once. A revision that does not change the Works of a cluster costs one small
// patch for that cluster, which records the revision. The status is written immediately if it contains a change that
// users or the rollout wait for. Otherwise it is written once a second, or once in two milliseconds for each cluster
// that it lists, if that is longer. A restart without changes writes nothing. The cache contains Works without their
// manifests, in 4 to 5 KiB each. Clusters without Works come first in the queue, then clusters with another revision,
// then repairs.
//
// A new WorkSet and a new Placement reach 1,000 clusters in 1.15 to 1.3 times the time that as many writers need to
// create as many Works alone, on two cores that all processes share. To measure:
//
//	go test -run '^$' -bench . -timeout 30m ./placement/workset -args -clusters 1000 -worksets 200
//
// # Extension points
//
// A placement.ClusterSource provides clusters that are not MemberClusters. [Options].Namespace returns the namespaces
// of their Works. [Options].Estimator estimates for how many replicas they have capacity. [Options].Allow restricts or
// extends the objects that WorkSets may select.
//
// # Permissions
//
// The folder rbac contains the ClusterRole muster-workset. It does not include the permission to read the objects that
// WorkSets select: grant list and watch on those kinds, in all namespaces or in some. A user who may create WorkSets in
// a namespace can deliver all objects that the agents may apply to the chosen members, and can read all objects that
// [Options].Allow lets WorkSets select. spec.work.executor and the policies of the agents limit the former.
package workset
