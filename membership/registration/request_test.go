package registration

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func testSpec() v1alpha1.JoinRequestSpec {
	return v1alpha1.JoinRequestSpec{
		ClusterID: "east-id",
		Name:      "east",
		Labels:    map[string]string{"example.com/region": "east", "tier": "gold"},
		MemberUID: "uid",
		HubID:     "hub",
		Token:     &v1alpha1.TokenProof{Name: "token", MAC: []byte("mac")},
		ClaimKey:  []byte("claim"),
		Credential: v1alpha1.CredentialRequest{
			Type: v1alpha1.CredentialToken, CertificateRequest: []byte("csr"), PublicKey: []byte("x25519"),
			ExpirationSeconds: ptr.To[int32](600),
		},
		Signature: []byte("signature"),
		Keys:      []v1alpha1.KeyProof{{Key: []byte("later"), Signature: []byte("later signature")}},
	}
}

func signed(t testing.TB) (*v1alpha1.JoinRequest, *ClaimKey) {
	t.Helper()
	claim := newClaim(t)
	request := &v1alpha1.JoinRequest{Spec: testSpec()}
	require.NoError(t, Sign(request, claim, testBootstrap(t)))
	return request, claim
}

// TestSign_CoversEveryField checks that the signature covers each field of the API. Otherwise the first reader of a
// request could change a field.
func TestSign_CoversEveryField(t *testing.T) {
	before := canonical(new(testSpec()))
	// Later keys have their own signatures, see TestKeys.
	unsigned := map[string]bool{"spec.Token.MAC": true, "spec.Signature": true, "spec.Keys": true}
	for _, path := range leaves(reflect.TypeFor[v1alpha1.JoinRequestSpec](), nil) {
		spec := testSpec()
		name, field := "spec", reflect.ValueOf(&spec).Elem()
		for _, n := range path {
			name += "." + field.Type().Field(n).Name
			field = reflect.Indirect(field.Field(n))
		}
		require.Truef(t, field.IsValid() && !field.IsZero(), "testSpec does not set %s", name)
		field.SetZero()
		changed := string(canonical(&spec)) != string(before)
		require.Equalf(t, !unsigned[name], changed,
			"whether a change of %s changes the encoding: add the field to canonical with a new version",
			name)
	}
}

// leaves returns the index paths of all fields of a struct that are not structs themselves.
func leaves(structure reflect.Type, path []int) [][]int {
	var all [][]int
	for n := range structure.NumField() {
		here := append(slices.Clone(path), n)
		kind := structure.Field(n).Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if kind.Kind() == reflect.Struct {
			all = append(all, leaves(kind, here)...)
		} else {
			all = append(all, here)
		}
	}
	return all
}

// TestCanonicalEncodingIsFixed checks the exact bytes, because agents and hubs of all versions must use the same
// encoding.
func TestCanonicalEncodingIsFixed(t *testing.T) {
	spec := testSpec()
	// A request without the identity of a hub has the encoding of agents and hubs without that field.
	spec.HubID = ""
	sum := sha256.Sum256(canonical(&spec))
	require.Equal(t, "cc083f24232e25e7aeae73b3b318f632208acfd07bf5d3cf21509e6815f8d2db", hex.EncodeToString(sum[:]))
}

func TestCanonicalEncodingIsInjective(t *testing.T) {
	// With a single letter, moving letters to another field changes nothing in an encoding without lengths.
	text := rapid.StringOfN(rapid.Just('a'), 0, 2, -1)
	draw := func(t *rapid.T, label string) v1alpha1.JoinRequestSpec {
		field := func(name string) string { return text.Draw(t, label+name) }
		spec := v1alpha1.JoinRequestSpec{
			ClusterID: field("clusterID"), Name: field("name"), MemberUID: types.UID(field("uid")),
			ClaimKey: []byte(field("claim")),
			Labels:   rapid.MapOfN(text, text, 0, 2).Draw(t, label+"labels"),
			Credential: v1alpha1.CredentialRequest{
				Type: v1alpha1.CredentialType(field("type")), CertificateRequest: []byte(field("csr")),
				PublicKey:         []byte(field("key")),
				ExpirationSeconds: rapid.Ptr(rapid.Int32(), true).Draw(t, label+"expiration"),
			},
		}
		if rapid.Bool().Draw(t, label+"token") {
			spec.Token = &v1alpha1.TokenProof{Name: field("token")}
		}
		return spec
	}
	rapid.Check(t, func(t *rapid.T) {
		a := draw(t, "a ")
		b, other := a, draw(t, "b ")
		// Copy two fields of the other spec.
		for range 2 {
			n := rapid.IntRange(0, reflect.TypeOf(a).NumField()-1).Draw(t, "field")
			reflect.ValueOf(&b).Elem().Field(n).Set(reflect.ValueOf(other).Field(n))
		}
		same := cmp.Equal(a, b, cmpopts.EquateEmpty())
		if got := string(canonical(&a)) == string(canonical(&b)); got != same {
			t.Fatalf("same encoding: %v, same spec: %v\n%s", got, same, cmp.Diff(a, b))
		}
	})
}

func TestSign_Repeatable(t *testing.T) {
	request, claim := signed(t)
	again := &v1alpha1.JoinRequest{Spec: testSpec()}
	require.NoError(t, Sign(again, claim, testBootstrap(t)))
	require.Empty(t, cmp.Diff(request, again), "an agent that restarts without stored state must create the same request")
	require.Equal(t, requestName(claim.Fingerprint()), request.Name)
	require.Equal(t, "muster-registration", request.Namespace)

	own := &v1alpha1.JoinRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "own"}}
	require.NoError(t, Sign(own, claim, nil))
	require.NoError(t, Verify(own))
	require.Equal(t, "own", own.Namespace)
	require.Nil(t, own.Spec.Token, "no token without a bootstrap")
}

func TestVerify(t *testing.T) {
	other, _ := signed(t)
	resign := func(r *v1alpha1.JoinRequest) {
		claim := newClaim(t)
		require.NoError(t, Sign(r, claim, nil))
	}
	for _, test := range []struct {
		reason string
		change func(*v1alpha1.JoinRequest)
		field  string // empty: passes
	}{
		{"an unchanged request", func(*v1alpha1.JoinRequest) {}, ""},
		{"a changed status", func(r *v1alpha1.JoinRequest) { r.Status.Answer = v1alpha1.AnswerHeld },
			""},
		{"another cluster ID",
			func(r *v1alpha1.JoinRequest) { r.Spec.ClusterID = "west-id" }, "spec.signature"},
		{"another name", func(r *v1alpha1.JoinRequest) { r.Spec.Name = "west" }, "spec.signature"},
		{"another label value",
			func(r *v1alpha1.JoinRequest) { r.Spec.Labels["tier"] = "diamond" }, "spec.signature"},
		{"another public key",
			func(r *v1alpha1.JoinRequest) { r.Spec.Credential.PublicKey = []byte("mine") }, "spec.signature"},
		{"another token name", func(r *v1alpha1.JoinRequest) { r.Spec.Token.Name = "mightier" },
			"spec.signature"},
		{"no token", func(r *v1alpha1.JoinRequest) { r.Spec.Token = nil }, "spec.signature"},
		{"the signature of another claim key", func(r *v1alpha1.JoinRequest) { r.Spec.Signature = other.Spec.Signature },
			"spec.signature"},
		{"no signature", func(r *v1alpha1.JoinRequest) { r.Spec.Signature = nil }, "spec.signature"},
		{"another object name",
			func(r *v1alpha1.JoinRequest) { r.Name = "join-again" }, "metadata.name"},
		{"the object name of another claim's request", func(r *v1alpha1.JoinRequest) { r.Name = other.Name },
			"metadata.name"},
		{"no claim key", func(r *v1alpha1.JoinRequest) { r.Spec.ClaimKey = nil }, "spec.claimKey"},
		{"a claim key with another encoding", func(r *v1alpha1.JoinRequest) { r.Spec.ClaimKey = append(r.Spec.ClaimKey, 0) },
			"spec.claimKey"},
		{"a reserved label of muster", func(r *v1alpha1.JoinRequest) {
			r.Spec.Labels = map[string]string{"membership.muster.dev/join-token": "x", "zone": "z"}
			resign(r)
		}, `spec.labels["membership.muster.dev/join-token"]`},
		{"a reserved label of Kubernetes", func(r *v1alpha1.JoinRequest) {
			r.Spec.Labels = map[string]string{"a": "a", "topology.kubernetes.io/region": "east"}
			resign(r)
		}, `spec.labels["topology.kubernetes.io/region"]`},
		{"an invalid label value", func(r *v1alpha1.JoinRequest) {
			r.Spec.Labels = map[string]string{"zone": "a b"}
			resign(r)
		}, `spec.labels["zone"]`},
		{"an invalid label key", func(r *v1alpha1.JoinRequest) {
			r.Spec.Labels = map[string]string{"a b": "zone"}
			resign(r)
		}, `spec.labels["a b"]`},
	} {
		request, _ := signed(t)
		test.change(request)
		require.Equal(t, test.field, fieldOf(Verify(request)), test.reason)
	}
}

// TestCheckLabels_ShortErrors checks that an error about a label is short: it becomes part of the status of the
// request, and a key may be long.
func TestCheckLabels_ShortErrors(t *testing.T) {
	long := strings.Repeat("é", 40_000)
	for _, key := range []string{"kubernetes.io/" + long, "example.com/" + long, long + "/a", "a b" + long} {
		err := CheckLabels("spec.labels", map[string]string{key: long})
		require.Error(t, err)
		require.Less(t, len(err.Error()), 1024)
		require.True(t, utf8.ValidString(err.Error()))
	}
}

func TestParsePublic_OtherKeyTypes(t *testing.T) {
	for _, data := range []string{p384, ed25519Key} {
		_, err := parsePublic(publicOf(t, data))
		require.ErrorContains(t, err, "P-256")
	}
}

func TestVerifyToken(t *testing.T) {
	key := testBootstrap(t).Key
	for _, test := range []struct {
		reason string
		change func(*v1alpha1.JoinRequest)
		key    []byte
		field  string
	}{
		{"the key of the token", func(*v1alpha1.JoinRequest) {}, key, ""},
		{"the key of another token", func(*v1alpha1.JoinRequest) {}, make([]byte, keySize), "spec.token.mac"},
		{"no key", func(*v1alpha1.JoinRequest) {}, nil, "spec.token.mac"},
		{"another cluster ID", func(r *v1alpha1.JoinRequest) { r.Spec.ClusterID = "west-id" }, key, "spec.token.mac"},
		{"another token name", func(r *v1alpha1.JoinRequest) { r.Spec.Token.Name = "mightier" }, key, "spec.token.mac"},
		{"no key, and a MAC with an empty key", func(r *v1alpha1.JoinRequest) { r.Spec.Token.MAC = mac(&r.Spec, nil) }, nil,
			"spec.token.mac"},
		{"a truncated MAC", func(r *v1alpha1.JoinRequest) { r.Spec.Token.MAC = r.Spec.Token.MAC[:8] }, key,
			"spec.token.mac"},
		{"no token", func(r *v1alpha1.JoinRequest) { r.Spec.Token = nil }, key, "spec.token"},
	} {
		request, _ := signed(t)
		test.change(request)
		require.Equal(t, test.field, fieldOf(VerifyToken(request, test.key)), test.reason)
	}
}

func fieldOf(err error) string {
	if invalid := new(membership.InvalidError); errors.As(err, &invalid) {
		return invalid.Field
	}
	if err != nil {
		return "not an InvalidError: " + err.Error()
	}
	return ""
}

func FuzzVerify(f *testing.F) {
	claim, err := ParseClaimKey([]byte(fixedKey))
	require.NoError(f, err)
	request := &v1alpha1.JoinRequest{Spec: testSpec()}
	require.NoError(f, Sign(request, claim, testBootstrap(f)))
	key := testBootstrap(f).Key
	f.Add(request.Name, request.Spec.ClaimKey, request.Spec.Signature, request.Spec.Token.MAC, request.Spec.ClusterID)
	f.Add("", []byte(nil), []byte(nil), []byte(nil), "")
	f.Fuzz(func(t *testing.T, name string, claim, signature, mac []byte, id string) {
		spec := request.Spec
		spec.ClaimKey, spec.Signature, spec.ClusterID = claim, signature, id
		spec.Token = &v1alpha1.TokenProof{Name: spec.Token.Name, MAC: mac}
		forged := &v1alpha1.JoinRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
		same := name == request.Name && string(claim) == string(request.Spec.ClaimKey) && id == request.Spec.ClusterID
		if err := Verify(forged); err == nil && !same {
			t.Error("a forged request verifies")
		}
		if err := VerifyToken(forged, key); err == nil &&
			(string(claim) != string(request.Spec.ClaimKey) || id != request.Spec.ClusterID) {
			t.Error("a forged token proof verifies")
		}
	})
}
