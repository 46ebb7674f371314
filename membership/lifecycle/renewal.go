package lifecycle

import "github.com/muster-sdk/muster/membership/v1alpha1"

// RefuseRenewal says why a member's credential is not to be renewed, and what to do; empty: it may be.
// A certificate cannot be called back, so none is issued to a member that is not to have access just now. One that
// leaves has access until it has confirmed that it is clean, which may take longer than a credential lives.
func RefuseRenewal(o HubObserved, issued, asked v1alpha1.CredentialType) string {
	o.Leave = thisLeave(o)
	switch {
	case o.Accepted == nil || !*o.Accepted:
		return "The cluster is not accepted: an administrator has to set spec.accepted of its MemberCluster to true."
	case leaves(o) && (forced(o) || !o.Access):
		return "The cluster is leaving."
	case asked != issued:
		return "The agent joined with a credential of another type: let the cluster leave and join again to change it."
	default:
		return ""
	}
}
