// Package replicas divides the replicas of a workload among the clusters that were chosen for it.
//
//   - [Divide] decides. It is a pure function of the number of replicas, the [Strategy] and the state of each cluster.
//   - An [Estimator] returns for how many more replicas clusters have capacity. [FromAvailable] uses the free resources
//     of clusters, and [Min] combines several estimators.
//
// The package chooses no clusters, and does not depend on other packages of this module.
//
// # Capacity
//
// [Target.Capacity] is the total number of replicas of this workload that a cluster can run, including existing ones.
// It does not change when the replicas start, so no estimate can evict running replicas. An Estimator returns the
// number of further replicas, because only that can be measured; [CapacityOf] adds both. No strategy exceeds a
// capacity. Replicas that fit on no cluster are [Result.Unplaced]; the others are placed. To ignore capacities, use
// [Unbounded].
//
// # Strategies
//
// Duplicated gives each cluster all replicas.
//
// StaticWeight divides by [Target.Weight]. It always divides all replicas again, because the weights are the desired
// state; Current only breaks ties. Among all divisions that the method permits, it returns the one that moves the
// fewest replicas.
//
// DynamicWeight divides by capacity. It moves as few replicas as possible:
//
//   - Each cluster keeps its current replicas while it is in the Request and within its capacity.
//   - If more replicas are needed, each further replica goes to the cluster whose total is farthest below its share by
//     capacity. The result does not depend on whether a workload grows in steps or at once.
//   - If fewer replicas are needed, all clusters shrink in proportion to their current replicas. This does not depend
//     on capacities.
//   - A cluster with an unbounded capacity has no number to divide by. Its weight is the largest capacity of the other
//     clusters.
//
// Aggregated uses as few clusters as possible, and fills one cluster before it uses the next. Clusters in use come
// first, and then clusters with a larger capacity. It keeps current replicas in the same way; when a workload shrinks,
// the clusters with the fewest replicas are emptied first.
//
// With [Request.Fresh], DynamicWeight and Aggregated ignore the current division. For all strategies, dividing again
// with the Result as the current division changes nothing.
//
// # Method
//
// Division by weights uses Webster's method, also known as Sainte-Laguë's. Each replica goes to the cluster with the
// highest average: its weight divided by 2n+1, where n is the number of replicas that it has. A full cluster is
// skipped. The result resembles rounding each exact share to the nearest integer. The method has three properties that
// rounding by largest remainders does not have, or not all of them (Balinski and Young, Fair Representation, 2nd ed.
// 2001):
//
//   - An additional replica never takes a replica away from any cluster.
//   - A cluster never gets fewer replicas because its weight grows.
//   - It favors neither large nor small clusters.
//
// The comparison of averages is exact: it uses products of 128 bits. If averages are equal, the cluster that had this
// replica before comes first, then the cluster with fewer replicas, then the order by [Request.Key], and then the order
// by name. The implementation does not iterate over all replicas: it starts from a threshold near the average of the
// last replica, so a million replicas take no longer than a thousand. To measure:
//
//	go test -run '^$' -bench . ./scheduler/replicas
//
// # Differences from Karmada
//
// The strategies are those of Karmada's ReplicaSchedulingStrategy (pkg/scheduler/core), including whether they keep the
// current division. The differences are:
//
//   - Karmada's static weights are rounded down, and the heaviest clusters get the remainder. A cluster can therefore
//     lose a replica when the workload grows (karmada-io/karmada#6735). Static weights also ignore capacities.
//   - If not all replicas fit, Karmada places none. This package places those that fit.
//   - When Karmada scales up, it divides only the further replicas, by the remaining capacity. The result then depends
//     on the steps.
//   - When Karmada scales down, it may use clusters that are not candidates any more (karmada-io/karmada#7109).
//   - Karmada's Aggregated divides by weights among the fewest clusters that suffice. When the workload grows and this
//     number changes, clusters would lose replicas.
package replicas
