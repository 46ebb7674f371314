package token

import (
	"errors"
	"fmt"
	"strings"

	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Method requests tokens for an agent.
type Method struct{}

var _ registration.Method = Method{}

// Type returns Token.
func (Method) Type() v1alpha1.CredentialType { return v1alpha1.CredentialToken }

// Request requests a token that is sealed for a new X25519 key. The private data is the private half of that key.
func (Method) Request(_ *registration.ClaimKey, expirationSeconds *int32) (v1alpha1.CredentialRequest, []byte, error) {
	key, err := kem.GenerateKey()
	if err != nil {
		return v1alpha1.CredentialRequest{}, nil, fmt.Errorf("generate a key to seal a token with: %w", err)
	}
	private, err := key.Bytes()
	if err != nil {
		return v1alpha1.CredentialRequest{}, nil, fmt.Errorf("encode the key to seal a token with: %w", err)
	}
	return v1alpha1.CredentialRequest{
		Type:              v1alpha1.CredentialToken,
		PublicKey:         key.PublicKey().Bytes(),
		ExpirationSeconds: expirationSeconds,
	}, private, nil
}

// Open unseals the token.
func (Method) Open(claim *registration.ClaimKey, private []byte, credential v1alpha1.Credential) (registration.Material,
	error) {
	if credential.Type != v1alpha1.CredentialToken {
		return registration.Material{},
			fmt.Errorf("open a sealed token: the hub issued a credential of type %q", credential.Type)
	}
	token, err := open(private, claim.Fingerprint(), credential.SealedToken)
	if err == nil && (token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })) {
		err = errors.New("the content is not a bearer token")
	}
	if err != nil {
		return registration.Material{}, fmt.Errorf("open a sealed token: %w", err)
	}
	return registration.Material{Token: token}, nil
}
