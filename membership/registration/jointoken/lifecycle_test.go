package jointoken

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestToken_CreationToDeletion(t *testing.T) {
	h := newHub(t, onPlane(t))
	token := h.waitFor(h.token("life", v1alpha1.JoinTokenSpec{}), v1alpha1.ReasonReady)
	require.Equal(t, "life", token.Status.SecretName)
	require.Nil(t, token.Status.ExpirationTime)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), token.Status.CredentialExpirationTime.Time, time.Minute)
	require.Equal(t, []string{"ServiceAccount/join-life", "RoleBinding/join-life", "Secret/life"}, h.ownedBy(token))
	bootstrap := h.bootstrap(token)
	require.Equal(t, token.Status.CredentialExpirationTime.Unix(), bootstrap.ExpirationTime.Unix())

	request, err := h.createRequest(bootstrap, "east-id")
	require.NoError(t, err, "the bootstrap in the Secret creates a JoinRequest")
	checked, err := Check(t.Context(), h.Client, request)
	require.NoError(t, err)
	require.Equal(t, token.UID, checked.UID)

	h.Holds("an Event for the issued credential", func() bool {
		var events eventsv1.EventList
		require.NoError(t, h.Client.List(t.Context(), &events, client.InNamespace(namespace)))
		for _, event := range events.Items {
			if event.Regarding.UID == token.UID && event.Reason == "CredentialIssued" {
				return true
			}
		}
		return false
	})
	h.requireIdle()

	again := token.DeepCopy()
	again.UID = "another"
	_, err = Read(t.Context(), h.Client, again)
	require.ErrorIs(t, err, membership.ErrPending, "the Secret belongs to another JoinToken")
	require.NoError(t, h.Client.Delete(t.Context(), token))
	h.Holds("all objects of the JoinToken are deleted", func() bool { return len(h.ownedBy(token)) == 0 })
	_, err = Read(t.Context(), h.Client, token)
	require.ErrorIs(t, err, membership.ErrPending, "the Secret is deleted")
	h.Holds("copies of the credential stop working", func() bool { return !h.credentialWorks(bootstrap) })
	_, err = Check(t.Context(), h.Client, request)
	require.ErrorContains(t, err, `JoinToken "life" does not exist`)
}

// requireIdle checks that there are no requests while nothing changes.
func (h *hub) requireIdle() {
	h.T.Helper()
	const still = 2 * time.Second
	last, since := h.requests.Load(), time.Now()
	h.Holds("no requests of the controller for two seconds", func() bool {
		if now := h.requests.Load(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) >= still
	})
}

func TestToken_CredentialRotation(t *testing.T) { testkit.Virtual(t, testTokenCredentialRotation) }

func testTokenCredentialRotation(t *testing.T) {
	h := newHub(t, inMemory(t))
	token := h.waitFor(h.token("rotation", v1alpha1.JoinTokenSpec{CredentialTTLSeconds: 7200}), v1alpha1.ReasonReady)
	first := h.bootstrap(token)

	h.advance(token, time.Hour-10*time.Second)
	h.requireIdle()
	require.Equal(t, first.Token, h.bootstrap(token).Token, "no rotation before half of the lifetime")
	h.advance(token, 10*time.Second)
	h.Holds("the credential is replaced after half of its lifetime", func() bool {
		return h.bootstrap(token).Token != first.Token
	})
	second := h.bootstrap(token)
	require.Equal(t, first.Key, second.Key, "requests with the first credential stay valid")
	require.True(t, h.credentialWorks(first) && h.credentialWorks(second),
		"copies of the first credential work until they expire")
	request, err := h.createRequest(first, "east-id")
	require.NoError(t, err)
	_, err = Check(t.Context(), h.Client, request)
	require.NoError(t, err)
	h.requireIdle()
}

func TestToken_Repair(t *testing.T) { testkit.Virtual(t, testTokenRepair) }

func testTokenRepair(t *testing.T) {
	h := newHub(t, inMemory(t))
	token := h.waitFor(h.token("repair", v1alpha1.JoinTokenSpec{}), v1alpha1.ReasonReady)
	for _, test := range []struct {
		reason string
		damage func()
	}{
		{"a deleted Secret is created again", func() { require.NoError(t, h.Client.Delete(t.Context(), h.secret(token))) }},
		{"a changed Secret is written again", func() {
			secret := h.secret(token)
			secret.Data = map[string][]byte{"join.yaml": []byte("hello")}
			require.NoError(t, h.Client.Update(t.Context(), secret))
		}},
		{"the credential of a deleted ServiceAccount is replaced", func() {
			require.NoError(t, h.Client.Delete(t.Context(), h.account(token)))
		}},
		{"a deleted RoleBinding is created again", func() {
			require.NoError(t, h.Client.Delete(t.Context(), h.binding(token)))
		}},
		{"a changed RoleBinding is restored", func() {
			binding := h.binding(token)
			require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
			binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}}
			require.NoError(t, h.Client.Update(t.Context(), binding))
		}},
	} {
		before := h.bootstrap(token)
		test.damage()
		h.Holds(test.reason, func() bool {
			bootstrap := bootstrapIn(secretIfAny(h, token))
			return bootstrap != nil && bootstrap.Token != before.Token && h.credentialWorks(bootstrap)
		})
		binding := h.binding(token)
		require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(binding), binding), test.reason)
		require.Equal(t, "join-repair", binding.Subjects[0].Name, test.reason)
	}
	h.requireIdle()
}

func secretIfAny(h *hub, token *v1alpha1.JoinToken) *corev1.Secret {
	secret := &corev1.Secret{}
	if err := h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(token), secret); err != nil {
		require.True(h.T, apierrors.IsNotFound(err), err)
		return nil
	}
	return secret
}

func TestToken_Expiry(t *testing.T) { testkit.Virtual(t, testTokenExpiry) }

func testTokenExpiry(t *testing.T) {
	h := newHub(t, inMemory(t))
	token := h.waitFor(h.token("expiry", v1alpha1.JoinTokenSpec{TTLSeconds: ptr.To[int64](3600)}), v1alpha1.ReasonReady)
	require.Equal(t, token.CreationTimestamp.Add(time.Hour), token.Status.ExpirationTime.Time)
	require.WithinDuration(t, token.Status.ExpirationTime.Add(answerGrace), token.Status.CredentialExpirationTime.Time,
		time.Minute,
		"the API server ends the credential if the controller does not run")
	bootstrap := h.bootstrap(token)
	read, err := Read(t.Context(), h.Client, token)
	require.NoError(t, err)
	require.Equal(t, bootstrap, read)
	request, err := h.createRequest(bootstrap, "east-id")
	require.NoError(t, err)

	h.advance(token,
		time.Hour+time.Minute) // the clock does not advance, and may be earlier than the creation of the token
	ready := token.DeepCopy()
	h.waitFor(token, v1alpha1.ReasonExpired)
	_, err = Read(t.Context(), h.Client, token)
	require.ErrorIs(t, err, ErrEnded)
	_, err = Read(t.Context(), h.Client, ready)
	require.ErrorIs(t, err, membership.ErrPending, "a Read with an outdated status returns no partial credential")
	require.Empty(t, token.Status.SecretName)
	require.Nil(t, token.Status.CredentialExpirationTime)
	require.Nil(t, bootstrapIn(h.secret(token)), "the Secret no longer contains the credential")
	require.True(t, h.credentialWorks(bootstrap), "an earlier request can get its response")
	_, err = Check(t.Context(), h.Client, request)
	require.NoError(t, err, "a request before the expiration is valid")
	h.requireIdle()

	h.advance(token, answerGrace+time.Second)
	h.Holds("copies of the credential stop working", func() bool { return !h.credentialWorks(bootstrap) })
	require.Equal(t, []string{"Secret/expiry"}, h.ownedBy(token))
	_, err = Check(t.Context(), h.Client, request)
	require.NoError(t, err, "the request is valid as long as the JoinToken exists")
	h.requireIdle()

	before := token.DeepCopy()
	token.Spec.TTLSeconds = nil
	require.NoError(t, h.Client.Patch(t.Context(), token, client.MergeFrom(before)))
	h.waitFor(token, v1alpha1.ReasonReady)
	require.Equal(t, bootstrap.Key, h.bootstrap(token).Key)
	require.True(t, h.credentialWorks(h.bootstrap(token)), "a prolonged token works again")
}

func TestToken_UsedUp(t *testing.T) { testkit.Virtual(t, testTokenUsedUp) }

func testTokenUsedUp(t *testing.T) {
	h := newHub(t, inMemory(t))
	token := h.waitFor(h.token("once", v1alpha1.JoinTokenSpec{MaxUses: ptr.To[int32](1)}), v1alpha1.ReasonReady)
	bootstrap := h.bootstrap(token)
	east, err := h.createRequest(bootstrap, "east-id")
	require.NoError(t, err)
	west, err := h.createRequest(bootstrap, "west-id")
	require.NoError(t, err)

	checked, err := Check(t.Context(), h.Client, east)
	require.NoError(t, err)
	stale := checked.DeepCopy()
	require.NoError(t, Count(t.Context(), h.Client, checked, "east-id"))
	require.True(t, apierrors.IsConflict(Count(t.Context(), h.Client, stale, "west-id")),
		"the checked JoinToken has changed")
	_, err = Check(t.Context(), h.Client, west)
	require.ErrorContains(t, err, "used up")
	checked, err = Check(t.Context(), h.Client, east)
	require.NoError(t, err, "a counted cluster is admitted after a restart of the hub")
	require.NoError(t, Count(t.Context(), h.Client, checked, "east-id"))

	h.waitFor(token, v1alpha1.ReasonUsedUp)
	require.EqualValues(t, 1, token.Status.Uses, "the cluster is counted once")
	require.Nil(t, bootstrapIn(h.secret(token)))
	require.True(t, h.credentialWorks(bootstrap), "the cluster can get its response")
	h.advance(token, answerGrace+time.Second)
	h.Holds("copies of the credential stop working", func() bool { return !h.credentialWorks(bootstrap) })
	require.Equal(t, []string{"Secret/once"}, h.ownedBy(token))
	h.requireIdle()
}

func TestToken_ReportsConflicts(t *testing.T) { testkit.Virtual(t, testTokenReportsConflicts) }

func testTokenReportsConflicts(t *testing.T) {
	h := newHub(t, inMemory(t))
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "taken", Namespace: namespace},
		Data: map[string][]byte{"a": []byte("b")}}
	existing := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "join-mighty", Namespace: namespace}}
	for _, object := range []client.Object{foreign, existing} {
		require.NoError(t, h.Client.Create(t.Context(), object))
		t.Cleanup(func() { _ = h.Client.Delete(context.Background(), object) })
	}
	for _, test := range []struct {
		reason  string
		token   *v1alpha1.JoinToken
		want    string
		message string
		fix     func(*v1alpha1.JoinToken)
	}{
		{"a Secret of another owner", h.token("taken", v1alpha1.JoinTokenSpec{}), v1alpha1.ReasonFailed,
			"Secret muster-registration/taken does not belong to this JoinToken", func(*v1alpha1.JoinToken) {
				unchanged := h.secret(&v1alpha1.JoinToken{ObjectMeta: foreign.ObjectMeta})
				require.Equal(t, foreign.Data, unchanged.Data)
				require.NoError(t, h.Client.Delete(t.Context(), foreign))
			}},
		{"a ServiceAccount of another owner", h.token("mighty", v1alpha1.JoinTokenSpec{}),
			v1alpha1.ReasonFailed,
			"ServiceAccount muster-registration/join-mighty does not belong to this JoinToken", func(*v1alpha1.JoinToken) {
				require.NoError(t, h.Client.Delete(t.Context(), existing))
			}},
		{"a reserved label", h.token("label",
			v1alpha1.JoinTokenSpec{Labels: map[string]string{"kubernetes.io/os": "x"}}), v1alpha1.ReasonInvalidLabel,
			`spec.labels["kubernetes.io/os"]: is reserved`, func(token *v1alpha1.JoinToken) {
				require.Empty(t, h.ownedBy(token))
				before := token.DeepCopy()
				token.Spec.Labels = map[string]string{"os": "x"}
				require.NoError(t, h.Client.Patch(t.Context(), token, client.MergeFrom(before)))
			}},
	} {
		h.waitFor(test.token, test.want)
		require.Contains(t, test.token.Status.Conditions[0].Message, test.message, test.reason)
		test.fix(test.token)
		h.waitFor(test.token, v1alpha1.ReasonReady)
	}
}
