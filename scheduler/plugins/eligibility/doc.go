// Package eligibility is a plugin that rejects clusters that are not in the fleet, are leaving it, or are not known to
// be healthy.
//
// A cluster that was chosen before stays while its health is bad or unknown. It also stays while it has not joined
// again, for example after a restore of the hub, because a missing object does not request a removal. It does not stay
// if it is leaving. Package tainttoleration decides whether a taint or a failover removes it.
package eligibility
