// Package eligibility is the plugin that leaves out clusters which are not in the fleet, are about to leave it, or are
// not known to be healthy.
//
// A cluster that was chosen before stays while its health is unknown or bad, and while it has not joined again, such
// as after a restore of the hub: absence is not a request. It does not stay when it leaves. Package tainttoleration
// decides whether a taint or a failover takes it away.
package eligibility
