package registration

import (
	"bytes"
	"fmt"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// ProvenKeys returns the fingerprints of all claim keys that a verified request proves, newest first. The last one is
// that of the claim key, which is spec.claim of the MemberCluster.
func ProvenKeys(claimKey []byte, later []v1alpha1.KeyProof) []string {
	proven := make([]string, 0, len(later)+1)
	for i := range later {
		proven = append(proven, Fingerprint(later[i].Key))
	}
	return append(proven, Fingerprint(claimKey))
}

// signKeys returns the proofs of the later keys, given the data that the claim key signs.
func signKeys(signed []byte, later []*ClaimKey) ([]v1alpha1.KeyProof, error) {
	var keys []v1alpha1.KeyProof
	for _, key := range later {
		keys = append(keys, v1alpha1.KeyProof{Key: key.Public()})
	}
	encoded := canonicalKeys(signed, keys)
	for i, key := range later {
		signature, err := key.sign(encoded)
		if err != nil {
			return nil, err
		}
		keys[i].Signature = signature
	}
	return keys, nil
}

// verifyKeys checks the proofs of the later keys. The error is an [*membership.InvalidError].
func verifyKeys(path string, signed, claimKey []byte, keys []v1alpha1.KeyProof) error {
	encoded := canonicalKeys(signed, keys)
	for i := range keys {
		invalid := func(field, problem string) error {
			return &membership.InvalidError{Field: fmt.Sprintf("%s[%d].%s", path, i, field), Problem: problem}
		}
		public, err := parsePublic(keys[i].Key)
		if err != nil {
			return invalid("key", err.Error())
		}
		same := bytes.Equal(keys[i].Key, claimKey)
		for _, other := range keys[:i] {
			same = same || bytes.Equal(keys[i].Key, other.Key)
		}
		if same {
			return invalid("key", "must differ from the claim key and from all other keys")
		}
		if !verifies(public, encoded, keys[i].Signature) {
			return invalid("signature", "is not a signature of this request by the key")
		}
	}
	return nil
}
