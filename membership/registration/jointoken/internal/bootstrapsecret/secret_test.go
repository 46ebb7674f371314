package bootstrapsecret

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstraptokens "k8s.io/cluster-bootstrap/token/util"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func joinToken() *v1alpha1.JoinToken {
	return &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "bootstrap-token-abc123",
		UID: "me"}}
}

// newSecret returns the Secret that is created for joinToken.
func newSecret(change func(*corev1.Secret)) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metaOf(joinToken()),
		Data: fill(joinToken(), "0123456789abcdef", now.Add(time.Hour))}
	change(secret)
	return secret
}

func TestOwnerOf(t *testing.T) {
	for _, test := range []struct {
		reason string
		secret *corev1.Secret
		want   Owner
	}{
		{"no Secret", nil, NoOwner},
		{"the Secret of this JoinToken", newSecret(func(*corev1.Secret) {}), Ours},
		{"the Secret of a deleted JoinToken of the same name", newSecret(func(s *corev1.Secret) {
			s.Annotations[uidAnnotation] = "another"
		}), Predecessor},
		{"the Secret of a JoinToken in another namespace", newSecret(func(s *corev1.Secret) {
			s.Annotations[namespaceAnnotation] = "another"
		}), Other},
		{"a Secret without labels and annotations", newSecret(func(s *corev1.Secret) {
			s.Labels, s.Annotations = nil, nil
		}), Administrator},
		{"a Secret with the label and without annotations", newSecret(func(s *corev1.Secret) { s.Annotations = nil }), Other},
	} {
		require.Equal(t, test.want, OwnerOf(test.secret, joinToken()), test.reason)
	}
}

func TestProblem(t *testing.T) {
	set := func(key, value string) *corev1.Secret {
		return newSecret(func(s *corev1.Secret) { s.Data[key] = []byte(value) })
	}
	for _, test := range []struct {
		reason string
		secret *corev1.Secret
		want   string
	}{
		{"a usable token", newSecret(func(*corev1.Secret) {}), ""},
		{"no expiration", newSecret(func(s *corev1.Secret) { delete(s.Data, "expiration") }), ""},
		{"an expired token", set("expiration", "2026-01-01T00:00:00Z"), "expired at 2026-01-01T00:00:00Z"},
		{"an invalid expiration", set("expiration", "hush"),
			"an expiration that is not a time"},
		{"an expiration in another time zone", set("expiration", "2025-12-31T19:00:01-05:00"), ""},
		{"missing usage for authentication", set("usage-bootstrap-authentication", "false"),
			"lacks the usage usage-bootstrap-authentication"},
		{"missing usage for signing", set("usage-bootstrap-signing", "TRUE"), "lacks the usage usage-bootstrap-signing"},
		{"a token ID that differs from the name", set("token-id", "zzzzzz"), `a token-id other than "abc123"`},
		{"an invalid token secret", set("token-secret", "hush"), "a token-secret that is not sixteen"},
		{"no data", newSecret(func(s *corev1.Secret) { s.Data = nil }), `a token-id other than "abc123"`},
	} {
		got := Problem(test.secret, Administrator, now)
		if test.want == "" {
			require.Empty(t, got, test.reason)
			continue
		}
		require.Contains(t, got, test.want, test.reason)
		require.True(t,
			strings.HasPrefix(got, "Secret kube-system/bootstrap-token-abc123, which muster does not manage, "), got)
		require.NotContains(t, got, "hush", test.reason)
	}
	require.Contains(t, Problem(newSecret(func(*corev1.Secret) {}), Other, now),
		`a JoinToken in namespace "fleet": use another ID`)
}

func TestWhole(t *testing.T) {
	require.True(t, Whole(newSecret(func(*corev1.Secret) {}), joinToken()))
	for key := range newSecret(func(*corev1.Secret) {}).Data {
		require.False(t, Whole(newSecret(func(s *corev1.Secret) {
			delete(s.Data, key)
		}), joinToken()), "without %s, the Secret is not complete", key)
	}
	require.False(t, Whole(newSecret(func(s *corev1.Secret) { s.Data["more"] = []byte("x") }), joinToken()))
}

// TestStore_RandomTokensAreValid checks that the API server accepts all random tokens.
func TestStore_RandomTokensAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "random")
		text, err := (&Store{Random: bytes.NewReader(random)}).random()
		require.NoError(t, err)
		require.True(t, bootstraptokens.IsValidBootstrapToken("abc123."+text), text)
	})
	_, err := (&Store{Random: bytes.NewReader(nil)}).random()
	require.Error(t, err, "want an error without random data")
}
