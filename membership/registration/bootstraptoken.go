package registration

import (
	"crypto/hkdf"
	"crypto/sha256"
	"regexp"

	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/muster-sdk/muster/membership"
)

// keyLabel separates the key of requests from other uses of a bootstrap token's secret, such as the signature of
// cluster-info, which is public.
const keyLabel = "muster join v1 bootstrap token"

var bootstrapToken = regexp.MustCompile(bootstrapapi.BootstrapTokenPattern)

// UseBootstrapToken sets Token, TokenName and Key from a bootstrap token of kubeadm, "<id>.<secret>". A hub and an
// agent derive the same Key from the same token. The error is an [*membership.InvalidError] of the field token that
// never quotes the token; nothing is set then.
func (b *Bootstrap) UseBootstrapToken(token string) error {
	parts := bootstrapToken.FindStringSubmatch(token)
	if parts == nil {
		return &membership.InvalidError{Field: "token", Problem: "must be a bootstrap token, <id>.<secret>, " +
			"of six and sixteen lower-case letters and digits"}
	}
	id, secret := parts[1], parts[2]
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, keyLabel+" "+id, keySize)
	if err != nil {
		// This happens in FIPS mode only.
		return &membership.InvalidError{Field: "token", Problem: "cannot be used to derive a key: " + err.Error()}
	}
	b.Token, b.TokenName, b.Key = token, bootstrapapi.BootstrapTokenSecretPrefix+id, key
	return nil
}
