// Package division divides the replicas of workloads among the clusters that get them. It is pure: it uses no client
// and no clock.
//
// An object states the total number of replicas. [New] compiles a [v1alpha1.ReplicaDivision]. [Division.Divide] returns
// the number of replicas for each cluster, and the objects of each cluster with this number in spec.replicas. Package
// [github.com/muster-sdk/muster/scheduler/replicas] implements the strategies; this package provides their input from
// objects and clusters.
//
// # Workloads
//
// By default, Deployments, StatefulSets and ReplicaSets of apps and ReplicationControllers are divided. If the spec
// selects objects, these are divided instead; they can have other kinds if spec.replicas is an integer. If one of the
// four default kinds does not set spec.replicas, it has 1 replica, as in the API server. An object of another kind that
// does not set it, or whose value is not an integer, is not divided.
//
// The total is the number in the object that all clusters share. If an override changes spec.replicas, its value is
// ignored: the number for the cluster is written after the overrides. A cluster for which an override removes the
// object gets no replicas, and an object that no cluster gets is not divided. With strategy Duplicated nothing is
// divided or written: each cluster gets its objects as they are, including overrides.
//
// Each workload is divided separately: room that two of them could use is offered to both.
//
// # Weights
//
// A cluster has the weight of the first entry whose selector matches it. If no entry matches, it has no weight. Without
// entries all clusters have equal weights. A cluster without a weight gets the object with 0 replicas. If no cluster
// has a weight, Divide returns an error, because all replicas would be removed.
//
// # Stability
//
// [Cluster].Current is the number of replicas that a cluster was assigned before. DynamicWeight and Aggregated keep
// these replicas in their clusters as far as possible, and all strategies count them as available room. Without Current
// each call of Divide starts anew. [Division.Current] reads Current from objects.
//
// If clusters have equal claims to a replica, a hash decides. It depends on their names and on the group, kind,
// namespace and name of the workload, as in apps/Deployment/shop/web. It does not depend on versions, revisions or the
// WorkSet, so a new one of these moves no replicas.
//
// # Clusters whose number cannot be changed now
//
// [Cluster].Part states this. A cluster with [Keeps] cannot be written to and keeps its replicas; the others divide the
// rest. The share of a cluster with [Waits] stays free as long as no other cluster has these replicas. So clusters that
// are added or cannot be reached neither stop running replicas nor duplicate them.
//
// # Errors
//
// A workload that cannot be divided does not affect the others. Its clusters keep the replicas that they were assigned
// before, or get 0 replicas: a partial division could remove the workload, and no division would multiply it. The error
// states the problem: a number that no object can have, a duplicate object, an override that leaves an object without a
// map as its spec, or weights that select no cluster.
//
// # Requirements
//
// To determine the room for replicas, call a [replicas.Estimator] with the Requirements of the [Division.Workloads].
// They contain a pod and its requests as the scheduler of a member sees them. Requests that the admission of the member
// adds are unknown: the defaults of LimitRanges, and the overhead of a RuntimeClass unless the template contains it.
package division
