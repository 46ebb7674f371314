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

func endsAfter(d time.Duration) func(*v1alpha1.JoinTokenSpec) {
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
	regtest.Create(h.t, h, object)
	return object
}

func TestBootstrapTokenFromCreationToDeletion(t *testing.T) {
	h := newHub(t)
	token := h.waitFor(h.bootstrapToken("life01"), v1alpha1.ReasonReady)
	bootstrap, system := h.bootstrap(token), h.system(token)
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
	require.Equal(t, []string{"RoleBinding/join-bootstrap-token-life01", "Secret/bootstrap-token-life01"}, h.owns(token))
	typed := registration.Bootstrap{}
	require.NoError(t, typed.UseBootstrapToken(bootstrap.Token))
	require.Equal(t, typed.Key, bootstrap.Key, "who was told the token comes to the same key")
	require.Equal(t, typed.TokenName, bootstrap.TokenName)

	request, err := h.ask(bootstrap, "east-id")
	require.NoError(t, err, "the Secret works as it is")
	_, err = Check(t.Context(), h, request)
	require.NoError(t, err)
	h.quiet()

	require.NoError(t, h.Delete(t.Context(), token))
	mustertest.Holds(h.t, time.Minute, "deletion leaves no token", func() bool { return h.system(token) == nil })
	mustertest.Holds(h.t, time.Minute, "nor a copy that works", func() bool { return !h.works(bootstrap) })
}

// TestBootstrapTokenIsProlonged checks that a token keeps its secret and is prolonged while a hub is running.
func TestBootstrapTokenIsProlonged(t *testing.T) {
	h := newHub(t)
	token := h.waitFor(h.bootstrapToken("long01", func(s *v1alpha1.JoinTokenSpec) {
		s.CredentialTTLSeconds = 7200
	}), v1alpha1.ReasonReady)
	first := h.bootstrap(token)
	h.later(token, time.Hour)
	mustertest.Holds(h.t, time.Minute, "half of its life is over", func() bool {
		return h.bootstrap(token).ExpirationTime.After(first.ExpirationTime)
	})
	require.Equal(t, first.Token, h.bootstrap(token).Token)
	require.Equal(t, first.Key, h.bootstrap(token).Key)
	require.Equal(t, h.bootstrap(token).ExpirationTime.Format(time.RFC3339), string(h.system(token).Data["expiration"]))
	require.True(t, h.works(first))
	h.quiet()
}

func TestBootstrapTokenExpires(t *testing.T) {
	h := newHub(t)
	token := h.waitFor(h.bootstrapToken("expire", endsAfter(time.Hour)), v1alpha1.ReasonReady)
	require.WithinDuration(t, token.Status.ExpirationTime.Add(answerGrace), token.Status.CredentialExpirationTime.Time,
		time.Minute,
		"the API server ends what the controller, were it dead, would not")
	bootstrap := h.bootstrap(token)
	request, err := h.ask(bootstrap, "east-id")
	require.NoError(t, err)

	h.later(token, time.Hour+time.Minute)
	h.waitFor(token, v1alpha1.ReasonExpired)
	require.Nil(t, bootstrapIn(h.secret(token)), "nobody gets the credential any more")
	require.NotContains(t, h.system(token).Data, "usage-bootstrap-signing", "nor finds the hub by it")
	require.True(t, h.works(bootstrap), "who asked in time can fetch the answer")
	_, err = Check(t.Context(), h, request)
	require.NoError(t, err, "a request that was made in time is recognized")
	h.quiet()

	h.later(token, answerGrace+time.Second)
	mustertest.Holds(h.t, time.Minute, "copies are dead", func() bool {
		return h.system(token) == nil && !h.works(bootstrap)
	})
	require.Equal(t, []string{"Secret/" + token.Name}, h.owns(token))
	_, err = Check(t.Context(), h, request)
	require.NoError(t, err, "and is recognized as long as there is the token")

	was := token.DeepCopy()
	token.Spec.TTLSeconds = nil
	require.NoError(t, h.Patch(t.Context(), token, client.MergeFrom(was)))
	h.waitFor(token, v1alpha1.ReasonReady)
	require.NotEqual(t, bootstrap.Token, h.bootstrap(token).Token, "what was ended does not come back")
	require.True(t, h.works(h.bootstrap(token)))
}

func TestBootstrapTokenIsUsedUp(t *testing.T) {
	h := newHub(t)
	token := h.waitFor(h.bootstrapToken("once01", func(s *v1alpha1.JoinTokenSpec) {
		s.MaxUses = new(int32(1))
	}), v1alpha1.ReasonReady)
	bootstrap := h.bootstrap(token)
	east, err := h.ask(bootstrap, "east-id")
	require.NoError(t, err)
	checked, err := Check(t.Context(), h, east)
	require.NoError(t, err)
	require.NoError(t, Count(t.Context(), h, checked, "east-id"))
	h.waitFor(token, v1alpha1.ReasonUsedUp)
	system := h.system(token)
	require.NotContains(t, system.Data, "usage-bootstrap-signing")
	require.Equal(t, token.Status.UsedUpTime.Add(answerGrace).UTC().Format(time.RFC3339),
		string(system.Data["expiration"]),
		"the API server ends the copies, should there be no hub to do it")
	require.True(t, h.works(bootstrap), "the cluster can fetch its answer")
	h.later(token, answerGrace+time.Second)
	mustertest.Holds(h.t, time.Minute, "copies are dead", func() bool {
		return h.system(token) == nil && !h.works(bootstrap)
	})
}

func TestBootstrapTokenIsRepaired(t *testing.T) {
	h := newHub(t)
	token := h.waitFor(h.bootstrapToken("repair"), v1alpha1.ReasonReady)
	change := func(change func(*corev1.Secret)) func() {
		return func() {
			system := h.system(token)
			change(system)
			require.NoError(t, h.Update(t.Context(), system))
		}
	}
	for _, test := range []struct {
		reason string
		spoil  func()
		same   bool
	}{
		{"without the usage nobody finds the hub", change(func(s *corev1.Secret) {
			delete(s.Data, "usage-bootstrap-signing")
		}), true},
		{"nobody gives it other groups", change(func(s *corev1.Secret) {
			s.Data["auth-extra-groups"] = []byte("system:bootstrappers:nodes")
		}), true},
		{"nor another end", change(func(s *corev1.Secret) { s.Data["expiration"] = []byte("2999-01-01T00:00:00Z") }), true},
		{"a token that is none is another", change(func(s *corev1.Secret) { s.Data["token-secret"] = []byte("x") }), false},
		{"without its binding it may do nothing", func() {
			require.NoError(t, h.Delete(t.Context(), h.binding(token)))
		}, true},
		{"the Secret that agents get is made again", func() {
			require.NoError(t, h.Delete(t.Context(), h.secret(token)))
		}, true},
		{"to delete a token is to have another", func() {
			require.NoError(t, h.Delete(t.Context(), h.system(token)))
		}, false},
	} {
		before := h.bootstrap(token)
		test.spoil()
		mustertest.Holds(h.t, time.Minute, test.reason, func() bool {
			bootstrap, system := bootstrapIn(secretIfAny(h, token)), h.system(token)
			return bootstrap != nil && system != nil && len(system.Data) == 7 &&
				string(system.Data["auth-extra-groups"]) == "system:bootstrappers:muster" &&
				string(system.Data["expiration"]) == bootstrap.ExpirationTime.Format(time.RFC3339) &&
				bootstrap.ExpirationTime.Year() < 2999 &&
				(bootstrap.Token == before.Token) == test.same && h.works(bootstrap)
		})
	}
	h.quiet()
}

func TestAdministratorsOwnTokenIsAdoptedAndNeverWritten(t *testing.T) {
	h := newHub(t)
	own := h.kubeadmToken("adopt1", "0123456789abcdef")
	token := h.waitFor(h.bootstrapToken("adopt1", endsAfter(time.Hour)), v1alpha1.ReasonReady)
	bootstrap := h.bootstrap(token)
	require.Equal(t, "adopt1.0123456789abcdef", bootstrap.Token)
	require.True(t, bootstrap.ExpirationTime.IsZero(), "it never ends")
	require.Nil(t, token.Status.CredentialExpirationTime)
	require.True(t, h.works(bootstrap))
	require.Equal(t, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "system:bootstrap:adopt1"}},
		h.boundTo(token),
		"its groups are those of others, too, and get nothing")
	request, err := h.ask(bootstrap, "east-id")
	require.NoError(t, err)
	_, err = Check(t.Context(), h, request)
	require.NoError(t, err)

	h.later(token, time.Hour+answerGrace+time.Minute)
	h.waitFor(token, v1alpha1.ReasonExpired)
	mustertest.Holds(h.t, time.Minute, "it may do nothing any more", func() bool { return !h.works(bootstrap) })
	require.NoError(t, h.Delete(t.Context(), token))
	h.quiet()
	require.Equal(t, own.ResourceVersion, h.system(token).ResourceVersion, "what is not ours is not written")
}

func (h *hub) boundTo(token *v1alpha1.JoinToken) []rbacv1.Subject {
	binding := h.binding(token)
	require.NoError(h.t, h.Get(h.t.Context(), client.ObjectKeyFromObject(binding), binding))
	return binding.Subjects
}

func TestAdoptedTokenThatCannotBeUsed(t *testing.T) {
	h := newHub(t)
	own := h.kubeadmToken("adopt2", "0123456789abcdef")
	token := h.waitFor(h.bootstrapToken("adopt2"), v1alpha1.ReasonReady)
	for _, test := range []struct{ reason, key, value, message string }{
		{"it must be one to come in by", "usage-bootstrap-authentication", "",
			"lacks the usage usage-bootstrap-authentication"},
		{"and to find the hub by", "usage-bootstrap-signing", "false", "lacks the usage usage-bootstrap-signing"},
		{"the API server ignores an ID that is not the name's", "token-id", "adopt3", `has a token-id other than "adopt2"`},
		{"and a secret of another form", "token-secret", "hush", "has a token-secret that is not sixteen"},
	} {
		good := own.Data
		own.Data = maps.Clone(good)
		own.Data[test.key] = []byte(test.value)
		require.NoError(t, h.Update(t.Context(), own))
		h.waitFor(token, v1alpha1.ReasonBootstrapTokenUnusable)
		require.Contains(t, token.Status.Conditions[0].Message, test.message, test.reason)
		require.NotContains(t, token.Status.Conditions[0].Message, "hush")
		require.Nil(t, bootstrapIn(h.secret(token)), test.reason)
		require.Equal(t, []string{"Secret/" + token.Name}, h.owns(token), test.reason)
		own.Data = good
		require.NoError(t, h.Update(t.Context(), own))
		h.waitFor(token, v1alpha1.ReasonReady)
	}

	require.NoError(t, h.Delete(t.Context(), own))
	h.waitFor(token, v1alpha1.ReasonBootstrapTokenUnusable)
	require.Contains(t, token.Status.Conditions[0].Message, "was deleted: create it again, or delete this JoinToken")
	h.quiet()
	require.Nil(t, h.system(token), "what an administrator has taken away is not made anew")
	h.kubeadmToken("adopt2", "fedcba9876543210")
	h.waitFor(token, v1alpha1.ReasonReady)
	require.Equal(t, "adopt2.fedcba9876543210", h.bootstrap(token).Token)
}

// TestAdoptedTokenEnds checks that an adopted token ends at its own expiration.
func TestAdoptedTokenEnds(t *testing.T) {
	h := newHub(t)
	own := h.kubeadmToken("adopt4", "0123456789abcdef")
	end := h.clock.Now().Add(time.Hour)
	own.Data["expiration"] = []byte(end.UTC().Format(time.RFC3339))
	require.NoError(t, h.Update(t.Context(), own))
	token := h.waitFor(h.bootstrapToken("adopt4"), v1alpha1.ReasonReady, func(token *v1alpha1.JoinToken) bool {
		return token.Status.CredentialExpirationTime != nil
	})
	require.WithinDuration(t, end, token.Status.CredentialExpirationTime.Time, time.Second)
	h.later(token, time.Hour)
	h.waitFor(token, v1alpha1.ReasonBootstrapTokenUnusable)
	require.Contains(t, token.Status.Conditions[0].Message, "expired at ")
	h.quiet()
}

func TestBootstrapTokenOfAnotherNamespaceIsLeftAlone(t *testing.T) {
	h := newHub(t)
	token := h.waitFor(h.bootstrapToken("other1"), v1alpha1.ReasonReady)
	system := h.system(token)
	system.Annotations["membership.muster.dev/join-token-namespace"] = "another-fleet"
	require.NoError(t, h.Update(t.Context(), system))
	t.Cleanup(func() { require.NoError(t, h.Delete(context.Background(), system)) })
	h.waitFor(token, v1alpha1.ReasonBootstrapTokenUnusable)
	require.Contains(t, token.Status.Conditions[0].Message,
		`belongs to a JoinToken in namespace "another-fleet": use another ID`)
	require.NoError(t, h.Delete(t.Context(), token))
	h.quiet()
	require.NotNil(t, h.system(token))
}

func TestBootstrapTokenIsNotLeakedByAHubThatWasDown(t *testing.T) {
	h := newHub(t)
	gone, again := h.waitFor(h.bootstrapToken("gone01"), v1alpha1.ReasonReady),
		h.waitFor(h.bootstrapToken("again1"), v1alpha1.ReasonReady)
	first := h.bootstrap(again)
	h.stop()
	for _, token := range []*v1alpha1.JoinToken{gone, again} {
		require.NoError(t, h.Delete(t.Context(), token))
	}
	again = h.bootstrapToken("again1")
	h.start(plane.ForTest(t).User("hub"), Options{Clock: h.clock, BootstrapTokens: true})
	mustertest.Holds(h.t, time.Minute, "what was left is removed", func() bool { return h.system(gone) == nil })
	h.waitFor(again, v1alpha1.ReasonReady)
	require.NotEqual(t, first.Token, h.bootstrap(again).Token, "a JoinToken that was made anew is another one")
	mustertest.Holds(h.t, time.Minute, "copies of the first are dead", func() bool { return !h.works(first) })
}

func TestBootstrapTokensOnlyByOption(t *testing.T) {
	h := newHubWithoutController(t)
	regtest.Grant(t, h, "hub") // and not the Role in kube-system
	h.start(plane.ForTest(t).User("hub"), Options{Clock: h.clock})
	token := h.waitFor(h.bootstrapToken("option"), v1alpha1.ReasonNotEnabled)
	require.Contains(t, token.Status.Conditions[0].Message, "create a JoinToken of type ServiceAccount")
	require.Empty(t, h.owns(token))
	require.Nil(t, h.system(token))

	mgr := newManager(t, plane.ForTest(t).User("hub"))
	require.ErrorContains(t, SetupWithManager(mgr, Options{Namespace: "kube-system", BootstrapTokens: true}),
		"Options.Namespace cannot be kube-system")
}
