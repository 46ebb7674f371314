package registration

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestKeys checks the proofs of later keys, in JoinRequests and in renewals.
func TestKeys(t *testing.T) {
	claim, older, newest, other := newClaim(t), newClaim(t), newClaim(t), newClaim(t)
	for _, test := range []struct {
		reason string
		later  []*ClaimKey
		change func([]v1alpha1.KeyProof) []v1alpha1.KeyProof
		field  string // empty: passes
	}{
		{"no later keys, as of an agent of an earlier version", nil, nil, ""},
		{"two later keys, as signed by the agent", []*ClaimKey{newest, older}, nil, ""},
		{"the first key is removed", []*ClaimKey{newest, older},
			func(k []v1alpha1.KeyProof) []v1alpha1.KeyProof { return k[1:] }, "[0].signature"},
		{"the last key is removed", []*ClaimKey{newest, older},
			func(k []v1alpha1.KeyProof) []v1alpha1.KeyProof { return k[:1] }, "[0].signature"},
		{"the order is changed", []*ClaimKey{newest, older},
			func(k []v1alpha1.KeyProof) []v1alpha1.KeyProof { return []v1alpha1.KeyProof{k[1], k[0]} }, "[0].signature"},
		{"a key is added", []*ClaimKey{newest, older}, func(k []v1alpha1.KeyProof) []v1alpha1.KeyProof {
			return append([]v1alpha1.KeyProof{{Key: other.Public(), Signature: k[0].Signature}}, k...)
		}, "[0].signature"},
		{"the signature of another key", []*ClaimKey{newest, older}, func(k []v1alpha1.KeyProof) []v1alpha1.KeyProof {
			k[1].Signature = k[0].Signature
			return k
		}, "[1].signature"},
		{"a key with another encoding", []*ClaimKey{newest}, func(k []v1alpha1.KeyProof) []v1alpha1.KeyProof {
			k[0].Key = append(k[0].Key, 0)
			return k
		}, "[0].key"},
		{"the claim key as a later key", []*ClaimKey{claim}, nil, "[0].key"},
		{"a duplicate key", []*ClaimKey{newest, older, newest}, nil, "[2].key"},
	} {
		change := test.change
		if change == nil {
			change = func(k []v1alpha1.KeyProof) []v1alpha1.KeyProof { return k }
		}
		request := &v1alpha1.JoinRequest{Spec: testSpec()}
		require.NoError(t, Sign(request, claim, testBootstrap(t), test.later...))
		request.Spec.Keys = change(request.Spec.Keys)
		renewal := testRenewal()
		require.NoError(t, SignRenewal(&renewal, "uid", claim, test.later...))
		renewal.Keys = change(renewal.Keys)
		want := test.field
		if want != "" {
			want = "keys" + want
		}
		require.Equal(t, want, fieldOf(VerifyRenewal(&renewal,
			membership.Member{Name: "east", UID: "uid", Claim: claim.Fingerprint()})), test.reason)
		if want != "" {
			want = "spec." + want
		}
		require.Equal(t, want, fieldOf(Verify(request)), test.reason)
		if want == "" {
			proven := []string{claim.Fingerprint()}
			if len(test.later) > 0 {
				proven = []string{newest.Fingerprint(), older.Fingerprint(), claim.Fingerprint()}
			}
			require.Equal(t, proven, ProvenKeys(request.Spec.ClaimKey, request.Spec.Keys), test.reason)
			require.Equal(t, proven, ProvenKeys(renewal.ClaimKey, renewal.Keys), test.reason)
		}
	}
}

// TestKeys_OfAnotherRequest checks that the proof of a key is valid for one request only.
func TestKeys_OfAnotherRequest(t *testing.T) {
	claim, later := newClaim(t), newClaim(t)
	member := membership.Member{Name: "east", UID: "uid", Claim: claim.Fingerprint()}
	observed := testRenewal()
	require.NoError(t, SignRenewal(&observed, "uid", claim, later))
	// A party that has the claim key and has read a renewal asks for a credential of its own.
	forged := testRenewal()
	forged.Request.PublicKey = []byte("another")
	require.NoError(t, SignRenewal(&forged, "uid", claim))
	forged.Keys = observed.Keys
	require.Equal(t, "keys[0].signature", fieldOf(VerifyRenewal(&forged, member)))
	request := &v1alpha1.JoinRequest{Spec: testSpec()}
	require.NoError(t, Sign(request, claim, nil))
	request.Spec.Keys = observed.Keys
	require.Equal(t, "spec.keys[0].signature", fieldOf(Verify(request)))
}

// TestCanonicalKeysIsFixed checks the exact bytes, because agents and hubs of all versions must use the same encoding.
func TestCanonicalKeysIsFixed(t *testing.T) {
	sum := sha256.Sum256(canonicalKeys([]byte("signed"), []v1alpha1.KeyProof{{Key: []byte("a")}, {Key: []byte("b")}}))
	require.Equal(t, "fb16aa3e57151ed371ad9e659c390737e3d911f35599dfcafda248b7a7c42525", hex.EncodeToString(sum[:]))
}
