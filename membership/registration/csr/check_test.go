package csr

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func newClaim(t testing.TB) *registration.ClaimKey {
	t.Helper()
	claim, err := registration.NewClaimKey()
	require.NoError(t, err)
	return claim
}

// request returns a certificate request from a template, like that of another client.
func request(t testing.TB, key crypto.Signer, template x509.CertificateRequest) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func certificateRequest(user string) x509.CertificateRequest {
	return x509.CertificateRequest{Subject: pkix.Name{CommonName: user}}
}

// invalidRequests returns requests of a malicious member. All except the first try to impersonate another user.
func invalidRequests(t testing.TB, claim *registration.ClaimKey) map[string][]byte {
	user := User(claim.Fingerprint())
	named := func(subject pkix.Name) x509.CertificateRequest { return x509.CertificateRequest{Subject: subject} }
	own := func(template x509.CertificateRequest) []byte { return request(t, claim.Signer(), template) }
	plain := own(named(pkix.Name{CommonName: user}))
	block, _ := pem.Decode(plain)
	tampered := append([]byte(nil), block.Bytes...)
	tampered[len(tampered)-1] ^= 1
	_, foreign, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	//nolint:staticcheck // The issuer must reject attributes.
	attributes := x509.CertificateRequest{Subject: pkix.Name{CommonName: user},
		Attributes: []pkix.AttributeTypeAndValueSET{{
			Type:  asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7},
			Value: [][]pkix.AttributeTypeAndValue{{{Type: asn1.ObjectIdentifier{1, 2, 3}, Value: "password"}}},
		}}}
	return map[string][]byte{
		"no request":                   nil,
		"the group system:masters":     own(named(pkix.Name{CommonName: user, Organization: []string{"system:masters"}})),
		"another group":                own(named(pkix.Name{CommonName: user, Organization: []string{"muster:members"}})),
		"an empty group":               own(named(pkix.Name{CommonName: user, Organization: []string{""}})),
		"another part of a name":       own(named(pkix.Name{CommonName: user, OrganizationalUnit: []string{"x"}})),
		"the name of an administrator": own(named(pkix.Name{CommonName: "kubernetes-admin"})),
		"no name":                      own(named(pkix.Name{})),
		"another member's name":        own(named(pkix.Name{CommonName: User(newClaim(t).Fingerprint())})),
		"a name with a suffix":         own(named(pkix.Name{CommonName: user + "-b"})),
		"a truncated name":             own(named(pkix.Name{CommonName: user[:len(user)-1]})),
		"two names": own(named(pkix.Name{CommonName: user, ExtraNames: []pkix.AttributeTypeAndValue{
			{Type: commonName, Value: user}, {Type: commonName, Value: "kubernetes-admin"}}})),
		"a DNS name": own(x509.CertificateRequest{Subject: pkix.Name{CommonName: user},
			DNSNames: []string{"hub.example.com"}}),
		"an address": own(x509.CertificateRequest{Subject: pkix.Name{CommonName: user},
			IPAddresses: []net.IP{{127, 0, 0, 1}}}),
		"a mail address": own(x509.CertificateRequest{Subject: pkix.Name{CommonName: user},
			EmailAddresses: []string{"a@example.com"}}),
		"a URI": own(x509.CertificateRequest{Subject: pkix.Name{CommonName: user},
			URIs: []*url.URL{{Scheme: "spiffe", Host: "x"}}}),
		"an extension": own(x509.CertificateRequest{Subject: pkix.Name{CommonName: user},
			ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 0}}}}),
		"an attribute":            own(attributes),
		"another kind of key":     request(t, foreign, named(pkix.Name{CommonName: user})),
		"a broken signature":      pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: tampered}),
		"two requests":            append(append([]byte(nil), plain...), plain...),
		"data before the request": append([]byte("hello\n"), plain...),
		"data after the request":  append(append([]byte(nil), plain...), "hello\n"...),
		"headers": pem.EncodeToMemory(&pem.Block{Type: block.Type, Headers: map[string]string{"a": "b"},
			Bytes: block.Bytes}),
		"another kind of block": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}),
		"data after the request in the block": pem.EncodeToMemory(&pem.Block{Type: block.Type,
			Bytes: append(append([]byte(nil), block.Bytes...), 0)}),
		"a request without PEM":    block.Bytes,
		"PEM with invalid content": pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: []byte("hello")}),
	}
}

func TestIssue_InvalidRequests(t *testing.T) {
	claim := newClaim(t)
	member := membership.Member{Name: "east", Claim: claim.Fingerprint()}
	for reason, data := range invalidRequests(t, claim) {
		_, err := new(Issuer).Issue(t.Context(), member,
			v1alpha1.CredentialRequest{Type: v1alpha1.CredentialCertificate, CertificateRequest: data})
		invalid := new(membership.InvalidError)
		require.ErrorAsf(t, err, &invalid, "%s: %v", reason, err)
		require.Equal(t, "certificateRequest", invalid.Field, reason)
	}
	_, err := new(Issuer).Issue(t.Context(), member, v1alpha1.CredentialRequest{Type: v1alpha1.CredentialToken})
	require.ErrorContains(t, err, "type:")
}

func TestCheck_Errors(t *testing.T) {
	claim := newClaim(t)
	requests := invalidRequests(t, claim)
	for reason, want := range map[string]string{
		"the group system:masters": "a member has none",
		"a DNS name":               "subject alternative names",
		"an attribute":             "attributes",
		"a name with a suffix":     User(claim.Fingerprint()),
		"another kind of key":      "P-256",
		"a broken signature":       "not signed by its own key",
		"two requests":             "one PEM block",
		"PEM with invalid content": "not a PKCS#10 request",
	} {
		_, err := check(requests[reason], User(claim.Fingerprint()))
		require.ErrorContains(t, err, want, reason)
	}
}

func TestRequest_SubjectIsUserOfClaim(t *testing.T) {
	claim := newClaim(t)
	asked, private, err := Method{}.Request(claim, nil)
	require.NoError(t, err)
	key, err := check(asked.CertificateRequest, User(claim.Fingerprint()))
	require.NoError(t, err)
	_, err = check(asked.CertificateRequest, User(newClaim(t).Fingerprint()))
	require.Error(t, err, "the request is for another claim")

	certificateKey, err := registration.ParseClaimKey(private)
	require.NoError(t, err)
	require.Equal(t, certificateKey.Fingerprint(), key, "the private data is the key of the certificate")
	require.NotEqual(t, claim.Fingerprint(), key, "the key of the certificate is not the claim key")
	next, _, err := Method{}.Request(claim, nil)
	require.NoError(t, err)
	nextKey, err := check(next.CertificateRequest, User(claim.Fingerprint()))
	require.NoError(t, err)
	require.NotEqual(t, key, nextKey, "each certificate has another key")

	own := Method{Key: newClaim(t)}
	first, private, err := own.Request(claim, nil)
	require.NoError(t, err)
	require.Empty(t, private)
	second, _, err := own.Request(claim, nil)
	require.NoError(t, err)
	require.Equal(t, first, second)
	key, err = check(first.CertificateRequest, User(claim.Fingerprint()))
	require.NoError(t, err)
	require.Equal(t, own.Key.Fingerprint(), key)

	subject, err := new(Issuer).Subject(membership.Member{Name: "east", Claim: claim.Fingerprint()})
	require.NoError(t, err)
	require.Equal(t, "User", subject.Kind)
	require.Equal(t, "muster:member:"+claim.Fingerprint(), subject.Name)
}

func certificate(t testing.TB, key crypto.Signer, user string) []byte {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: user}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestMethod_Open(t *testing.T) {
	claim := newClaim(t)
	user := User(claim.Fingerprint())
	key := newClaim(t)
	private, err := key.Marshal()
	require.NoError(t, err)
	good := certificate(t, key.Signer(), user)
	for _, test := range []struct {
		reason string
		answer v1alpha1.Credential
		want   string // of the error
	}{
		{"the requested certificate", v1alpha1.Credential{Type: v1alpha1.CredentialCertificate, Certificate: good},
			""},
		{"another type of credential", v1alpha1.Credential{Type: v1alpha1.CredentialToken, Certificate: good},
			"type"},
		{"a certificate for another key", v1alpha1.Credential{Type: v1alpha1.CredentialCertificate,
			Certificate: certificate(t, newClaim(t).Signer(), user)}, "not for the requested key"},
		{"a certificate for another user", v1alpha1.Credential{Type: v1alpha1.CredentialCertificate,
			Certificate: certificate(t, key.Signer(), user+"-b")}, "not for"},
		{"no certificate", v1alpha1.Credential{Type: v1alpha1.CredentialCertificate}, "PEM"},
		{"a private key instead of a certificate", v1alpha1.Credential{Type: v1alpha1.CredentialCertificate,
			Certificate: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY"})}, "PEM"},
	} {
		got, err := Method{}.Open(claim, private, test.answer)
		if test.want == "" {
			require.NoError(t, err, test.reason)
			require.Equal(t, registration.Material{Certificate: good, Key: private}, got, test.reason)
			continue
		}
		require.ErrorContains(t, err, test.want, test.reason)
		require.Zero(t, got, test.reason)
	}

	// A request of an earlier version uses the claim key. A request with Method.Key uses that key.
	for _, test := range []struct {
		method Method
		key    *registration.ClaimKey
	}{{Method{}, claim}, {Method{Key: key}, key}} {
		answer := v1alpha1.Credential{Type: v1alpha1.CredentialCertificate,
			Certificate: certificate(t, test.key.Signer(), user)}
		got, err := test.method.Open(claim, nil, answer)
		require.NoError(t, err)
		require.Equal(t, registration.Material{Certificate: answer.Certificate}, got)
	}
	_, err = Method{}.Open(claim, []byte("key"), v1alpha1.Credential{Type: v1alpha1.CredentialCertificate,
		Certificate: good})
	require.ErrorContains(t, err, "PEM block")
}

func FuzzCheck(f *testing.F) {
	claim := newClaim(f)
	for _, data := range invalidRequests(f, claim) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := check(data, User(claim.Fingerprint())); err == nil {
			t.Error("check accepts a request that is not signed with a key of the user")
		}
	})
}
