// Package division divides the replicas of workloads among the clusters that get them. It is pure: no client, no clock.
//
// An object says how many replicas there are to be in all. [New] reads a [v1alpha1.ReplicaDivision], and
// [Division.Divide] says which cluster gets how many of them, and gives each its objects with spec.replicas as it is
// there. How replicas are divided is for package [github.com/muster-sdk/muster/scheduler/replicas] to say; here is what
// that takes from objects and clusters.
//
// # Workloads
//
// Deployments, StatefulSets and ReplicaSets of apps and ReplicationControllers are divided, or instead of these the
// objects that the spec selects: other kinds too, if spec.replicas is a whole number there. Where the four say nothing
// they have 1 replica, as the API server has it; another kind that says nothing, or something else than a whole number,
// is not divided.
//
// What is divided is what the object says that all clusters share. What an override makes of that number counts
// nowhere: the cluster's part is written last. A cluster that an override keeps the object from gets none of it, and an
// object that no cluster gets is not divided. With strategy Duplicated nothing is divided and nothing written: each
// cluster gets what it gets without a division, overrides included.
//
// Each workload is divided by itself: room that two of them could use is offered to both.
//
// # Weights
//
// A cluster has the weight of the first entry whose selector matches it, and none where none does. Without entries all
// weigh the same. A cluster without a weight gets the object with 0 replicas. That no cluster has a weight is an error,
// for it would take the workload away.
//
// # Steadiness
//
// What clusters were given before is [Cluster].Current: DynamicWeight and Aggregated leave it where it is as far as
// they can, and with all strategies it counts as room that is there. So without Current each Divide begins anew.
// [Division.Current] reads it from objects.
//
// Where clusters have equal claims to a replica, a hash of their names and of the workload's group, kind, namespace and
// name decides, as in apps/Deployment/shop/web. It has nothing of versions, revisions or the WorkSet, so that a new one
// moves nothing.
//
// # Clusters that cannot be given their share now
//
// [Cluster].Part says it: a cluster that Keeps what it has, since it cannot be written to, leaves the rest to the
// others, and the share of a cluster that Waits stays free as far as no other cluster has it. So that clusters come,
// or cannot be reached, neither stops what runs nor runs it twice.
//
// # Errors
//
// A workload that cannot be divided keeps no other from it. Its clusters keep what they were given before, and where
// nothing was given there are 0 replicas of it: half a division could take the workload away, and none at all would
// multiply it. The error says what is to be mended: a number that no object can have, an object that is there twice,
// one that an override has left without a map for its spec, weights that no cluster has.
//
// # Requirements
//
// To know for how many replicas there is room, ask a [replicas.Estimator] with the Requirements of the
// [Division.Workloads]. They have the requests of a pod as a scheduler will see them, and a pod. What a member's own
// admission adds is not known here: the defaults of LimitRanges, and the overhead of a RuntimeClass unless the template
// says it.
package division
