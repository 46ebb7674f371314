package replicas

import "math"

// Strategy is how replicas are divided; see the package's documentation for the rules.
type Strategy string

// The strategies. There is no default: to take one for another multiplies a workload, or takes it away.
const (
	// Duplicated gives each cluster all replicas.
	Duplicated Strategy = "Duplicated"
	// StaticWeight divides in proportion to the weights that the clusters were given.
	StaticWeight Strategy = "StaticWeight"
	// DynamicWeight divides in proportion to the capacities of the clusters.
	DynamicWeight Strategy = "DynamicWeight"
	// Aggregated uses as few clusters as possible.
	Aggregated Strategy = "Aggregated"
)

// Unbounded is a capacity that is no bound: a workload cannot ask for more.
const Unbounded int32 = math.MaxInt32

// Request is a division to decide.
type Request struct {
	// Replicas of the workload.
	Replicas int32
	Strategy Strategy

	// Fresh divides anew what DynamicWeight and Aggregated would leave where it is. The other strategies
	// do so anyway.
	Fresh bool

	// Key tells the workload from others; its UID is a good one. Where clusters have equal claims to a replica, and
	// none of them has it, a hash of Key and the cluster's name decides. So a thousand workloads of one
	// replica do not all go to the same cluster. Empty: the first by name gets it.
	Key string

	// Clusters are those that the replicas may go to, in any order. A cluster that is not among them any more has
	// lost what it had: that is placed anew.
	Clusters []Target
}

// Target is a cluster that replicas may go to.
type Target struct {
	// Name is unique in the Request.
	Name string

	// Weight is the cluster's part in StaticWeight, relative to the others'. One of weight 0 gets nothing.
	Weight int64

	// Capacity is how many replicas of this workload the cluster can have in total. Those that it has
	// already count: see [CapacityOf]. Zero is nothing at all, and [Unbounded] is no limit.
	Capacity int32

	// Current is how many replicas the cluster was given before.
	Current int32
}

// CapacityOf returns the [Target.Capacity] of a cluster that has so many replicas and room for so many more, which is
// what an [Estimator] tells.
func CapacityOf(current, more int32) int32 {
	if more > Unbounded-current {
		return Unbounded
	}
	return current + more
}

// Result is a division.
type Result struct {
	// Shares are the clusters of the Request, all of them, in the order of their names.
	Shares []Share

	// Unplaced is how many replicas fit nowhere. Together with the Shares they are the Replicas of the
	// Request; where each cluster should have all, they are what is missing over all clusters.
	Unplaced int64
}

// Share is what one cluster gets.
type Share struct {
	Name     string
	Replicas int32
}
