// Package failover says how a placement leaves clusters that it can no longer be on: how many at a time, and whether
// before or after others are ready in their place.
//
// A decision says where a placement should be; [Plan] says where it is to be now, on the way there. It is asked again
// whenever something changes, and at the time that it says.
//
//	                         BeforeEvict                               EvictFirst
//	a replacement            comes at once                             comes when there is room for it
//	a healthy cluster        goes when enough others are ready         goes at once
//	one that is not healthy  goes when its replacement is ready, or    goes at once
//	                         enough others are
//	one of a placement that  goes at once: nothing can replace it      goes at once
//	wants all clusters
//	one without a candidate  stays                                     goes at once
//
// "At once" is subject to MaxEvictions in each period, which is 1 by default; a cluster that has to wait stays, with
// a reason. Clusters that are not healthy go first. A cluster that was asked to leave the fleet is not subject to
// MaxEvictions. A cluster that is not in the fleet any more is no longer published, and counts as no eviction: there
// is nothing to be evicted from. So with BeforeEvict a workload is deleted, also on a member that returns, only after
// its replacement is ready.
//
// Clusters that are left by an eviction by hand are among those that leave, and these rules hold for them, except
// that one that is not healthy goes at once. A disruption budget bounds evictions by hand alone (package eviction):
// BeforeEvict removes no available cluster that is not replaced, so it needs no budget, and EvictFirst was asked not
// to wait.
//
// The guard against outages of the hub itself is not here: membership withholds its taints then, so no cluster is left.
//
// It is pure: no client, no clock.
package failover
