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

// Method requests certificates for an agent.
type Method struct {
	// Key is the key of each certificate. It is for clients that are not members and have a single key, such as agents of
	// add-ons: the same key always results in the same request. Unset: each request has a new key, which is the private
	// data.
	Key *registration.ClaimKey
	// UserPrefix must equal that of the hub's [Issuer]. Unset: the prefix of [User].
	UserPrefix string
}

var _ registration.Method = Method{}

// Type returns Certificate.
func (Method) Type() v1alpha1.CredentialType { return v1alpha1.CredentialCertificate }

// Request requests a certificate for the user of the claim. The private data is the key of the certificate, which
// differs from the claim key: it is used with every connection, so it is more exposed.
func (m Method) Request(claim *registration.ClaimKey, expirationSeconds *int32) (v1alpha1.CredentialRequest, []byte,
	error) {
	user, key := m.user(claim), m.Key
	var private []byte
	if key == nil {
		var err error
		if key, err = registration.NewClaimKey(); err != nil {
			return v1alpha1.CredentialRequest{}, nil, fmt.Errorf("generate a key for a certificate: %w", err)
		}
		if private, err = key.Marshal(); err != nil {
			return v1alpha1.CredentialRequest{}, nil, err
		}
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: user}}
	// Without randomness the signature is deterministic, see RFC 6979.
	der, err := x509.CreateCertificateRequest(nil, template, key.Signer())
	if err != nil {
		return v1alpha1.CredentialRequest{}, nil, fmt.Errorf("create a certificate request for %s: %w", user, err)
	}
	return v1alpha1.CredentialRequest{
		Type:               v1alpha1.CredentialCertificate,
		CertificateRequest: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		ExpirationSeconds:  expirationSeconds,
	}, private, nil
}

// Open checks that the certificate is for the requested key and the user of the claim. It does not check the signer,
// which the hub's API server does. Without private data the key is that of the Method or, if it has none, the claim
// key, as in requests of earlier versions.
func (m Method) Open(claim *registration.ClaimKey, private []byte,
	credential v1alpha1.Credential) (registration.Material, error) {
	if credential.Type != v1alpha1.CredentialCertificate {
		return registration.Material{},
			fmt.Errorf("open a certificate: the hub issued a credential of type %q", credential.Type)
	}
	key := cmp.Or(m.Key, claim)
	if len(private) > 0 {
		var err error
		if key, err = registration.ParseClaimKey(private); err != nil {
			return registration.Material{}, fmt.Errorf("open a certificate: %w", err)
		}
	}
	if _, err := checkCertificate(credential.Certificate, key.Fingerprint(), m.user(claim)); err != nil {
		return registration.Material{}, fmt.Errorf("open a certificate: %w", err)
	}
	return registration.Material{Certificate: credential.Certificate, Key: private}, nil
}

func (m Method) user(claim *registration.ClaimKey) string {
	return cmp.Or(m.UserPrefix, userPrefix) + claim.Fingerprint()
}
