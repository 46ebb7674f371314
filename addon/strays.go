package addon

import (
	"k8s.io/apimachinery/pkg/api/meta"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// looked reports whether the hub has looked at a member, as at one that came a moment ago, or without its status from a backup, it has not: one without a
// namespace has none then.
func looked(m *membershipv1alpha1.MemberCluster) bool {
	return m.Status.Namespace != "" || meta.FindStatusCondition(m.Status.Conditions, membershipv1alpha1.ConditionAccepted) != nil
}
