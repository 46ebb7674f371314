package registration

import (
	"crypto/hkdf"
	"crypto/sha256"
	"regexp"

	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/muster-sdk/muster/membership"
)

// keyLabel tells the key of requests from everything else that is made of a bootstrap token's secret, such as the
// signature of cluster-info, which anybody may read.
const keyLabel = "muster join v1 bootstrap token"

var bootstrapToken = regexp.MustCompile(bootstrapapi.BootstrapTokenPattern)

// UseBootstrapToken sets Token, TokenName and Key to those of a bootstrap token as kubeadm has them, "<id>.<secret>".
// A hub and an agent that know the same token come to the same Key. The error is an [*membership.InvalidError] of
// the field token, which never quotes it; then nothing is set.
func (b *Bootstrap) UseBootstrapToken(token string) error {
	parts := bootstrapToken.FindStringSubmatch(token)
	if parts == nil {
		return &membership.InvalidError{Field: "token", Problem: "must be a bootstrap token, <id>.<secret>, " +
			"of six and sixteen lower-case letters and digits"}
	}
	id, secret := parts[1], parts[2]
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, keyLabel+" "+id, keySize)
	if err != nil {
		return &membership.InvalidError{Field: "token", Problem: "cannot be made a key of: " + err.Error()} // In FIPS mode alone.
	}
	b.Token, b.TokenName, b.Key = token, bootstrapapi.BootstrapTokenSecretPrefix+id, key
	return nil
}
