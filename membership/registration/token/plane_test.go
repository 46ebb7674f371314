package token

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/internal/regtest"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

var hub = localplane.Shared{Options: localplane.Options{Name: "token"}}

func TestMain(m *testing.M) { os.Exit(localplane.Run(m, &hub)) }

// userOf returns the user name that a hub assigns to the bearer of a token.
func userOf(t *testing.T, material registration.Material) (string, error) {
	config, err := material.Config(rest.AnonymousClientConfig(hub.ForTest(t).Config()), nil)
	require.NoError(t, err)
	review := &authenticationv1.SelfSubjectReview{}
	err = regtest.Client(t, config).Create(t.Context(), review)
	return review.Status.UserInfo.Username, err
}

func TestIssuer_TokenEndsWithServiceAccount(t *testing.T) {
	plane := hub.ForTest(t)
	admin := regtest.Client(t, plane.Config())
	regtest.Grant(t, admin, "hub")
	regtest.Create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "member-east"}})
	issuer := &Issuer{Client: regtest.Client(t, plane.User("hub"))}

	claim := newClaim(t)
	member := membership.Member{Name: "east", Namespace: "member-east", Claim: claim.Fingerprint()}
	issue := func() registration.Material {
		request, private, err := Method{}.Request(claim, ptr.To[int32](1200))
		require.NoError(t, err)
		credential, err := issuer.Issue(t.Context(), member, request)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), credential.IssuedAt.Time, time.Minute)
		require.Equal(t, 20*time.Minute, credential.ExpirationTime.Sub(credential.IssuedAt.Time))
		material, err := Method{}.Open(claim, private, credential)
		require.NoError(t, err)
		require.Equal(t, credential.ExpirationTime.Unix(), expiry(t, material.Token),
			"the token has the expiration time of the credential")
		return material
	}
	first := issue()
	account := &corev1.ServiceAccount{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: "member-east", Name: "muster-agent"}, account))
	require.Equal(t, map[string]string{membership.MemberLabel: "east"}, account.Labels)
	require.False(t, *account.AutomountServiceAccountToken)

	name, err := userOf(t, first)
	require.NoError(t, err)
	require.Equal(t, "system:serviceaccount:member-east:muster-agent", name)

	renewed := issue()
	require.NotEqual(t, first.Token, renewed.Token)
	same := &corev1.ServiceAccount{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(account), same))
	require.Equal(t, account.UID, same.UID, "a renewal uses the same ServiceAccount")

	require.NoError(t, admin.Delete(t.Context(), account))
	for _, revoked := range []registration.Material{first, renewed} {
		require.Eventually(t, func() bool { _, err := userOf(t, revoked); return err != nil }, time.Minute,
			100*time.Millisecond,
			"all tokens end with the ServiceAccount")
	}

	request, _, err := Method{}.Request(claim, nil)
	require.NoError(t, err)
	member.Namespace = "member-west"
	_, err = issuer.Issue(t.Context(), member, request)
	require.ErrorContains(t, err, `namespaces "member-west" not found`)
}

func expiry(t *testing.T, jwt string) int64 {
	parts := strings.Split(jwt, ".")
	require.Len(t, parts, 3)
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	var claims struct{ Exp int64 }
	require.NoError(t, json.Unmarshal(payload, &claims))
	return claims.Exp
}
