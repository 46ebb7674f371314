// Package failover decides how a placement leaves clusters that it can no longer be on: how many at a time, and whether
// before or after replacements are ready.
//
// A decision returns the clusters that a placement should be on. [Plan] returns the clusters that it must be on now,
// on the way there. Call it whenever something changes, and at the time that it returns.
//
//	                          Replace: BeforeEvict                       Replace: EvictFirst
//	a replacement             is added immediately                       is added when there is room for it
//	a healthy cluster         is left when enough others are ready       is left immediately
//	an unhealthy cluster      is left when its replacement is ready, or  is left immediately
//	                          enough others are
//	a cluster of a placement  is left immediately, because no cluster    is left immediately
//	on all clusters           can replace it
//	a cluster without a       stays                                      is left immediately
//	candidate to replace it
//
// "Immediately" is subject to MaxEvictions in each period, which is 1 by default. A cluster that has to wait stays,
// with a reason. Unhealthy clusters are left first. A cluster that was asked to leave the fleet is not subject to
// MaxEvictions. A cluster that is not in the fleet any more is no longer published, and does not count as an eviction.
// So with BeforeEvict a workload is deleted only after its replacement is ready, also on a member that returns.
//
// These rules also apply to clusters that are left because of a PlacementEviction, except that an unhealthy one is left
// immediately. A disruption budget applies to PlacementEvictions only (package eviction). BeforeEvict needs no budget,
// because it removes no available cluster that is not replaced, and EvictFirst is configured not to wait.
//
// The guard against outages of the hub itself is in package membership, which then withholds its taints, so no cluster
// is left.
//
// The package is pure: it uses no client and no clock.
package failover
