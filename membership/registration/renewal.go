package registration

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// SignRenewal completes a renewal with the claim key, the later keys of the agent, newest first, and their signatures,
// given the UID of the agent's MemberCluster. The same keys, UID and renewal always result in the same signatures.
func SignRenewal(renewal *v1alpha1.Renewal, member types.UID, claim *ClaimKey, later ...*ClaimKey) error {
	renewal.ClaimKey = claim.Public()
	signed := canonicalRenewal(member, renewal)
	signature, err := claim.sign(signed)
	if err != nil {
		return fmt.Errorf("sign renewal %s: %w", renewal.ID, err)
	}
	renewal.Signature = signature
	if renewal.Keys, err = signKeys(signed, later); err != nil {
		return fmt.Errorf("sign renewal %s: %w", renewal.ID, err)
	}
	return nil
}

// VerifyRenewal checks that a renewal is signed with the claim key of the member's agent and all its later keys, and
// is for that member. The error is an [*membership.InvalidError]. It does not depend on the credential that wrote the
// renewal, which proves nothing. The caller must check whether one of the keys is the current one; see [ProvenKeys].
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
	signed := canonicalRenewal(member.UID, renewal)
	if !verifies(public, signed, renewal.Signature) {
		return &membership.InvalidError{Field: "signature", Problem: "is not a signature of this renewal by its claim key: " +
			"the renewal was changed, or the agent is of a version that signs other fields"}
	}
	return verifyKeys("keys", signed, renewal.ClaimKey, renewal.Keys)
}
