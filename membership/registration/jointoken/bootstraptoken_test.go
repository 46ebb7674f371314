package jointoken

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/internal/regtest"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// bootstrapToken creates a JoinToken of that type, and deletes it at the end of the test.
func (h *hub) bootstrapToken(id string, change ...func(*v1alpha1.JoinTokenSpec)) *v1alpha1.JoinToken {
	spec := v1alpha1.JoinTokenSpec{Type: v1alpha1.JoinTokenBootstrapToken}
	for _, change := range change {
		change(&spec)
	}
	return h.token("bootstrap-token-"+id, spec)
}

func expiresAfter(d time.Duration) func(*v1alpha1.JoinTokenSpec) {
	return func(spec *v1alpha1.JoinTokenSpec) { spec.TTLSeconds = new(int64(d / time.Second)) }
}

// kubeadmToken creates a Secret like `kubeadm token create`.
func (h *hub) kubeadmToken(id, secret string) *corev1.Secret {
	object := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id},
		Type:       "bootstrap.kubernetes.io/token",
		Data: map[string][]byte{
			"token-id": []byte(id), "token-secret": []byte(secret),
			"usage-bootstrap-authentication": []byte("true"), "usage-bootstrap-signing": []byte("true"),
			"auth-extra-groups": []byte("system:bootstrappers:kubeadm:default-node-token"),
		},
	}
	regtest.Create(h.T, h.Client, object)
	return object
}

func TestBootstrapToken_CreationToDeletion(t *testing.T) {
	h := newHub(t, onPlane(t))
	token := h.waitFor(h.bootstrapToken("life01"), v1alpha1.ReasonReady)
	bootstrap, system := h.bootstrap(token), h.systemSecret(token)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), token.Status.CredentialExpirationTime.Time, time.Minute)
	want := map[string]string{
		"token-id": "life01", "token-secret": bootstrap.Token[len("life01."):],
		"expiration":                     bootstrap.ExpirationTime.Format(time.RFC3339),
		"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
		"auth-extra-groups": "system:bootstrappers:muster",
		"description": "JoinToken muster-registration/bootstrap-token-life01 of muster: permits clusters to request " +
			"to join",
	}
	got := map[string]string{}
	for key, value := range system.Data {
		got[key] = string(value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Secret in kube-system (-want +got):\n%s", diff)
	}
	require.Equal(t, []string{"RoleBinding/join-bootstrap-token-life01", "Secret/bootstrap-token-life01"},
		h.ownedBy(token))
	derived := registration.Bootstrap{}
	require.NoError(t, derived.UseBootstrapToken(bootstrap.Token))
	require.Equal(t, derived.Key, bootstrap.Key, "the key derived from the token is the same")
	require.Equal(t, derived.TokenName, bootstrap.TokenName)

	request, err := h.createRequest(bootstrap, "east-id")
	require.NoError(t, err, "the bootstrap in the Secret creates a JoinRequest")
	_, err = Check(t.Context(), h.Client, request)
	require.NoError(t, err)
	h.requireIdle()

	require.NoError(t, h.Client.Delete(t.Context(), token))
	h.Holds("the token is deleted with the JoinToken", func() bool { return h.systemSecret(token) == nil })
	h.Holds("copies of the credential stop working", func() bool { return !h.credentialWorks(bootstrap) })
}

// TestBootstrapToken_IsProlonged checks that a token keeps its secret and is prolonged while a hub is running.
func TestBootstrapToken_IsProlonged(t *testing.T) { testkit.Virtual(t, testBootstrapTokenIsProlonged) }

func testBootstrapTokenIsProlonged(t *testing.T) {
	h := newHub(t, inMemory(t))
	token := h.waitFor(h.bootstrapToken("long01", func(s *v1alpha1.JoinTokenSpec) {
		s.CredentialTTLSeconds = 7200
	}), v1alpha1.ReasonReady)
	first := h.bootstrap(token)
	h.advance(token, time.Hour)
	h.Holds("the token is prolonged after half of its lifetime", func() bool {
		return h.bootstrap(token).ExpirationTime.After(first.ExpirationTime)
	})
	require.Equal(t, first.Token, h.bootstrap(token).Token)
	require.Equal(t, first.Key, h.bootstrap(token).Key)
	require.Equal(t, h.bootstrap(token).ExpirationTime.Format(time.RFC3339),
		string(h.systemSecret(token).Data["expiration"]))
	require.True(t, h.credentialWorks(first))
	h.requireIdle()
}

func TestBootstrapToken_Expires(t *testing.T) { testkit.Virtual(t, testBootstrapTokenExpires) }

func testBootstrapTokenExpires(t *testing.T) {
	h := newHub(t, inMemory(t))
	token := h.waitFor(h.bootstrapToken("expire", expiresAfter(time.Hour)), v1alpha1.ReasonReady)
	require.WithinDuration(t, token.Status.ExpirationTime.Add(answerGrace), token.Status.CredentialExpirationTime.Time,
		time.Minute,
		"the API server ends the credential if the controller does not run")
	bootstrap := h.bootstrap(token)
	request, err := h.createRequest(bootstrap, "east-id")
	require.NoError(t, err)

	h.advance(token, time.Hour+time.Minute)
	h.waitFor(token, v1alpha1.ReasonExpired)
	require.Nil(t, bootstrapIn(h.secret(token)), "the Secret no longer contains the credential")
	require.NotContains(t, h.systemSecret(token).Data, "usage-bootstrap-signing", "the token no longer signs cluster-info")
	require.True(t, h.credentialWorks(bootstrap), "an earlier request can get its response")
	_, err = Check(t.Context(), h.Client, request)
	require.NoError(t, err, "a request before the expiration is valid")
	h.requireIdle()

	h.advance(token, answerGrace+time.Second)
	h.Holds("copies of the credential stop working", func() bool {
		return h.systemSecret(token) == nil && !h.credentialWorks(bootstrap)
	})
	require.Equal(t, []string{"Secret/" + token.Name}, h.ownedBy(token))
	_, err = Check(t.Context(), h.Client, request)
	require.NoError(t, err, "the request is valid as long as the JoinToken exists")

	before := token.DeepCopy()
	token.Spec.TTLSeconds = nil
	require.NoError(t, h.Client.Patch(t.Context(), token, client.MergeFrom(before)))
	h.waitFor(token, v1alpha1.ReasonReady)
	require.NotEqual(t, bootstrap.Token, h.bootstrap(token).Token, "a prolonged JoinToken has a new token")
	require.True(t, h.credentialWorks(h.bootstrap(token)))
}

func TestBootstrapToken_UsedUp(t *testing.T) { testkit.Virtual(t, testBootstrapTokenUsedUp) }

func testBootstrapTokenUsedUp(t *testing.T) {
	h := newHub(t, inMemory(t))
	token := h.waitFor(h.bootstrapToken("once01", func(s *v1alpha1.JoinTokenSpec) {
		s.MaxUses = new(int32(1))
	}), v1alpha1.ReasonReady)
	bootstrap := h.bootstrap(token)
	east, err := h.createRequest(bootstrap, "east-id")
	require.NoError(t, err)
	checked, err := Check(t.Context(), h.Client, east)
	require.NoError(t, err)
	require.NoError(t, Count(t.Context(), h.Client, checked, "east-id"))
	h.waitFor(token, v1alpha1.ReasonUsedUp)
	system := h.systemSecret(token)
	require.NotContains(t, system.Data, "usage-bootstrap-signing")
	require.Equal(t, token.Status.UsedUpTime.Add(answerGrace).UTC().Format(time.RFC3339),
		string(system.Data["expiration"]),
		"the API server ends the credential if no hub runs")
	require.True(t, h.credentialWorks(bootstrap), "the cluster can get its response")
	h.advance(token, answerGrace+time.Second)
	h.Holds("copies of the credential stop working", func() bool {
		return h.systemSecret(token) == nil && !h.credentialWorks(bootstrap)
	})
}

func TestBootstrapToken_Repair(t *testing.T) { testkit.Virtual(t, testBootstrapTokenRepair) }

func testBootstrapTokenRepair(t *testing.T) {
	h := newHub(t, inMemory(t))
	token := h.waitFor(h.bootstrapToken("repair"), v1alpha1.ReasonReady)
	change := func(change func(*corev1.Secret)) func() {
		return func() {
			system := h.systemSecret(token)
			change(system)
			require.NoError(t, h.Client.Update(t.Context(), system))
		}
	}
	for _, test := range []struct {
		reason    string
		damage    func()
		sameToken bool
	}{
		{"a removed usage is restored", change(func(s *corev1.Secret) {
			delete(s.Data, "usage-bootstrap-signing")
		}), true},
		{"changed groups are restored", change(func(s *corev1.Secret) {
			s.Data["auth-extra-groups"] = []byte("system:bootstrappers:nodes")
		}), true},
		{"a changed expiration is restored",
			change(func(s *corev1.Secret) { s.Data["expiration"] = []byte("2999-01-01T00:00:00Z") }), true},
		{"an invalid token is replaced", change(func(s *corev1.Secret) { s.Data["token-secret"] = []byte("x") }), false},
		{"a deleted RoleBinding is created again", func() {
			require.NoError(t, h.Client.Delete(t.Context(), h.binding(token)))
		}, true},
		{"a deleted Secret of the JoinToken is created again", func() {
			require.NoError(t, h.Client.Delete(t.Context(), h.secret(token)))
		}, true},
		{"a deleted token is replaced", func() {
			require.NoError(t, h.Client.Delete(t.Context(), h.systemSecret(token)))
		}, false},
	} {
		before := h.bootstrap(token)
		test.damage()
		h.Holds(test.reason, func() bool {
			bootstrap, system := bootstrapIn(secretIfAny(h, token)), h.systemSecret(token)
			return bootstrap != nil && system != nil && len(system.Data) == 7 &&
				string(system.Data["auth-extra-groups"]) == "system:bootstrappers:muster" &&
				string(system.Data["expiration"]) == bootstrap.ExpirationTime.Format(time.RFC3339) &&
				bootstrap.ExpirationTime.Year() < 2999 &&
				(bootstrap.Token == before.Token) == test.sameToken && h.credentialWorks(bootstrap)
		})
	}
	h.requireIdle()
}

func TestBootstrapToken_AdoptedTokenIsNotModified(t *testing.T) {
	testkit.Virtual(t, testBootstrapTokenAdoptedTokenIsNotModified)
}

func testBootstrapTokenAdoptedTokenIsNotModified(t *testing.T) {
	h := newHub(t, inMemory(t))
	own := h.kubeadmToken("adopt1", "0123456789abcdef")
	token := h.waitFor(h.bootstrapToken("adopt1", expiresAfter(time.Hour)), v1alpha1.ReasonReady)
	bootstrap := h.bootstrap(token)
	require.Equal(t, "adopt1.0123456789abcdef", bootstrap.Token)
	require.True(t, bootstrap.ExpirationTime.IsZero(), "the adopted token has no expiration")
	require.Nil(t, token.Status.CredentialExpirationTime)
	require.True(t, h.credentialWorks(bootstrap))
	require.Equal(t, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "system:bootstrap:adopt1"}},
		h.boundTo(token),
		"permissions are granted to the user, not to its groups")
	request, err := h.createRequest(bootstrap, "east-id")
	require.NoError(t, err)
	_, err = Check(t.Context(), h.Client, request)
	require.NoError(t, err)

	h.advance(token, time.Hour+answerGrace+time.Minute)
	h.waitFor(token, v1alpha1.ReasonExpired)
	h.Holds("the credential stops working", func() bool { return !h.credentialWorks(bootstrap) })
	require.NoError(t, h.Client.Delete(t.Context(), token))
	h.requireIdle()
	require.Equal(t, own.ResourceVersion, h.systemSecret(token).ResourceVersion,
		"the controller must not modify the adopted token")
}

func (h *hub) boundTo(token *v1alpha1.JoinToken) []rbacv1.Subject {
	binding := h.binding(token)
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(binding), binding))
	return binding.Subjects
}

func TestBootstrapToken_UnusableAdoptedToken(t *testing.T) {
	testkit.Virtual(t, testBootstrapTokenUnusableAdoptedToken)
}

func testBootstrapTokenUnusableAdoptedToken(t *testing.T) {
	h := newHub(t, inMemory(t))
	own := h.kubeadmToken("adopt2", "0123456789abcdef")
	token := h.waitFor(h.bootstrapToken("adopt2"), v1alpha1.ReasonReady)
	for _, test := range []struct{ reason, key, value, message string }{
		{"missing usage for authentication", "usage-bootstrap-authentication", "",
			"lacks the usage usage-bootstrap-authentication"},
		{"missing usage for signing", "usage-bootstrap-signing", "false", "lacks the usage usage-bootstrap-signing"},
		{"token ID that differs from the name", "token-id", "adopt3", `has a token-id other than "adopt2"`},
		{"invalid token secret", "token-secret", "hush", "has a token-secret that is not sixteen"},
	} {
		good := own.Data
		own.Data = maps.Clone(good)
		own.Data[test.key] = []byte(test.value)
		require.NoError(t, h.Client.Update(t.Context(), own))
		h.waitFor(token, v1alpha1.ReasonBootstrapTokenUnusable)
		require.Contains(t, token.Status.Conditions[0].Message, test.message, test.reason)
		require.NotContains(t, token.Status.Conditions[0].Message, "hush")
		require.Nil(t, bootstrapIn(h.secret(token)), test.reason)
		require.Equal(t, []string{"Secret/" + token.Name}, h.ownedBy(token), test.reason)
		own.Data = good
		require.NoError(t, h.Client.Update(t.Context(), own))
		h.waitFor(token, v1alpha1.ReasonReady)
	}

	require.NoError(t, h.Client.Delete(t.Context(), own))
	h.waitFor(token, v1alpha1.ReasonBootstrapTokenUnusable)
	require.Contains(t, token.Status.Conditions[0].Message, "was deleted: create it again, or delete this JoinToken")
	h.requireIdle()
	require.Nil(t, h.systemSecret(token), "the controller must not create a token that an administrator has deleted")
	h.kubeadmToken("adopt2", "fedcba9876543210")
	h.waitFor(token, v1alpha1.ReasonReady)
	require.Equal(t, "adopt2.fedcba9876543210", h.bootstrap(token).Token)
}

// TestBootstrapToken_AdoptedTokenExpires checks that an adopted token ends at its own expiration.
func TestBootstrapToken_AdoptedTokenExpires(t *testing.T) {
	testkit.Virtual(t, testBootstrapTokenAdoptedTokenExpires)
}

func testBootstrapTokenAdoptedTokenExpires(t *testing.T) {
	h := newHub(t, inMemory(t))
	own := h.kubeadmToken("adopt4", "0123456789abcdef")
	end := h.clock.Now().Add(time.Hour)
	own.Data["expiration"] = []byte(end.UTC().Format(time.RFC3339))
	require.NoError(t, h.Client.Update(t.Context(), own))
	token := h.waitFor(h.bootstrapToken("adopt4"), v1alpha1.ReasonReady, func(token *v1alpha1.JoinToken) bool {
		return token.Status.CredentialExpirationTime != nil
	})
	require.WithinDuration(t, end, token.Status.CredentialExpirationTime.Time, time.Second)
	h.advance(token, time.Hour)
	h.waitFor(token, v1alpha1.ReasonBootstrapTokenUnusable)
	require.Contains(t, token.Status.Conditions[0].Message, "expired at ")
	h.requireIdle()
}

func TestBootstrapToken_OfAnotherNamespaceIsNotModified(t *testing.T) {
	testkit.Virtual(t, testBootstrapTokenOfAnotherNamespaceIsNotModified)
}

func testBootstrapTokenOfAnotherNamespaceIsNotModified(t *testing.T) {
	h := newHub(t, inMemory(t))
	token := h.waitFor(h.bootstrapToken("other1"), v1alpha1.ReasonReady)
	system := h.systemSecret(token)
	system.Annotations["membership.muster.dev/join-token-namespace"] = "another-fleet"
	require.NoError(t, h.Client.Update(t.Context(), system))
	t.Cleanup(func() { require.NoError(t, h.Client.Delete(context.Background(), system)) })
	h.waitFor(token, v1alpha1.ReasonBootstrapTokenUnusable)
	require.Contains(t, token.Status.Conditions[0].Message,
		`belongs to a JoinToken in namespace "another-fleet": use another ID`)
	require.NoError(t, h.Client.Delete(t.Context(), token))
	h.requireIdle()
	require.NotNil(t, h.systemSecret(token))
}

func TestBootstrapToken_DeletedWhileHubIsDown(t *testing.T) {
	testkit.Virtual(t, testBootstrapTokenDeletedWhileHubIsDown)
}

func testBootstrapTokenDeletedWhileHubIsDown(t *testing.T) {
	h := newHub(t, inMemory(t))
	gone, again := h.waitFor(h.bootstrapToken("gone01"), v1alpha1.ReasonReady),
		h.waitFor(h.bootstrapToken("again1"), v1alpha1.ReasonReady)
	first := h.bootstrap(again)
	h.stop()
	for _, token := range []*v1alpha1.JoinToken{gone, again} {
		require.NoError(t, h.Client.Delete(t.Context(), token))
	}
	again = h.bootstrapToken("again1")
	h.start(h.server.User("hub"), Options{Clock: h.clock, BootstrapTokens: true})
	h.Holds("the token of the deleted JoinToken is removed", func() bool { return h.systemSecret(gone) == nil })
	h.waitFor(again, v1alpha1.ReasonReady)
	require.NotEqual(t, first.Token, h.bootstrap(again).Token, "a JoinToken that was created again has another token")
	h.Holds("copies of the first credential stop working", func() bool { return !h.credentialWorks(first) })
}

func TestBootstrapToken_RequiresOption(t *testing.T) {
	testkit.Virtual(t, testBootstrapTokenRequiresOption)
}

func testBootstrapTokenRequiresOption(t *testing.T) {
	h := newHubWithoutController(t, inMemory(t))
	regtest.Grant(t, h.Client, "hub") // without the Role in kube-system
	h.start(h.server.User("hub"), Options{Clock: h.clock})
	token := h.waitFor(h.bootstrapToken("option"), v1alpha1.ReasonNotEnabled)
	require.Contains(t, token.Status.Conditions[0].Message, "create a JoinToken of type ServiceAccount")
	require.Empty(t, h.ownedBy(token))
	require.Nil(t, h.systemSecret(token))

	mgr := mustertest.Manager(t, h.server.User("hub"), managerOptions())
	options := h.server.Address(Options{Namespace: "kube-system", BootstrapTokens: true})
	require.ErrorContains(t, SetupWithManager(mgr, options), "Options.Namespace cannot be kube-system")
}
