package csr

import (
	"cmp"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"

	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Method requests certificates for an agent. The same claim key always results in the same request.
type Method struct {
	// UserPrefix must equal that of the hub's [Issuer]. Unset: the prefix of [User].
	UserPrefix string
}

var _ registration.Method = Method{}

// Type returns Certificate.
func (Method) Type() v1alpha1.CredentialType { return v1alpha1.CredentialCertificate }

// Request requests a certificate for the claim key. The agent keeps no private data besides that key.
func (m Method) Request(claim *registration.ClaimKey, expirationSeconds *int32) (v1alpha1.CredentialRequest, []byte,
	error) {
	user := m.user(claim)
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: user}}
	// Without randomness the signature is deterministic, see RFC 6979.
	der, err := x509.CreateCertificateRequest(nil, template, claim.Signer())
	if err != nil {
		return v1alpha1.CredentialRequest{}, nil, fmt.Errorf("make a certificate request for %s: %w", user, err)
	}
	return v1alpha1.CredentialRequest{
		Type:               v1alpha1.CredentialCertificate,
		CertificateRequest: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		ExpirationSeconds:  expirationSeconds,
	}, nil, nil
}

// Open checks that the certificate is for the claim key and its user. It does not check the signer, which is up to the
// hub's API server.
func (m Method) Open(claim *registration.ClaimKey, _ []byte, credential v1alpha1.Credential) (registration.Material,
	error) {
	if credential.Type != v1alpha1.CredentialCertificate {
		return registration.Material{},
			fmt.Errorf("open a certificate: the hub issued a credential of type %q", credential.Type)
	}
	if _, err := checkCertificate(credential.Certificate, claim.Fingerprint(), m.user(claim)); err != nil {
		return registration.Material{}, fmt.Errorf("open a certificate: %w", err)
	}
	return registration.Material{Certificate: credential.Certificate}, nil
}

func (m Method) user(claim *registration.ClaimKey) string {
	return cmp.Or(m.UserPrefix, userPrefix) + claim.Fingerprint()
}
