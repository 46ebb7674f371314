// Package eviction says which evictions by hand ([v1alpha1.PlacementEviction]) are executed now, and what the others
// wait for, by the disruption budget of a placement.
//
//	the cluster                                without a budget   with one
//	is not among those that the placement is on   executed        executed: there is nothing to leave
//	is not available                              executed        executed: nothing is lost by it
//	is available                                  executed        if enough others are, the oldest eviction first
//	is available, and is to be replaced before    executed        executed: the failover keeps it until another is ready
//	without it the policy gives up more ([Fit])   executed        if enough stay even so; while it waits, it holds up no other
//
// A budget bounds evictions by hand, as a PodDisruptionBudget bounds the eviction API and not taints: failover
// ([v1alpha1.FailoverPolicy]) is not for it to hold up. With BeforeEvict, failover removes no cluster that is healthy
// and not replaced, so it keeps within every budget; with EvictFirst it was asked not to care; and who is lost is
// lost. What failover has made unavailable counts here, so evictions wait for it.
//
// # Rounding
//
// Percentages are rounded up, for minAvailable and for maxUnavailable, as the disruption controller of Kubernetes does:
// https://kubernetes.io/docs/tasks/run-application/configure-pdb/#rounding-logic-when-specifying-percentages
//
// # Traps of others that are none here
//
// In KubeFleet an eviction that the budget does not allow at once has failed for good, and with PickAll the cluster
// is chosen again at once unless a user taints it. Here it waits, and keeps the placement off the cluster for as long
// as it is there. For percentages of "all clusters" there must be a number that evictions do not change, or a budget
// of 25% lets all go, one after the other: it is how many would be chosen if none was evicted.
//
// It is pure: no client, no clock.
package eviction
