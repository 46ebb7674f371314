package registration_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/registration"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
)

func whoami(t testing.TB, agent client.Client) (string, error) {
	t.Helper()
	review := &authenticationv1.SelfSubjectReview{}
	err := agent.Create(t.Context(), review)
	return review.Status.UserInfo.Username, err
}

// signingRequests returns the CertificateSigningRequests of a member on the hub.
func (h *hub) signingRequests(member membership.Member) []certificatesv1.CertificateSigningRequest {
	h.T.Helper()
	var list certificatesv1.CertificateSigningRequestList
	require.NoError(h.T,
		h.Client.List(context.Background(), &list, client.MatchingLabels{membership.MemberLabel: member.Name}))
	return list.Items
}

func TestEnsure_CredentialOfAgent(t *testing.T) {
	h := newHubOnPlane(t)
	member := h.member("gets")
	writes := map[v1alpha1.RegistrationCredential]int{v1alpha1.RegistrationToken: 6, v1alpha1.RegistrationCertificate: 8}
	for _, credential := range credentials {
		request := h.request(member, strings.ToLower(string(credential)), credential)
		h.wire.reset()
		result := h.registered(h.Registrar, request)
		require.Equal(t, writes[credential], h.wire.writes, credential)
		name := request.MemberAddon.Name

		require.Equal(t, "on-member", result.Secret.Namespace)
		require.Equal(t, name+"-hub-kubeconfig", result.Secret.Name)
		require.Equal(t, map[string]string{v1alpha1.AddonLabel: name}, result.Secret.Labels)
		require.Equal(t, "Secret", result.Secret.Kind)
		require.Equal(t, credential, result.Status.Credential)
		user, err := whoami(t, h.agentOf(result))
		require.NoError(t, err)
		want := rbacv1.Subject{Kind: "ServiceAccount", Namespace: member.Namespace, Name: "addon-token"}
		if credential == v1alpha1.RegistrationToken {
			require.Equal(t, want, result.Status.Subject)
			require.Equal(t, "system:serviceaccount:member-gets:addon-token", user)
			require.WithinDuration(t, time.Now().Add(7*24*time.Hour), result.Status.ExpirationTime.Time, time.Minute)
			require.Contains(t, h.objects(member, name), "ServiceAccount addon-token")
		} else {
			require.Equal(t, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}, result.Status.Subject)
			require.Regexp(t, "^muster:addon:member-gets:certificate:[0-9a-f]{64}$", user)
			require.WithinDuration(t, time.Now().Add(30*24*time.Hour), result.Status.ExpirationTime.Time, 10*time.Minute)
			require.NotContains(t, h.objects(member, name), "ServiceAccount addon-certificate",
				"a certificate needs no ServiceAccount")
			require.Empty(t, h.signingRequests(member))
		}
		require.Greater(t, result.After, time.Until(result.Status.ExpirationTime.Time)/2)
		require.Less(t, result.After, time.Until(result.Status.ExpirationTime.Time)*3/4+time.Minute)

		h.wire.reset()
		again, err := h.Ensure(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, result.Secret, again.Secret, "want the same Secret each time, or the Work would be written")
		require.True(t, equality.Semantic.DeepEqual(result.Status, again.Status))
		require.Zero(t, h.wire.writes)

		request.Want.SecretName, request.Want.ExpirationSeconds = "own.name", new(int32(900))
		shorter := h.registered(h.Registrar, request)
		require.Equal(t, "own.name", shorter.Secret.Name)
		require.Eventually(t, func() bool {
			shorter = h.registered(h.Registrar, request)
			return time.Until(shorter.Status.ExpirationTime.Time) < time.Hour
		}, time.Minute, 20*time.Millisecond, "a shorter lifetime applies at once")
	}
}

func TestEnsure_RenewsToken(t *testing.T) { testkit.Virtual(t, testEnsureRenewsToken) }

func testEnsureRenewsToken(t *testing.T) {
	h := newHub(t)
	member := h.member("renewal")
	for _, credential := range credentials {
		request := h.request(member, strings.ToLower(string(credential)), credential)
		first := h.registered(h.Registrar, request)
		start := h.clock.Now()

		h.clock.SetTime(start.Add(first.After - time.Minute))
		h.wire.reset()
		before, err := h.Ensure(t.Context(), request)
		require.NoError(t, err)
		require.Zero(t, h.wire.writes, "want no renewal before it is due")
		require.Equal(t, first.Secret, before.Secret)
		require.LessOrEqual(t, before.After, time.Minute)

		// The signer of certificates has a separate clock, by which the requests would be old.
		if credential == v1alpha1.RegistrationToken {
			h.clock.SetTime(start.Add(first.After + time.Second))
			renewed, err := h.Ensure(t.Context(), request)
			require.NoError(t, err)
			require.NotEqual(t, first.Secret.Data["token"], renewed.Secret.Data["token"])
			require.Equal(t, health.Registered, renewed.Registration.State)
			require.Equal(t, first.Status.Subject, renewed.Status.Subject)
			require.Equal(t, 1, h.wire.of("create serviceaccounts/token"))
			require.Equal(t, 2, h.wire.writes)
			_, err = whoami(t, h.agentOf(first))
			require.NoError(t, err, "want the previous token to be valid until it expires")
		}
		h.clock.SetTime(start)
	}
}

// TestEnsure_RenewsCertificateForSameSubject checks that a renewed certificate has the same key and subject, so that
// permissions that administrators have granted to the subject stay.
func TestEnsure_RenewsCertificateForSameSubject(t *testing.T) {
	testkit.Virtual(t, testEnsureRenewsCertificateForSameSubject)
}

func testEnsureRenewsCertificateForSameSubject(t *testing.T) {
	h := newHub(t)
	request := h.request(h.member("rekey"), "x", v1alpha1.RegistrationCertificate)
	first := h.registered(h.Registrar, request)
	// The renewal is due because the credential was issued long ago, by the clock of the hub.
	h.change(request, func(record string) string {
		issued := regexp.MustCompile(`"issued":"[^"]*"`)
		return issued.ReplaceAllString(record, `"issued":"1990-01-01T00:00:00Z"`)
	})
	h.wire.reset()
	var pending registration.Result
	h.Holds("renewed", func() bool {
		result, err := h.Ensure(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, health.Registered, result.Registration.State,
			"want the agent to keep its credential until the renewal")
		require.Equal(t, first.Status.Subject, result.Status.Subject)
		if string(result.Secret.Data["tls.crt"]) == string(first.Secret.Data["tls.crt"]) {
			pending = result
			return false
		}
		return true
	})
	require.Equal(t, time.Second, pending.After)
	require.Equal(t, 4, h.wire.writes, "want the writes: create, approve and delete the request, update the Secret")
}

// change rewrites the record of the Secret on the hub.
func (h *hub) change(request registration.Request, edit func(string) string) {
	h.T.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: registrationNamespace,
		Name: request.Member.Namespace + "." + request.MemberAddon.Name}
	require.NoError(h.T, h.Client.Get(h.T.Context(), key, secret))
	const record = "addon.muster.dev/credential"
	changed := edit(secret.Annotations[record])
	require.NotEqual(h.T, secret.Annotations[record], changed)
	secret.Annotations[record] = changed
	require.NoError(h.T, h.Client.Update(h.T.Context(), secret))
}

// TestEnsure_ChangeOfCredentialType checks that an agent has its previous credential until the new one is issued.
func TestEnsure_ChangeOfCredentialType(t *testing.T) {
	testkit.Virtual(t, testEnsureChangeOfCredentialType)
}

func testEnsureChangeOfCredentialType(t *testing.T) {
	h := newHub(t)
	request := h.request(h.member("switch"), "x", v1alpha1.RegistrationToken)
	last := h.registered(h.Registrar, request)
	for _, credential := range []v1alpha1.RegistrationCredential{v1alpha1.RegistrationCertificate,
		v1alpha1.RegistrationToken, v1alpha1.RegistrationCertificate} {
		request.Want.Credential = credential
		h.Holds(string(credential), func() bool {
			result, err := h.Ensure(t.Context(), request)
			require.NoError(t, err)
			require.Equal(t, health.Registered, result.Registration.State)
			if result.Status.Credential != credential {
				require.Equal(t, last.Secret, result.Secret)
				require.NoError(t, renew(h.agentOf(result), request.Member.Namespace, "x")(t.Context()))
				return false
			}
			last = result
			return true
		})
		h.Holds("the new credential is valid",
			func() bool { return renew(h.agentOf(last), request.Member.Namespace, "x")(t.Context()) == nil })
	}
	require.Len(t, h.objects(request.Member, "x"), 4, "want no remaining ServiceAccount")
}

// TestEnsure_Lease checks that a Lease that is no longer requested is deleted with its permission, and that a Lease of
// another owner stays.
func TestEnsure_Lease(t *testing.T) { testkit.Virtual(t, testEnsureLease) }

func testEnsureLease(t *testing.T) {
	h := newHub(t)
	request := h.request(h.member("lease"), "x", "")
	agent := h.agentOf(h.registered(h.Registrar, request))
	h.Holds("the agent renews its Lease", func() bool {
		return renew(agent, request.Member.Namespace,
			"x")(t.Context()) == nil
	})
	h.wire.reset()
	h.registered(h.Registrar, request)
	require.Zero(t, h.wire.writes, "a renewed Lease is up to date")
	request.Lease = false
	h.registered(h.Registrar, request)
	require.NotContains(t, h.objects(request.Member, "x"), "Lease x")
	foreign := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: request.Member.Namespace, Name: "x"}}
	h.Create(foreign)
	h.Holds("the permission to renew the Lease ends",
		func() bool { return apierrors.IsForbidden(renew(agent, request.Member.Namespace, "x")(t.Context())) })
	h.registered(h.Registrar, request)
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign))
}
