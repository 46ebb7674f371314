// Package workset distributes: it brings what WorkSets say to the clusters that Placements have chosen.
//
// A WorkSet says what ([v1alpha1.WorkSet]): objects of the hub that are selected, manifests, or both. The controller that [SetupWithManager]
// adds makes Works of them in the namespaces of the members, whose agents (package work/agent) apply them and report:
//
//	kubectl get worksets
//	NAME   CLUSTERS   UPDATED   AVAILABLE   ROLLOUT       MESSAGE                                          AGE
//	web    40         12        10          Progressing   revision web-5f6d8c9b7a12 is on 12 of 40 …       5m
//
// # Revisions
//
// What is selected and written, the overrides, the division of replicas and the options of Works make a revision, which is named for its
// content. Each is kept (package placement/internal/revision) before any cluster is told of it, so that clusters whose turn has not come keep
// the one before, whatever becomes of the objects on the hub. spec.revision goes back to one of them, or holds one.
//
// While a selected kind cannot be read, or an object that was named is missing, there is no new revision: what the clusters have stays. While
// spec.revision holds one, what is selected is not read.
//
// No cluster is updated to a revision that cannot be read any more, because a user deleted it or a later release
// wrote it. Clusters that have such a revision keep it.
//
// # Clusters
//
// The clusters are those of all PlacementDecisions of the Placements. Who is chosen is told in the order, and at the
// pace, that the rollout allows (package placement/rollout). From who is chosen no longer all is taken back at once:
// a Placement with a policy of failover keeps clusters among its decisions for as long as they are needed. Nothing is
// taken away on a guess: while a Placement is missing, not decided by its present spec, its decisions are not all
// there, or the namespace of a chosen cluster is not known, every cluster keeps what it has. Clusters get new
// revisions all the same, unless the rollout goes by decision groups, whose order is not known then.
//
// A cluster that has nothing does not wait for its turn, an approval or a person to get something: it gets the revision whose rollout succeeded
// last, if there is one. So a cluster that takes the place of another one runs what that did, also while a new revision is paused or halted.
// A cluster that failed with a new revision, and is not chosen any more, still counts; see package placement/rollout.
//
// A chosen cluster that is not in the fleet, or has no namespace yet, is no part of the rollout until it is. With a source of one's own that a
// namespace has become known is noticed within 15 seconds, or at once if the source sets the cluster again.
//
// The first Work that a cluster has says which revision the cluster was told, and when, in its annotations. That is written together with
// the content, and is all that a restarted controller needs to know. A cluster for which overrides leave no object has no Work to say so, and is told
// once more.
//
// # Works
//
// Works are named <namespace>.<name>-<number> after their WorkSet. Package placement/bundle says what is in which. A
// Work that is as it should be is not written. A Work that another client changed or deleted on the hub is restored.
// What an object moves to is written and applied before the Work that it was in gives it up. They are made with the
// finalizer of work/agent, so that what is applied is taken back even if the Work is deleted before the agent has
// come to put it there.
//
// Works belong to a WorkSet by its namespace and name, so a WorkSet that is created again adopts them. Works whose WorkSet is missing
// are kept, and reported by the Event WorksUnclaimed and the metric muster_workset_unclaimed_works. Before the controller deletes a
// Work it sets the annotation work.muster.dev/deletion-requested-by; a generated Work that is deleted without it leaves its objects on
// the member, and the Work that the controller creates again adopts them. Works of clusters that are not in the fleet are kept. Works
// of clusters that are chosen no longer are deleted after a live read of the WorkSet, its Placements and their decisions.
//
// A selector that matched objects and matches nothing changes nothing: the condition Degraded has the reason SelectionEmpty, until
// objects match again or spec.allowEmpty is set.
//
// If a WorkSet is deleted, its Works are, unless it is deleted with its definition; it goes when the deletion of all
// of them has begun. Each Work goes when its member has taken back what it has, as spec.work.delete says. An
// unreachable member delays only its own Work.
//
// What spec.work.delete says applies from when a user deletes the WorkSet, or a cluster is not chosen any more: a
// Work that was told something else, since the revision is held or the rollout waits, is told so before it is
// deleted. What is said of single objects, by the delete of spec.work.manifestOptions, is part of the revision, and
// counts once the cluster has that.
//
// The Works of a member that leaves the fleet are left alone: its leave takes them back, or has all objects stay (package work/leave). Another
// source of clusters that says of one that it leaves has to see to that, too.
//
// # When a write fails
//
// A write that fails is tried again, after 100 milliseconds at first and 30 seconds at most. Until then the cluster
// is on its way, its message says why, and the deadline of the rollout bounds that: an API server that is slow or a
// namespace that is not there is not the fault of a revision. The cluster has failed if it does not end by itself:
// the Work is invalid or forbidden, or another object has its name.
//
// # Replicas
//
// With spec.replicas the replicas of workloads are divided among the clusters (packages placement/internal/division and scheduler/replicas). They are not part
// of the revision: when clusters come or go, the others get theirs at once. While the Estimator fails, or takes more than five seconds, clusters keep
// the replicas that they have.
//
// All replicas are to run at all times, and none twice for long:
//
//   - A cluster counts from the moment at which it is told its first revision. Until then nothing is taken for it from those that have it.
//   - While no rollout has succeeded yet, the shares of clusters that wait for their turn stay free as far as no other
//     cluster has them: the first cluster of a new WorkSet gets its own part, and not all the replicas.
//   - A cluster that leaves the fleet, is not in it, or whose namespace is not known, counts with what its Works say until
//     their deletion has begun. The others get that then.
//   - So does one that overrides fail for: it keeps what it has, and the others have the rest between them.
//   - A cluster that is chosen no longer counts no more: the others get its part while it takes back what it has.
//
// # What it costs
//
// Each Work that has to change is written once. A revision that leaves the content of a cluster's Works as it was costs one small
// patch for that cluster, which notes the revision. The status is written at once when it says something that people or the rollout wait
// for, and once a second otherwise, or once in two milliseconds for each cluster that it lists, if that is longer. A restart with everything in
// place writes nothing. Works are kept in memory without their manifests, in 4 to 5 KiB each.
// Clusters that have nothing yet come before those with another revision, and these before what is only repaired.
//
// A new WorkSet and a new Placement reach 1,000 clusters in 1.15 to 1.3 times what as many writers need to create as many Works alone, on two
// cores that all of it shares. To measure:
//
//	go test -run '^$' -bench . -timeout 30m ./placement/workset -args -clusters 1000 -worksets 200
//
// # Parts to replace
//
// A placement.ClusterSource tells of clusters that are not MemberClusters, [Options].Namespace where their Works go, [Options].Estimator
// for how many replicas they have room, [Options].Allow what may be selected.
//
// # Permissions
//
// The folder rbac has the ClusterRole muster-workset. To read what WorkSets select is not part of it: grant list and
// watch on those kinds, in all namespaces or in some. A user who may create WorkSets in a namespace can bring
// anything to the members that their agents may apply, and can read whatever [Options].Allow lets WorkSets select;
// spec.work.executor and the agents' policies bound the former.
package workset
