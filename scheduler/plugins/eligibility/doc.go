// Package eligibility is the plugin that leaves out clusters which are not in the fleet, are about to leave it, or are not
// known to be well.
//
// A cluster that was chosen before stays while its health is unknown or bad: to give it up is a matter of its taints and of
// how long they are tolerated. It does not stay when it leaves.
package eligibility
