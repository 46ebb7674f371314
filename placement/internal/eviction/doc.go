// Package eviction decides which [v1alpha1.PlacementEviction] objects are executed now, and why the others wait,
// according to the disruption budget of a placement.
//
//	the cluster                                   without a budget   with a budget
//	is not a cluster of the placement             executed           executed: the placement leaves no cluster
//	is not available                              executed           executed: the number of available clusters stays
//	is available                                  executed           if enough others are, the oldest eviction first
//	is available, and failover replaces first     executed           executed: failover keeps it until another is ready
//	without it the policy gives up more ([Fit])   executed           if enough clusters stay nevertheless; while it
//	                                                                 waits, it blocks no other eviction
//
// A budget limits PlacementEvictions, as a PodDisruptionBudget limits the eviction API and not taints. It does not
// block failover ([v1alpha1.FailoverPolicy]). With BeforeEvict, failover removes no healthy cluster that is not
// replaced, so it stays within every budget. With EvictFirst it is configured to ignore budgets. Clusters that have
// become unavailable because of failover count here, so evictions wait for them.
//
// # Rounding
//
// Percentages are rounded up, for minAvailable and for maxUnavailable, as the disruption controller of Kubernetes does:
// https://kubernetes.io/docs/tasks/run-application/configure-pdb/#rounding-logic-when-specifying-percentages
//
// # Differences from KubeFleet
//
// In KubeFleet an eviction that the budget does not allow immediately has failed permanently, and with PickAll the
// cluster is chosen again immediately unless a user taints it. Here the eviction waits, and keeps the placement off the
// cluster as long as the object exists. Percentages of "all clusters" need a number that evictions do not change:
// otherwise a budget of 25% would let all clusters be evicted one after the other. This number is that of the clusters
// that would be chosen without evictions.
//
// The package is pure: it uses no client and no clock.
package eviction
