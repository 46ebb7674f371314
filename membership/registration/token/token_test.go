package token

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

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

func TestMethod_Open(t *testing.T) {
	claim := newClaim(t)
	request, private, err := Method{}.Request(claim, nil)
	require.NoError(t, err)
	other, otherPrivate, err := Method{}.Request(claim, nil)
	require.NoError(t, err)
	require.NotEqual(t, request.PublicKey, other.PublicKey, "each request has another key")

	sealTo := func(publicKey []byte, claim *registration.ClaimKey, token string) []byte {
		sealed, err := seal(publicKey, claim.Fingerprint(), token)
		require.NoError(t, err)
		return sealed
	}
	sealed := sealTo(request.PublicKey, claim, "hush.hush.hush")
	require.NotContains(t, string(sealed), "hush")
	flipped := func(n int) []byte {
		tampered := bytes.Clone(sealed)
		tampered[n] ^= 1
		return tampered
	}
	for _, test := range []struct {
		reason  string
		private []byte
		sealed  []byte
		opens   bool
	}{
		{"the private key of the request", private, sealed, true},
		{"the private key of another request", otherPrivate, sealed, false},
		{"no private key", nil, sealed, false},
		{"a token sealed for another claim", private,
			sealTo(request.PublicKey, newClaim(t), "hush"), false},
		{"a changed encapsulated key", private, flipped(0), false},
		{"a changed token", private, flipped(40), false},
		{"a changed tag", private, flipped(len(sealed) - 1), false},
		{"a truncated token", private, sealed[:len(sealed)/2], false},
		{"no sealed token", private, nil, false},
		{"an empty token", private, sealTo(request.PublicKey, claim, ""), false},
		{"a token with a line break", private, sealTo(request.PublicKey, claim, "a\nb"), false},
	} {
		got, err := Method{}.Open(claim, test.private,
			v1alpha1.Credential{Type: v1alpha1.CredentialToken, SealedToken: test.sealed})
		if test.opens {
			require.NoError(t, err, test.reason)
			require.Equal(t, "hush.hush.hush", got.Token, test.reason)
			continue
		}
		require.Error(t, err, test.reason)
		require.Empty(t, got.Token, test.reason)
		require.NotContains(t, err.Error(), "hush", test.reason)
	}
	_, err = Method{}.Open(claim, private, v1alpha1.Credential{Type: v1alpha1.CredentialCertificate, SealedToken: sealed})
	require.ErrorContains(t, err, "type")
}

func TestIssuer_SubjectAndInvalidRequests(t *testing.T) {
	claim := newClaim(t)
	member := membership.Member{Name: "east", Namespace: "member-east", Claim: claim.Fingerprint()}
	request, _, err := Method{}.Request(claim, nil)
	require.NoError(t, err)
	subject, err := new(Issuer).Subject(member)
	require.NoError(t, err)
	require.Equal(t, rbacv1.Subject{Kind: "ServiceAccount", Name: "muster-agent", Namespace: "member-east"}, subject)

	for _, test := range []struct {
		reason string
		change func(*v1alpha1.CredentialRequest)
		field  string
	}{
		{"a request for a certificate",
			func(r *v1alpha1.CredentialRequest) { r.Type = v1alpha1.CredentialCertificate }, "type"},
		{"no public key", func(r *v1alpha1.CredentialRequest) { r.PublicKey = nil },
			"publicKey"},
		{"a public key of 31 bytes", func(r *v1alpha1.CredentialRequest) { r.PublicKey = r.PublicKey[1:] }, "publicKey"},
		{"a public key of low order",
			func(r *v1alpha1.CredentialRequest) { r.PublicKey = make([]byte, 32) }, "publicKey"},
	} {
		changed := *request.DeepCopy()
		test.change(&changed)
		_, err := new(Issuer).Issue(t.Context(), member, changed)
		invalid := new(membership.InvalidError)
		require.ErrorAs(t, err, &invalid, test.reason)
		require.Equal(t, test.field, invalid.Field, test.reason)
	}
}

func TestIssuer_Lifetime(t *testing.T) {
	for _, test := range []struct {
		reason    string
		issuer    time.Duration
		requested *int32
		want      int64
	}{
		{"the default of one week", 0, nil, 604800},
		{"the lifetime of the issuer", time.Hour, nil, 3600},
		{"a shorter requested lifetime", time.Hour, ptr.To[int32](1200), 1200},
		{"a longer requested lifetime is capped", time.Hour, ptr.To[int32](7200), 3600},
		{"the minimum of ten minutes", time.Minute, nil, 600},
	} {
		issuer := Issuer{Lifetime: test.issuer}
		require.Equal(t, test.want, issuer.seconds(v1alpha1.CredentialRequest{ExpirationSeconds: test.requested}),
			test.reason)
	}
}

func FuzzOpen(f *testing.F) {
	claim := newClaim(f)
	request, private, err := Method{}.Request(claim, nil)
	require.NoError(f, err)
	sealed, err := seal(request.PublicKey, claim.Fingerprint(), "hush")
	require.NoError(f, err)
	f.Add(private, sealed[1:])
	f.Add([]byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, private, sealed []byte) {
		if _, err := (Method{}).Open(claim, private,
			v1alpha1.Credential{Type: v1alpha1.CredentialToken, SealedToken: sealed}); err == nil {
			t.Error("a forged sealed token was opened")
		}
	})
}
