package discovery

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	certutil "k8s.io/client-go/util/cert"

	"github.com/muster-sdk/muster/membership"
)

const pinPrefix = "sha256:"

// CACertHash returns the pin of a certificate: "sha256:" and the SHA-256 hash of its DER-encoded public key (SPKI), in
// hexadecimal. It equals --discovery-token-ca-cert-hash of kubeadm.
func CACertHash(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return pinPrefix + hex.EncodeToString(sum[:])
}

// CACertHashes returns the pins of the certificates of a PEM-encoded bundle, in order and without duplicates. The
// bundle must contain at least one certificate.
func CACertHashes(bundle []byte) ([]string, error) {
	certificates, err := certutil.ParseCertsPEM(bundle)
	if err != nil {
		return nil, fmt.Errorf("read the CA's certificates: %w", err)
	}
	var hashes []string
	for _, certificate := range certificates {
		if hash := CACertHash(certificate); !slices.Contains(hashes, hash) {
			hashes = append(hashes, hash)
		}
	}
	return hashes, nil
}

// pins are hashes of public keys, in the form of CACertHash. Without pins, every certificate is accepted.
type pins []string

func parsePins(hashes []string) (pins, error) {
	var out pins
	for i, hash := range hashes {
		hash = strings.ToLower(strings.TrimSpace(hash))
		digits, prefixed := strings.CutPrefix(hash, pinPrefix)
		if sum, err := hex.DecodeString(digits); !prefixed || err != nil || len(sum) != sha256.Size {
			return nil, &membership.InvalidError{Field: fmt.Sprintf("Options.CACertHashes[%d]", i), Problem: fmt.Sprintf(
				"must be %q and %d hexadecimal digits", pinPrefix, hex.EncodedLen(sha256.Size))}
		}
		out = append(out, hash)
	}
	return out, nil
}

// filter returns the pinned certificates. Other certificates of the bundle are not trusted.
func (p pins) filter(certificates []*x509.Certificate) ([]*x509.Certificate, error) {
	if len(p) == 0 {
		return certificates, nil
	}
	var pinned []*x509.Certificate
	for _, certificate := range certificates {
		if slices.Contains(p, CACertHash(certificate)) {
			pinned = append(pinned, certificate)
		}
	}
	if len(pinned) == 0 {
		return nil, fmt.Errorf("%w: the hub's CA is %s", ErrWrongPin, CACertHash(certificates[0]))
	}
	return pinned, nil
}
