package registration

import (
	"encoding/json"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// A Method is the agent's side of one type of credential: csr.Method, token.Method or identity.Method. A first
// credential and every renewal go the same way: Request, store private, send, wait, Open. A Method keeps no
// state and does no I/O, and may be used concurrently.
type Method interface {
	// Type of the credentials that it gets.
	Type() v1alpha1.CredentialType

	// Request returns a new request, and what the agent has to keep until it has opened the answer, also
	// over a restart: private, a secret, which may be empty. A lifetime of nil leaves it to the hub; see
	// v1alpha1.CredentialRequest for its bounds.
	Request(claim *ClaimKey, expirationSeconds *int32) (request v1alpha1.CredentialRequest, private []byte, err error)

	// Open checks that a credential is the answer to the request that private came with, and makes it usable. It
	// looks at no clock: the hub's API server is the judge of what has expired. An error is final for this
	// request; another one has to be made.
	Open(claim *ClaimKey, private []byte, credential v1alpha1.Credential) (Material, error)
}

// Material is what an agent authenticates to the hub with: a certificate, or a token, or, when it is zero, a
// credential that the agent had before. It is never printed.
type Material struct {
	// Certificate is a PEM-encoded client certificate whose private key is the claim key.
	Certificate []byte
	// Token is a bearer token.
	Token string
}

// Config returns a config that speaks to hub with the material and with nothing else that hub authenticates by,
// or, for zero material, a copy of hub.
func (m Material) Config(hub *rest.Config, claim *ClaimKey) (*rest.Config, error) {
	if m.Token == "" && len(m.Certificate) == 0 {
		return rest.CopyConfig(hub), nil
	}
	config := rest.AnonymousClientConfig(hub)
	config.BearerToken = m.Token
	if len(m.Certificate) > 0 {
		key, err := claim.Marshal()
		if err != nil {
			return nil, err
		}
		config.CertData, config.KeyData = m.Certificate, key
	}
	return config, nil
}

// String keeps the token out of logs: some loggers look for nothing but this.
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

// Format keeps the token out of everything that is printed, by whatever verb.
func (m Material) Format(state fmt.State, _ rune) { fmt.Fprint(state, m.String()) }

// MarshalJSON keeps the token out of logs.
func (m Material) MarshalJSON() ([]byte, error) { return json.Marshal(m.String()) }
