// Package replicas divides the replicas of a workload among the clusters that were chosen for it.
//
//   - [Divide] decides: a pure function of the workload's size, the [Strategy] and what is known of each cluster.
//   - An [Estimator] tells for how many more replicas clusters have room. [FromAvailable] goes by their free resources,
//     and [Min] asks several.
//
// It chooses no clusters, and needs nothing else of this module.
//
// # Capacity
//
// [Target.Capacity] is how many replicas of this workload a cluster can have in total, those that it has included. So
// it stays the same when the workload moves in, and no estimate can evict what runs already. An
// Estimator tells what fits besides, as only that can be measured: [CapacityOf] adds the two. No strategy exceeds a
// capacity. What fits nowhere is [Result.Unplaced], and the rest is placed nevertheless. Who does
// not want capacities says [Unbounded].
//
// # Strategies
//
// Duplicated gives each cluster all replicas.
//
// StaticWeight divides by [Target.Weight], always anew: the weights are what was asked for, and Current only breaks
// ties. Of all divisions that the method allows, it is the one that moves least.
//
// DynamicWeight divides by capacity. It is steady:
//
//   - Everybody keeps what it has, as long as it is in the Request and within its capacity.
//   - If that is too little, each further replica goes to where the whole division, with what is there, is farthest
//     behind the capacities. So it makes no difference whether a workload grows in steps or at once.
//   - If that is too much, all shrink in proportion to what they have, for which no capacity need be known.
//   - A cluster whose capacity is unbounded has no number to divide by, and weighs as much as the roomiest of the
//     others.
//
// Aggregated uses as few clusters as possible, and fills one before it begins another: the clusters in use first, and
// among equals the one with the largest capacity. It is as steady; shrinking empties the clusters with least first.
//
// [Request.Fresh] makes the last two divide as if nothing were there. To ask again with what a Result says changes
// nothing, whatever the strategy.
//
// # Method
//
// Division by weights is Webster's method, also known as Sainte-Laguë's: one replica after the other goes to the
// cluster with the highest weight divided by 1, 3, 5 and so on, twice the replicas that it has plus one; one that is
// full drops out. It rounds each share to the nearest number, as it were, and has three properties that rounding by
// largest remainders has not, or not all (Balinski and Young, Fair Representation, 2nd ed. 2001):
//
//   - One more replica never takes one away from any cluster.
//   - A cluster whose weight grows never gets less for it.
//   - It favors neither large clusters nor small ones.
//
// Shares are exact: averages are compared as products of 128 bits. Of equal averages the one of the cluster that has
// had that replica before comes first, then that of the cluster with fewer replicas, then the order of [Request.Key],
// then that of the names. It does not go replica by replica, but from a threshold near the last one's average, so a
// million replicas take no longer than a thousand. To measure:
//
//	go test -run '^$' -bench . ./scheduler/replicas
//
// # Where this differs from Karmada
//
// The strategies are those of Karmada's ReplicaSchedulingStrategy (pkg/scheduler/core), and so is what is steady and
// what is not. But:
//
//   - Its static weights round down and give the rest to the heaviest, by which a cluster can lose a replica as the
//     workload grows (karmada-io/karmada#6735). They do not heed capacities either.
//   - Where not all replicas fit it places none. Here those that fit are placed.
//   - Where it scales up it divides the further replicas alone, by the room that is left. Then the result depends on
//     the steps.
//   - Where it scales down it may go by clusters that are not candidates any more (karmada-io/karmada#7109).
//   - Its Aggregated divides by weights among the fewest clusters that suffice. That their number changes would take
//     replicas away from clusters when the workload grows.
package replicas
