package registration

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func testRenewal() v1alpha1.Renewal {
	return v1alpha1.Renewal{
		ID: "id", Request: testSpec().Credential, ClaimKey: []byte("claim"), Signature: []byte("signature"),
		Keys: testSpec().Keys,
	}
}

func TestVerifyRenewal(t *testing.T) {
	claim, other := newClaim(t), newClaim(t)
	member := membership.Member{Name: "east", UID: "uid", Claim: claim.Fingerprint()}
	for _, test := range []struct {
		reason string
		change func(*v1alpha1.Renewal, *membership.Member)
		field  string // empty: passes
	}{
		{"an unchanged renewal", func(*v1alpha1.Renewal, *membership.Member) {}, ""},
		{"no signature",
			func(r *v1alpha1.Renewal, _ *membership.Member) { r.Signature = nil }, "signature"},
		{"another ID", func(r *v1alpha1.Renewal, _ *membership.Member) { r.ID = "next" }, "signature"},
		{"another public key", func(r *v1alpha1.Renewal, _ *membership.Member) {
			r.Request.PublicKey = []byte("another")
		}, "signature"},
		{"another certificate request", func(r *v1alpha1.Renewal, _ *membership.Member) {
			r.Request.CertificateRequest = []byte("another")
		}, "signature"},
		{"a longer lifetime", func(r *v1alpha1.Renewal, _ *membership.Member) {
			r.Request.ExpirationSeconds = ptr.To[int32](31536000)
		}, "signature"},
		{"another type of credential",
			func(r *v1alpha1.Renewal, _ *membership.Member) { r.Request.Type = v1alpha1.CredentialIdentity },
			"signature"},
		{"another member UID",
			func(_ *v1alpha1.Renewal, m *membership.Member) { m.UID = "next" }, "signature"},
		{"signed with another claim key", func(r *v1alpha1.Renewal, m *membership.Member) {
			require.NoError(t, SignRenewal(r, m.UID, other))
		}, "claimKey"},
		{"the member has the claim of another agent",
			func(_ *v1alpha1.Renewal, m *membership.Member) { m.Claim = other.Fingerprint() }, "claimKey"},
		{"a member without a claim",
			func(_ *v1alpha1.Renewal, m *membership.Member) { m.Claim = "" }, "claimKey"},
		{"no claim key", func(r *v1alpha1.Renewal, _ *membership.Member) { r.ClaimKey = nil }, "claimKey"},
		{"a claim key with another encoding",
			func(r *v1alpha1.Renewal, _ *membership.Member) { r.ClaimKey = append(r.ClaimKey, 0) },
			"claimKey"},
		{"the signature of a JoinRequest", func(r *v1alpha1.Renewal, _ *membership.Member) {
			join := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{Credential: r.Request}}
			require.NoError(t, Sign(join, claim, nil))
			r.Signature = join.Spec.Signature
		}, "signature"},
	} {
		renewal, m := testRenewal(), member
		require.NoError(t, SignRenewal(&renewal, m.UID, claim))
		test.change(&renewal, &m)
		require.Equal(t, test.field, fieldOf(VerifyRenewal(&renewal, m)), test.reason)
	}
}

func TestSignRenewal_Repeatable(t *testing.T) {
	claim := newClaim(t)
	first, second := testRenewal(), testRenewal()
	require.NoError(t, SignRenewal(&first, "uid", claim))
	require.NoError(t, SignRenewal(&second, "uid", claim))
	require.Equal(t, first, second)
}

// TestSignRenewal_CoversEveryField checks that the signature covers each field of the API. Otherwise a client with a
// stolen credential could change a field.
func TestSignRenewal_CoversEveryField(t *testing.T) {
	before := canonicalRenewal("uid", new(testRenewal()))
	for _, path := range leaves(reflect.TypeFor[v1alpha1.Renewal](), nil) {
		renewal := testRenewal()
		name, field := "renewal", reflect.ValueOf(&renewal).Elem()
		for _, n := range path {
			name += "." + field.Type().Field(n).Name
			field = reflect.Indirect(field.Field(n))
		}
		require.Truef(t, field.IsValid() && !field.IsZero(), "testRenewal does not set %s", name)
		field.SetZero()
		changed := string(canonicalRenewal("uid", &renewal)) != string(before)
		unsigned := name == "renewal.Signature" || name == "renewal.Keys" // see TestKeys
		require.Equalf(t, !unsigned, changed,
			"whether a change of %s changes the encoding: add the field to canonicalRenewal with a new version", name)
	}
}

// TestCanonicalRenewalIsFixed checks the exact bytes, because agents and hubs of all versions must use the same
// encoding.
func TestCanonicalRenewalIsFixed(t *testing.T) {
	sum := sha256.Sum256(canonicalRenewal("uid", new(testRenewal())))
	require.Equal(t, "33f1fc208f6950f759b5cc2f6207e20787d6d426d352cb8be5b115f28717566d", hex.EncodeToString(sum[:]))
}

func TestCanonicalRenewalIsInjective(t *testing.T) {
	text := rapid.StringOfN(rapid.Just('a'), 0, 2, -1)
	type signed struct {
		Member  types.UID
		Renewal v1alpha1.Renewal
	}
	draw := func(t *rapid.T, label string) signed {
		field := func(name string) string { return text.Draw(t, label+name) }
		return signed{types.UID(field("uid")), v1alpha1.Renewal{
			ID: field("id"), ClaimKey: []byte(field("claim")), Request: v1alpha1.CredentialRequest{
				Type: v1alpha1.CredentialType(field("type")), CertificateRequest: []byte(field("csr")),
				PublicKey:         []byte(field("key")),
				ExpirationSeconds: rapid.Ptr(rapid.Int32(), true).Draw(t, label+"expiration"),
			},
		}}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := draw(t, "a ")
		b, other := a, draw(t, "b ")
		// Copy up to two fields of the other renewal.
		for range 2 {
			rapid.SampledFrom([]func(){
				func() { b.Member = other.Member },
				func() { b.Renewal.ID = other.Renewal.ID },
				func() { b.Renewal.ClaimKey = other.Renewal.ClaimKey },
				func() { b.Renewal.Request = other.Renewal.Request },
			}).Draw(t, "field")()
		}
		same := cmp.Equal(a, b, cmpopts.EquateEmpty())
		if got := string(canonicalRenewal(a.Member, &a.Renewal)) == string(canonicalRenewal(b.Member,
			&b.Renewal)); got != same {
			t.Fatalf("same encoding: %v, same renewal: %v\n%s", got, same, cmp.Diff(a, b))
		}
	})
}

func FuzzVerifyRenewal(f *testing.F) {
	claim, err := ParseClaimKey([]byte(fixedKey))
	require.NoError(f, err)
	renewal := testRenewal()
	require.NoError(f, SignRenewal(&renewal, "uid", claim))
	member := membership.Member{Name: "east", UID: "uid", Claim: claim.Fingerprint()}
	f.Add(renewal.ID, renewal.ClaimKey, renewal.Signature, renewal.Request.PublicKey, "uid")
	f.Add("", []byte(nil), []byte(nil), []byte(nil), "")
	f.Fuzz(func(t *testing.T, id string, claim, signature, key []byte, uid string) {
		forged, of := renewal, member
		forged.ID, forged.ClaimKey, forged.Signature, forged.Request.PublicKey, of.UID = id, claim, signature, key,
			types.UID(uid)
		same := id == renewal.ID && string(claim) == string(renewal.ClaimKey) &&
			string(key) == string(renewal.Request.PublicKey) && uid == "uid"
		if VerifyRenewal(&forged, of) == nil && !same {
			t.Error("a forged renewal verifies")
		}
	})
}
