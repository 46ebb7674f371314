package registration

import (
	"encoding/json"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// A Method requests one type of credential for an agent: csr.Method, token.Method or identity.Method. A first
// credential and every renewal use the same steps: Request, store private, send, wait, Open. A Method has no state,
// performs no I/O, and may be used concurrently.
type Method interface {
	// Type returns the type of its credentials.
	Type() v1alpha1.CredentialType

	// Request returns a new request, and private data that the agent must store until it has opened the answer, also
	// during a restart. The private data is secret and may be empty. If expirationSeconds is nil, the hub decides the
	// lifetime; v1alpha1.CredentialRequest documents the limits.
	Request(claim *ClaimKey, expirationSeconds *int32) (request v1alpha1.CredentialRequest, private []byte, err error)

	// Open checks that a credential is the answer to the request with this private data, and returns it in a usable form.
	// It does not check the expiration, which the hub's API server enforces. An error is permanent for this request;
	// create another one.
	Open(claim *ClaimKey, private []byte, credential v1alpha1.Credential) (Material, error)
}

// Material is the credential with which an agent authenticates to the hub: a certificate, a token, or, if zero, a
// credential that the agent already had. Its secrets are never printed.
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

// String omits the secrets, so that they do not appear in logs. Some loggers use only this method.
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

// Format prints String for every verb, so that printed text never contains the secrets.
func (m Material) Format(state fmt.State, _ rune) { fmt.Fprint(state, m.String()) }

// MarshalJSON omits the secrets, so that they do not appear in logs.
func (m Material) MarshalJSON() ([]byte, error) { return json.Marshal(m.String()) }
