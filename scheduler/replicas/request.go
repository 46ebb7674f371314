package replicas

import "math"

// Strategy defines how replicas are divided; see the package documentation.
type Strategy string

// There is no default strategy, because a wrong strategy multiplies a workload or removes it.
const (
	// Duplicated gives each cluster all replicas.
	Duplicated Strategy = "Duplicated"
	// StaticWeight divides in proportion to the weights of the clusters.
	StaticWeight Strategy = "StaticWeight"
	// DynamicWeight divides in proportion to the capacities of the clusters.
	DynamicWeight Strategy = "DynamicWeight"
	// Aggregated uses as few clusters as possible.
	Aggregated Strategy = "Aggregated"
)

// Unbounded is the capacity of a cluster without a limit. A workload cannot request more replicas.
const Unbounded int32 = math.MaxInt32

// Request is the input of [Divide].
type Request struct {
	// Replicas is the number of replicas of the workload.
	Replicas int32
	Strategy Strategy

	// Fresh divides all replicas again. Without it, DynamicWeight and Aggregated keep the current division where possible.
	// The other strategies always divide again.
	Fresh bool

	// Key identifies the workload, for example by its UID. It breaks a tie between clusters of which none has the replica:
	// a hash of Key and the name of the cluster decides, so that the replicas of many small workloads do not all go to the
	// same cluster. Empty: the first cluster by name gets the replica.
	Key string

	// Clusters are the clusters that may get replicas, in any order. If a cluster is not listed any more, its replicas are
	// divided among the others.
	Clusters []Target
}

// Target is a cluster that may get replicas.
type Target struct {
	// Name is the name of the cluster, unique in the Request.
	Name string

	// Weight is the relative weight of the cluster for StaticWeight. A cluster with weight 0 gets no replicas.
	Weight int64

	// Capacity is the maximum number of replicas of this workload on the cluster, including existing ones: see
	// [CapacityOf]. Zero: none. [Unbounded]: no limit.
	Capacity int32

	// Current is the number of replicas that the last division gave to the cluster.
	Current int32
}

// CapacityOf returns the [Target.Capacity] of a cluster, given its current replicas and the number of further replicas
// from an [Estimator].
func CapacityOf(current, more int32) int32 {
	if more > Unbounded-current {
		return Unbounded
	}
	return current + more
}

// Result is the output of [Divide].
type Result struct {
	// Shares are all clusters of the Request, ordered by name.
	Shares []Share

	// Unplaced is the number of replicas without a cluster. Shares and Unplaced add up to the Replicas of the Request.
	// With Duplicated, Unplaced is the sum of the missing replicas of all clusters.
	Unplaced int64
}

// Share is the number of replicas of one cluster.
type Share struct {
	Name     string
	Replicas int32
}
