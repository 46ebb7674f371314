package lifecycle

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// HasCurrentKey reports whether an agent has proven the current claim key of a member, given spec.claim and
// spec.claimKeys of the MemberCluster. The proven keys are fingerprints, newest first.
//
// An agent keeps its earlier keys, so it also proves the key that is current after the hub's store was restored. A
// copy of its keys does not contain the newer ones. Therefore the hub detects the use of the copy after the agent has
// renewed its credential with a new key, and the use of the agent's own keys after the copy has done so.
func HasCurrentKey(claim string, known *v1alpha1.ClaimKeys, proven []string) bool {
	if known = ofClaim(claim, known); known != nil {
		return slices.Contains(proven, known.Current)
	}
	return slices.Contains(proven, claim)
}

// ofClaim returns the keys of a claim; nil: only the claim key itself.
func ofClaim(claim string, known *v1alpha1.ClaimKeys) *v1alpha1.ClaimKeys {
	if known == nil || known.Claim != claim {
		return nil
	}
	return known
}

// NextClaimKeys returns spec.claimKeys of a MemberCluster after a credential was issued to an agent that has proven
// these keys, newest first: the newest one is the current key. An agent with only a claim key is of an earlier version.
func NextClaimKeys(claim string, known *v1alpha1.ClaimKeys, proven []string, now time.Time) *v1alpha1.ClaimKeys {
	known = ofClaim(claim, known)
	if len(proven) < 2 || known != nil && known.Current == proven[0] {
		return known
	}
	next := &v1alpha1.ClaimKeys{Claim: claim, Current: proven[0], Since: metav1.NewTime(now)}
	if known != nil {
		next.ReusedAt = known.ReusedAt // until an administrator removes it
	}
	return next
}

// BoundClaimKeys is like NextClaimKeys, for a MemberCluster that is bound to a claim. It keeps keys of the same claim:
// the agent may have renewed its credential with a newer key while the JoinRequest was pending.
func BoundClaimKeys(claim string, known *v1alpha1.ClaimKeys, proven []string, now time.Time) *v1alpha1.ClaimKeys {
	if known = ofClaim(claim, known); known != nil {
		return known
	}
	return NextClaimKeys(claim, nil, proven, now)
}

// KeyReplaced is the message for a request that is refused because its agent does not have the current claim key.
const KeyReplaced = "The request is not signed with the current claim key of the agent: it is from a copy of the " +
	"agent's Secret, or the agent was restored from a backup. If it was restored, remove spec.claimKeys of the " +
	"MemberCluster. Otherwise replace the claim of the agent."

// ReusedMessage returns the message about spec.claimKeys.reusedAt; empty: no reuse was reported for this claim.
func ReusedMessage(claim string, known *v1alpha1.ClaimKeys) string {
	known = ofClaim(claim, known)
	if known == nil || known.ReusedAt == nil {
		return ""
	}
	return fmt.Sprintf("A request at %s was signed with claim keys that the agent of this member had replaced: two "+
		"parties use its credential. Either a copy of the agent's Secret is in use, or the agent was restored from a "+
		"backup. If it was restored, remove spec.claimKeys. Otherwise replace the claim, which changes nothing on the "+
		"member: delete the Secret of the agent, give the agent a join.yaml, and set spec.claim to the fingerprint in the "+
		"status of its JoinRequest. To close the report without a change, remove spec.claimKeys.reusedAt.",
		known.ReusedAt.UTC().Format(time.RFC3339))
}
