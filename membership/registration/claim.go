package registration

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
)

// A ClaimKey is the key with which an agent proves that it has the claim to its cluster: an ECDSA key on P-256. An
// agent creates one for each registration and keeps it until it has left. All verbs of package fmt print only its
// fingerprint. It may be used concurrently.
type ClaimKey struct {
	private *ecdsa.PrivateKey
	public  []byte
}

const claimKeyBlock = "PRIVATE KEY"

// NewClaimKey creates a key.
func NewClaimKey() (*ClaimKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a claim key: %w", err)
	}
	return newClaimKey(private)
}

// ParseClaimKey reads the output of [ClaimKey.Marshal]. Its errors never quote data.
func ParseClaimKey(data []byte) (*ClaimKey, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != claimKeyBlock || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("parse a claim key: want one PEM block of type " + claimKeyBlock)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("parse a claim key: the PEM block does not contain a key in PKCS#8 form")
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, errors.New("parse a claim key: want an ECDSA key on P-256")
	}
	return newClaimKey(private)
}

func newClaimKey(private *ecdsa.PrivateKey) (*ClaimKey, error) {
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("encode a claim key: %w", err)
	}
	return &ClaimKey{private: private, public: public}, nil
}

// Marshal returns the private key as PEM in PKCS#8 form, which is also the form of the key of a client certificate. The
// result is a secret.
func (k *ClaimKey) Marshal() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, fmt.Errorf("encode claim key %s: %w", k.Fingerprint(), err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: claimKeyBlock, Bytes: der}), nil
}

// Public returns the public key in PKIX form.
func (k *ClaimKey) Public() []byte { return bytes.Clone(k.public) }

// Fingerprint returns [Fingerprint] of the public key.
func (k *ClaimKey) Fingerprint() string { return Fingerprint(k.public) }

// Signer returns the key as a signer of certificate requests.
func (k *ClaimKey) Signer() crypto.Signer { return k.private }

// String omits the private key, so that it does not appear in logs. Some loggers use only this method.
func (k *ClaimKey) String() string {
	if k == nil || k.private == nil {
		return "claim key (none)"
	}
	return "claim key " + k.Fingerprint()
}

// Format prints String for every verb, so that printed text never contains the private key.
func (k *ClaimKey) Format(state fmt.State, _ rune) { fmt.Fprint(state, k.String()) }

// MarshalJSON omits the private key, so that it does not appear in logs. To store a key, use [ClaimKey.Marshal].
func (k *ClaimKey) MarshalJSON() ([]byte, error) { return json.Marshal(k.String()) }

// Fingerprint returns the fingerprint of a claim key: the SHA-256 hash of its public key in PKIX form, in hexadecimal.
func Fingerprint(public []byte) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:])
}

// sign signs a canonical encoding. The same bytes always have the same signature.
func (k *ClaimKey) sign(encoded []byte) ([]byte, error) {
	digest := sha256.Sum256(encoded)
	return k.private.Sign(nil, digest[:], crypto.SHA256) // deterministic, see RFC 6979
}

func verifies(public *ecdsa.PublicKey, encoded, signature []byte) bool {
	digest := sha256.Sum256(encoded)
	return ecdsa.VerifyASN1(public, digest[:], signature)
}

// parsePublic parses the public half of a claim key. It accepts only one encoding of a key, so that a key has only one
// fingerprint.
func parsePublic(public []byte) (*ecdsa.PublicKey, error) {
	parsed, err := x509.ParsePKIXPublicKey(public)
	if err != nil {
		return nil, errors.New("not a public key in PKIX form")
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("must be an ECDSA key on P-256")
	}
	canonical, err := x509.MarshalPKIXPublicKey(key)
	if err != nil || !bytes.Equal(canonical, public) {
		return nil, errors.New("must be in the canonical encoding of PKIX")
	}
	return key, nil
}
