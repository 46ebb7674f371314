package lifecycle

import "github.com/muster-sdk/muster/membership/v1alpha1"

// RefuseRenewal returns the reason why a member's credential must not be renewed, and the next step for a user; empty:
// it may be renewed. A certificate cannot be revoked, so none is issued to a member that must not have access now. A
// leaving member has access until it has confirmed that it is clean, which may take longer than a credential is valid.
func RefuseRenewal(o HubObserved, issued, asked v1alpha1.CredentialType) string {
	o.Leave = thisLeave(o)
	switch {
	case o.Spec.Accepted == nil || !*o.Spec.Accepted:
		return "The cluster is not accepted: an administrator must set spec.accepted of its MemberCluster to true."
	case leaves(o) && (forced(o) || !o.Access):
		return "The cluster is leaving."
	case asked != issued:
		return "The agent joined with a credential of another type: let the cluster leave and join again to change it."
	default:
		return ""
	}
}
