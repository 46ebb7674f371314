package registration

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// SignRenewal completes a renewal that says what the agent asks for, given the UID of its MemberCluster: it puts the claim
// key in and signs it. The same key, UID and renewal always give the same signature.
func SignRenewal(renewal *v1alpha1.Renewal, member types.UID, claim *ClaimKey) error {
	renewal.ClaimKey = claim.Public()
	signature, err := claim.sign(canonicalRenewal(member, renewal))
	if err != nil {
		return fmt.Errorf("sign renewal %s: %w", renewal.ID, err)
	}
	renewal.Signature = signature
	return nil
}

// VerifyRenewal checks that a renewal is by the claim key of the agent that speaks for the member, and meant for that
// member. The error is an [*membership.InvalidError]. The credential that it was written with proves nothing of it.
func VerifyRenewal(renewal *v1alpha1.Renewal, member membership.Member) error {
	if len(renewal.Signature) == 0 {
		return &membership.InvalidError{Field: "signature", Problem: "is not set: the claim key has to sign each renewal"}
	}
	public, err := parsePublic(renewal.ClaimKey)
	if err != nil {
		return &membership.InvalidError{Field: "claimKey", Problem: err.Error()}
	}
	if got := Fingerprint(renewal.ClaimKey); got != member.Claim {
		return &membership.InvalidError{Field: "claimKey", Problem: fmt.Sprintf(
			"is %s, and the agent that speaks for member %s has %s", got, member.Name, member.Claim)}
	}
	if !verifies(public, canonicalRenewal(member.UID, renewal), renewal.Signature) {
		return &membership.InvalidError{Field: "signature", Problem: "is not one of this renewal by its claim key: " +
			"the renewal was changed, or the agent is of a version that signs other fields"}
	}
	return nil
}
