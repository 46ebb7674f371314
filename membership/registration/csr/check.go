package csr

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
)

// User returns the user name in a certificate for the claim key with this fingerprint.
func User(fingerprint string) string { return userPrefix + fingerprint }

const userPrefix = "muster:member:"

var commonName = asn1.ObjectIdentifier{2, 5, 4, 3}

// check rejects every request except one that [Method] creates for a user: a plain PKCS#10 request whose subject
// contains only the user. Kubernetes interprets each organization as a group. It returns the fingerprint of the key.
func check(request []byte, user string) (key string, err error) {
	parsed, err := parse(request, user)
	if err != nil {
		return "", err
	}
	public, ok := parsed.PublicKey.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() {
		return "", &membership.InvalidError{Field: "certificateRequest", Problem: "must be for an ECDSA key on P-256"}
	}
	return fingerprint(public), nil
}

func parse(request []byte, user string) (*x509.CertificateRequest, error) {
	invalid := func(problem string) (*x509.CertificateRequest, error) {
		return nil, &membership.InvalidError{Field: "certificateRequest", Problem: problem}
	}
	block, rest := pem.Decode(request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(block.Headers) > 0 ||
		!bytes.HasPrefix(request, []byte("-----BEGIN")) || len(bytes.TrimSpace(rest)) > 0 {
		return invalid("must be one PEM block of type CERTIFICATE REQUEST and nothing else")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return invalid("is not a PKCS#10 request")
	}
	if err := parsed.CheckSignature(); err != nil {
		return invalid("is not signed by its own key")
	}
	if len(parsed.Subject.Organization) > 0 {
		return invalid("requests organizations, which would be groups: a member has none")
	}
	if names := parsed.Subject.Names; len(names) != 1 || !names[0].Type.Equal(commonName) || names[0].Value != user {
		return invalid(fmt.Sprintf("must have the subject common name %q and nothing else", user))
	}
	if len(parsed.Extensions) > 0 {
		return invalid("requests subject alternative names or other extensions: a member's certificate has none")
	}
	if hasAttributes(parsed.RawTBSCertificateRequest) {
		return invalid("has attributes: a member's request has none")
	}
	return parsed, nil
}

// hasAttributes reports whether a request has attributes, such as a challenge password, which package x509 ignores.
func hasAttributes(tbs []byte) bool {
	var parsed struct {
		Version            int
		Subject, PublicKey asn1.RawValue
		Attributes         []asn1.RawValue `asn1:"tag:0,set,optional"`
	}
	rest, err := asn1.Unmarshal(tbs, &parsed)
	return err != nil || len(rest) > 0 || len(parsed.Attributes) > 0
}

// checkCertificate checks that a certificate is for a user and the key with a fingerprint, regardless of its signer,
// and returns it.
func checkCertificate(certificate []byte, key, user string) (*x509.Certificate, error) {
	block, _ := pem.Decode(certificate) // The following blocks are the signer's chain.
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("the signer's answer is not a PEM-encoded certificate")
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse the certificate: %w", err)
	}
	if got := fingerprint(parsed.PublicKey); got != key {
		return nil, fmt.Errorf("the certificate is for key %q, not for the requested key, %q", got, key)
	}
	if got := parsed.Subject.CommonName; got != user {
		return nil, fmt.Errorf("the certificate is for user %q, not for %q", got, user)
	}
	return parsed, nil
}

func fingerprint(key crypto.PublicKey) string {
	public, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return ""
	}
	return registration.Fingerprint(public)
}
