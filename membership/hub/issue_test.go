package hub

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestIssue_ReplacedKeys checks that no credential is issued if the agent has replaced its claim key between the
// decision and the issue.
func TestIssue_ReplacedKeys(t *testing.T) {
	claim, err := registration.NewClaimKey()
	require.NoError(t, err)
	cluster := &v1alpha1.MemberCluster{Spec: v1alpha1.MemberClusterSpec{Claim: claim.Fingerprint(),
		ClaimKeys: &v1alpha1.ClaimKeys{Claim: claim.Fingerprint(), Current: "newer"}}}
	request := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{ClaimKey: claim.Public(),
		Credential: v1alpha1.CredentialRequest{Type: v1alpha1.CredentialToken}}}
	d := &joinRequestController{options: Options{ // Without a reader, it panics if it continues.
		Issuers: map[v1alpha1.CredentialType]membership.Issuer{v1alpha1.CredentialToken: &token.Issuer{}},
	}}
	credential, _, err := d.issue(t.Context(), request, cluster, lifecycle.JoinRequestStep{})
	require.ErrorIs(t, err, membership.ErrPending)
	require.Nil(t, credential)
}
