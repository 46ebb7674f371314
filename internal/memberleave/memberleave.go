// Package memberleave decides whether a user requested that a member leaves the fleet.
package memberleave

import "github.com/muster-sdk/muster/membership/v1alpha1"

// Requested reports whether a user requested that a member leaves the fleet. A deletionTimestamp alone is not a
// request, because the API server also sets it when the definition of MemberClusters is removed. The hub distinguishes
// the two cases, and records a leave in the status before it takes effect.
func Requested(m *v1alpha1.MemberCluster) bool {
	leave := m.Status.Leave
	return m.Spec.State == v1alpha1.StateLeave || m.Status.Phase == v1alpha1.PhaseLeaving ||
		leave != nil && !leave.Ended
}
