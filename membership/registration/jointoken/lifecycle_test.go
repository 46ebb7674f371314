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

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

func TestTokenFromCreationToDeletion(t *testing.T) {
	h := newHub(t)
	token := h.waitFor(h.token("life", v1alpha1.JoinTokenSpec{}), v1alpha1.ReasonReady)
	require.Equal(t, "life", token.Status.SecretName)
	require.Nil(t, token.Status.ExpirationTime)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), token.Status.CredentialExpirationTime.Time, time.Minute)
	require.Equal(t, []string{"ServiceAccount/join-life", "RoleBinding/join-life", "Secret/life"}, h.owns(token))
	bootstrap := h.bootstrap(token)
	require.Equal(t, token.Status.CredentialExpirationTime.Unix(), bootstrap.ExpirationTime.Unix())

	request, err := h.ask(bootstrap, "east-id")
	require.NoError(t, err, "the Secret works as it is")
	checked, err := Check(t.Context(), h, request)
	require.NoError(t, err)
	require.Equal(t, token.UID, checked.UID)

	mustertest.Holds(h.t, time.Minute, "an event", func() bool {
		var events eventsv1.EventList
		require.NoError(t, h.List(t.Context(), &events, client.InNamespace(namespace)))
		for _, event := range events.Items {
			if event.Regarding.UID == token.UID && event.Reason == "CredentialIssued" {
				return true
			}
		}
		return false
	})
	h.quiet()

	again := token.DeepCopy()
	again.UID = "another"
	_, err = Read(t.Context(), h, again)
	require.ErrorIs(t, err, membership.ErrPending, "the Secret is not that token's")
	require.NoError(t, h.Delete(t.Context(), token))
	mustertest.Holds(h.t, time.Minute, "deletion leaves nothing", func() bool { return len(h.owns(token)) == 0 })
	_, err = Read(t.Context(), h, token)
	require.ErrorIs(t, err, membership.ErrPending, "the Secret is gone")
	mustertest.Holds(h.t, time.Minute, "nor a copy that works", func() bool { return !h.works(bootstrap) })
	_, err = Check(t.Context(), h, request)
	require.ErrorContains(t, err, `JoinToken "life" does not exist`)
}

// quiet checks that there are no requests while nothing changes.
func (h *hub) quiet() {
	h.t.Helper()
	const still = 2 * time.Second
	last, since := h.requests.Load(), time.Now()
	mustertest.Holds(h.t, time.Minute, "no request for a while", func() bool {
		if now := h.requests.Load(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) >= still
	})
}

func TestRotation(t *testing.T) {
	h := newHub(t)
	token := h.waitFor(h.token("rotation", v1alpha1.JoinTokenSpec{CredentialTTLSeconds: 7200}), v1alpha1.ReasonReady)
	first := h.bootstrap(token)

	h.later(token, time.Hour-10*time.Second)
	h.quiet()
	require.Equal(t, first.Token, h.bootstrap(token).Token, "too early")
	h.later(token, 10*time.Second)
	mustertest.Holds(h.t, time.Minute, "half of its life is over", func() bool {
		return h.bootstrap(token).Token != first.Token
	})
	second := h.bootstrap(token)
	require.Equal(t, first.Key, second.Key, "requests made with the first are still recognized")
	require.True(t, h.works(first) && h.works(second), "a copy works for the other half")
	request, err := h.ask(first, "east-id")
	require.NoError(t, err)
	_, err = Check(t.Context(), h, request)
	require.NoError(t, err)
	h.quiet()
}

func TestRepair(t *testing.T) {
	h := newHub(t)
	token := h.waitFor(h.token("repair", v1alpha1.JoinTokenSpec{}), v1alpha1.ReasonReady)
	for _, test := range []struct {
		reason string
		spoil  func()
	}{
		{"a Secret that is deleted is made again", func() { require.NoError(t, h.Delete(t.Context(), h.secret(token))) }},
		{"a Secret that is spoiled is written again", func() {
			secret := h.secret(token)
			secret.Data = map[string][]byte{"join.yaml": []byte("hello")}
			require.NoError(t, h.Update(t.Context(), secret))
		}},
		{"the credential of an account that is deleted is dead", func() {
			require.NoError(t, h.Delete(t.Context(), h.account(token)))
		}},
		{"without its binding a credential may do nothing", func() {
			require.NoError(t, h.Delete(t.Context(), h.binding(token)))
		}},
		{"with a changed one somebody else may do it", func() {
			binding := h.binding(token)
			require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
			binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}}
			require.NoError(t, h.Update(t.Context(), binding))
		}},
	} {
		before := h.bootstrap(token)
		test.spoil()
		mustertest.Holds(h.t, time.Minute, test.reason, func() bool {
			bootstrap := bootstrapIn(secretIfAny(h, token))
			return bootstrap != nil && bootstrap.Token != before.Token && h.works(bootstrap)
		})
		binding := h.binding(token)
		require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(binding), binding), test.reason)
		require.Equal(t, "join-repair", binding.Subjects[0].Name, test.reason)
	}
	h.quiet()
}

func secretIfAny(h *hub, token *v1alpha1.JoinToken) *corev1.Secret {
	secret := &corev1.Secret{}
	if err := h.Get(h.t.Context(), client.ObjectKeyFromObject(token), secret); err != nil {
		require.True(h.t, apierrors.IsNotFound(err), err)
		return nil
	}
	return secret
}

func TestExpiry(t *testing.T) {
	h := newHub(t)
	token := h.waitFor(h.token("expiry", v1alpha1.JoinTokenSpec{TTLSeconds: ptr.To[int64](3600)}), v1alpha1.ReasonReady)
	require.Equal(t, token.CreationTimestamp.Add(time.Hour), token.Status.ExpirationTime.Time)
	require.WithinDuration(t, token.Status.ExpirationTime.Add(answerGrace), token.Status.CredentialExpirationTime.Time,
		time.Minute,
		"the API server ends what the controller, were it dead, would not")
	bootstrap := h.bootstrap(token)
	read, err := Read(t.Context(), h, token)
	require.NoError(t, err)
	require.Equal(t, bootstrap, read)
	request, err := h.ask(bootstrap, "east-id")
	require.NoError(t, err)

	h.later(token, time.Hour+time.Minute) // the clock stands still, and may have stood before the token was made
	ready := token.DeepCopy()
	h.waitFor(token, v1alpha1.ReasonExpired)
	_, err = Read(t.Context(), h, token)
	require.ErrorIs(t, err, ErrEnded)
	_, err = Read(t.Context(), h, ready)
	require.ErrorIs(t, err, membership.ErrPending, "who has read the token too early is not given half a credential")
	require.Empty(t, token.Status.SecretName)
	require.Nil(t, token.Status.CredentialExpirationTime)
	require.Nil(t, bootstrapIn(h.secret(token)), "nobody gets the credential any more")
	require.True(t, h.works(bootstrap), "who asked in time can fetch the answer")
	_, err = Check(t.Context(), h, request)
	require.NoError(t, err, "a request that was made in time is recognized, though the token has ended by the hub's clock")
	h.quiet()

	h.later(token, answerGrace+time.Second)
	mustertest.Holds(h.t, time.Minute, "copies are dead", func() bool { return !h.works(bootstrap) })
	require.Equal(t, []string{"Secret/expiry"}, h.owns(token))
	_, err = Check(t.Context(), h, request)
	require.NoError(t, err, "and is recognized as long as there is the token")
	h.quiet()

	was := token.DeepCopy()
	token.Spec.TTLSeconds = nil
	require.NoError(t, h.Patch(t.Context(), token, client.MergeFrom(was)))
	h.waitFor(token, v1alpha1.ReasonReady)
	require.Equal(t, bootstrap.Key, h.bootstrap(token).Key)
	require.True(t, h.works(h.bootstrap(token)), "a token that is given more time works again")
}

func TestUsedUp(t *testing.T) {
	h := newHub(t)
	token := h.waitFor(h.token("once", v1alpha1.JoinTokenSpec{MaxUses: ptr.To[int32](1)}), v1alpha1.ReasonReady)
	bootstrap := h.bootstrap(token)
	east, err := h.ask(bootstrap, "east-id")
	require.NoError(t, err)
	west, err := h.ask(bootstrap, "west-id")
	require.NoError(t, err)

	checked, err := Check(t.Context(), h, east)
	require.NoError(t, err)
	stale := checked.DeepCopy()
	require.NoError(t, Count(t.Context(), h, checked, "east-id"))
	require.True(t, apierrors.IsConflict(Count(t.Context(), h, stale, "west-id")), "what was checked has changed")
	_, err = Check(t.Context(), h, west)
	require.ErrorContains(t, err, "used up")
	checked, err = Check(t.Context(), h, east)
	require.NoError(t, err, "a hub that died after it had counted lets the cluster in")
	require.NoError(t, Count(t.Context(), h, checked, "east-id"))

	h.waitFor(token, v1alpha1.ReasonUsedUp)
	require.EqualValues(t, 1, token.Status.Uses, "counted once")
	require.Nil(t, bootstrapIn(h.secret(token)))
	require.True(t, h.works(bootstrap), "the cluster can fetch its answer")
	h.later(token, answerGrace+time.Second)
	mustertest.Holds(h.t, time.Minute, "copies are dead", func() bool { return !h.works(bootstrap) })
	require.Equal(t, []string{"Secret/once"}, h.owns(token))
	h.quiet()
}

func TestWhatIsInTheWayIsReported(t *testing.T) {
	h := newHub(t)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "taken", Namespace: namespace},
		Data: map[string][]byte{"a": []byte("b")}}
	mighty := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "join-mighty", Namespace: namespace}}
	for _, object := range []client.Object{foreign, mighty} {
		require.NoError(t, h.Create(t.Context(), object))
		t.Cleanup(func() { _ = h.Delete(context.Background(), object) })
	}
	for _, test := range []struct {
		reason  string
		token   *v1alpha1.JoinToken
		want    string
		message string
		fix     func(*v1alpha1.JoinToken)
	}{
		{"a Secret of somebody else's is not overwritten", h.token("taken", v1alpha1.JoinTokenSpec{}), v1alpha1.ReasonFailed,
			"Secret muster-registration/taken does not belong to this JoinToken", func(*v1alpha1.JoinToken) {
				kept := h.secret(&v1alpha1.JoinToken{ObjectMeta: foreign.ObjectMeta})
				require.Equal(t, foreign.Data, kept.Data)
				require.NoError(t, h.Delete(t.Context(), foreign))
			}},
		{"an account that may do other things is not handed out", h.token("mighty", v1alpha1.JoinTokenSpec{}),
			v1alpha1.ReasonFailed,
			"ServiceAccount muster-registration/join-mighty does not belong to this JoinToken", func(*v1alpha1.JoinToken) {
				require.NoError(t, h.Delete(t.Context(), mighty))
			}},
		{"a label that nobody may give", h.token("label",
			v1alpha1.JoinTokenSpec{Labels: map[string]string{"kubernetes.io/os": "x"}}), v1alpha1.ReasonInvalidLabel,
			`spec.labels["kubernetes.io/os"]: is reserved`, func(token *v1alpha1.JoinToken) {
				require.Empty(t, h.owns(token))
				was := token.DeepCopy()
				token.Spec.Labels = map[string]string{"os": "x"}
				require.NoError(t, h.Patch(t.Context(), token, client.MergeFrom(was)))
			}},
	} {
		h.waitFor(test.token, test.want)
		require.Contains(t, test.token.Status.Conditions[0].Message, test.message, test.reason)
		test.fix(test.token)
		h.waitFor(test.token, v1alpha1.ReasonReady)
	}
}
