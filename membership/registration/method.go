package registration

import (
	"encoding/json"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// A Method requests one type of credential for an agent: csr.Method, token.Method or identity.Method. A first
// credential and every renewal use the same steps: Request, store private, send, wait, Open. A Method has no state,
// does no I/O, and may be used concurrently.
type Method interface {
	// Type is the type of its credentials.
	Type() v1alpha1.CredentialType

	// Request returns a new request, and private data that the agent must keep until it has opened the answer, also over a
	// restart. The private data is secret and may be empty. With a nil lifetime the hub decides;
	// v1alpha1.CredentialRequest documents the limits.
	Request(claim *ClaimKey, expirationSeconds *int32) (request v1alpha1.CredentialRequest, private []byte, err error)

	// Open checks that a credential is the answer to the request with this private data, and makes it usable. It does not
	// check the expiration, which is up to the hub's API server. An error is final for this request; make another one.
	Open(claim *ClaimKey, private []byte, credential v1alpha1.Credential) (Material, error)
}

// Material is what an agent authenticates to the hub with: a certificate, a token, or, if zero, a credential that the
// agent already had. Its secrets are never printed.
type Material struct {
	// Certificate is a PEM-encoded client certificate.
	Certificate []byte
	// Key is the PEM-encoded private key of the certificate. Empty: the claim key, as in earlier versions.
	Key []byte
	// Token is a bearer token.
	Token string
}

// Config returns a config for the hub that authenticates with the material and ignores all credentials of hub. For zero
// material it returns a copy of hub.
func (m Material) Config(hub *rest.Config, claim *ClaimKey) (*rest.Config, error) {
	if m.Token == "" && len(m.Certificate) == 0 {
		return rest.CopyConfig(hub), nil
	}
	config := rest.AnonymousClientConfig(hub)
	config.BearerToken = m.Token
	if len(m.Certificate) > 0 {
		key := m.Key
		if len(key) == 0 {
			var err error
			if key, err = claim.Marshal(); err != nil {
				return nil, err
			}
		}
		config.CertData, config.KeyData = m.Certificate, key
	}
	return config, nil
}

// String keeps the secrets out of logs. Some loggers use only this method.
func (m Material) String() string {
	switch {
	case m.Token != "":
		return "token (redacted)"
	case len(m.Certificate) > 0:
		return "certificate"
	default:
		return "identity"
	}
}

// Format keeps the secrets out of printed text, for every verb.
func (m Material) Format(state fmt.State, _ rune) { fmt.Fprint(state, m.String()) }

// MarshalJSON keeps the secrets out of logs.
func (m Material) MarshalJSON() ([]byte, error) { return json.Marshal(m.String()) }
