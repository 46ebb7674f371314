package registration

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// SignRenewal completes a renewal with the claim key and its signature, given the UID of the agent's MemberCluster. The
// same key, UID and renewal always result in the same signature.
func SignRenewal(renewal *v1alpha1.Renewal, member types.UID, claim *ClaimKey) error {
	renewal.ClaimKey = claim.Public()
	signature, err := claim.sign(canonicalRenewal(member, renewal))
	if err != nil {
		return fmt.Errorf("sign renewal %s: %w", renewal.ID, err)
	}
	renewal.Signature = signature
	return nil
}

// VerifyRenewal checks that a renewal is signed with the claim key of the member's agent, and is for that member. The
// error is an [*membership.InvalidError]. The credential that wrote the renewal proves nothing.
func VerifyRenewal(renewal *v1alpha1.Renewal, member membership.Member) error {
	if len(renewal.Signature) == 0 {
		return &membership.InvalidError{Field: "signature", Problem: "must be set: the claim key signs each renewal"}
	}
	public, err := parsePublic(renewal.ClaimKey)
	if err != nil {
		return &membership.InvalidError{Field: "claimKey", Problem: err.Error()}
	}
	if got := Fingerprint(renewal.ClaimKey); got != member.Claim {
		return &membership.InvalidError{Field: "claimKey", Problem: fmt.Sprintf(
			"is %s, and the agent of member %s has %s", got, member.Name, member.Claim)}
	}
	if !verifies(public, canonicalRenewal(member.UID, renewal), renewal.Signature) {
		return &membership.InvalidError{Field: "signature", Problem: "is not a signature of this renewal by its claim key: " +
			"the renewal was changed, or the agent is of a version that signs other fields"}
	}
	return nil
}
