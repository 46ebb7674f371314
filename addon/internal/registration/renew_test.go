package registration_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/registration"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
)

// withoutWant is the request of a controller that does not know the desired access.
func withoutWant(of registration.Request) registration.Request {
	return registration.Request{MemberAddon: of.MemberAddon, Member: of.Member, InstallNamespace: of.InstallNamespace}
}

// TestRenew_KeepsAccess: the existing access is maintained while the desired access is unknown.
func TestRenew_KeepsAccess(t *testing.T) { testkit.Virtual(t, testRenewKeepsAccess) }

func testRenewKeepsAccess(t *testing.T) {
	h := newHub(t)
	member := h.member("kept")
	for _, credential := range credentials {
		request := h.request(member, strings.ToLower(string(credential)), credential)
		name := request.MemberAddon.Name
		h.wire.reset()
		none, err := h.Renew(t.Context(), withoutWant(request))
		require.NoError(t, err)
		require.Equal(t, registration.Result{}, none, "want no credential without existing access")
		require.Zero(t, h.wire.writes)

		request.Want.ExpirationSeconds = new(int32(7200))
		first := h.registered(h.Registrar, request)
		h.wire.reset()
		kept, err := h.Renew(t.Context(), withoutWant(request))
		require.NoError(t, err)
		require.Zero(t, h.wire.writes)
		require.Equal(t, first.Secret, kept.Secret)
		require.Equal(t, first.Registration, kept.Registration)
		require.True(t, equality.Semantic.DeepEqual(first.Status, kept.Status))

		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: name}}
		require.NoError(t, h.Client.Delete(t.Context(), lease))
		_, err = h.Renew(t.Context(), withoutWant(request))
		require.NoError(t, err)
		require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(lease), lease),
			"want the deleted Lease to be created again")
		agent := h.agentOf(kept)
		h.Holds("the credential is valid", func() bool {
			return renew(agent, member.Namespace, name)(t.Context()) == nil
		})
		h.wire.reset()
		h.registered(h.Registrar, request)
		require.Zero(t, h.wire.writes, "Ensure finds everything up to date")
	}
}

// TestRenew_IssuesCredential checks that a credential is issued again: in time, for another holder, and if the Secret
// was lost.
func TestRenew_IssuesCredential(t *testing.T) { testkit.Virtual(t, testRenewIssuesCredential) }

func testRenewIssuesCredential(t *testing.T) {
	h := newHub(t)
	request := h.request(h.member("anew"), "x", v1alpha1.RegistrationToken)
	request.Want.ExpirationSeconds = new(int32(7200))
	first := h.registered(h.Registrar, request)
	h.clock.SetTime(h.clock.Now().Add(first.After + time.Second))
	h.wire.reset()
	second, err := h.Renew(t.Context(), withoutWant(request))
	require.NoError(t, err)
	require.Equal(t, 2, h.wire.writes)
	require.NotEqual(t, first.Secret.Data["token"], second.Secret.Data["token"])
	require.Less(t, time.Until(second.Status.ExpirationTime.Time), 3*time.Hour,
		"want the lifetime of the previous credential")
	h.clock.SetTime(time.Now())

	old := h.agentOf(second)
	h.Holds("the credential is valid", func() bool {
		return renew(old, request.Member.Namespace,
			"x")(t.Context()) == nil
	})
	request.Member.Claim = "claim-of-another"
	third, err := h.Renew(t.Context(), withoutWant(request))
	require.NoError(t, err)
	require.NotEqual(t, second.Secret.Data["token"], third.Secret.Data["token"])
	h.Holds("the access of the previous holder is revoked",
		func() bool { return renew(old, request.Member.Namespace, "x")(t.Context()) != nil })
	h.Holds("the new holder has access",
		func() bool { return renew(h.agentOf(third), request.Member.Namespace, "x")(t.Context()) == nil })

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: registrationNamespace,
		Name: request.Member.Namespace + ".x"}}
	require.NoError(t, h.Client.Delete(t.Context(), secret))
	request.MemberAddon.Status.Registration = third.Status
	fourth, err := h.Renew(t.Context(), withoutWant(request))
	require.NoError(t, err)
	require.Equal(t, third.Status.Subject, fourth.Status.Subject)
	require.NotNil(t, fourth.Secret)

	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: request.Member.Namespace, Name: "addon-x"}}
	require.NoError(t, h.Client.Delete(t.Context(), role))
	h.wire.reset()
	lost, err := h.Renew(t.Context(), withoutWant(request))
	require.NoError(t, err)
	require.Zero(t, h.wire.writes)
	require.Contains(t, lost.Problem.Message, "Role member-anew/addon-x of the add-on agent does not exist")
	require.True(t, lost.Problem.Retried)
	require.Equal(t, health.Registering, lost.Registration.State)
}

// interrupted is a reader that fails after some reads.
type interrupted struct {
	client.Reader
	left int
}

func (i *interrupted) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	if i.left--; i.left < 0 {
		return errors.New("the API server does not answer")
	}
	return i.Reader.Get(ctx, key, object, options...)
}

// TestRenew_KeepsAccessOnReadErrors checks that an agent keeps its access, whether or not the API server responds
// during the renewal.
func TestRenew_KeepsAccessOnReadErrors(t *testing.T) {
	testkit.Virtual(t, testRenewKeepsAccessOnReadErrors)
}

func testRenewKeepsAccessOnReadErrors(t *testing.T) {
	h := newHub(t)
	request := h.request(h.member("silent"), "x", v1alpha1.RegistrationToken)
	first := h.registered(h.Registrar, request)
	h.clock.SetTime(h.clock.Now().Add(first.After + time.Second))
	defer h.clock.SetTime(time.Now())
	live := &interrupted{}
	failing := h.registrar(h.wire, func(o *registration.Options) { live.Reader, o.Cache, o.Live = o.Live, o.Live, live })
	for reads := range 5 {
		for request, call := range map[string]func() (registration.Result, error){
			"ensured": func() (registration.Result, error) { return failing.Ensure(t.Context(), request) },
			"renewed": func() (registration.Result, error) { return failing.Renew(t.Context(), withoutWant(request)) },
		} {
			live.left = reads
			got, err := call()
			require.ErrorContains(t, err, "the API server does not answer", request)
			require.Equal(t, first.Secret, got.Secret, request)
			require.True(t, equality.Semantic.DeepEqual(first.Status, got.Status), request)
			require.Equal(t, health.Registered, got.Registration.State, request)
		}
	}
}

// TestKnown_AnyObject checks that any object in the cache is sufficient to know that there is access to revoke.
func TestKnown_AnyObject(t *testing.T) { testkit.Virtual(t, testKnownAnyObject) }

func testKnownAnyObject(t *testing.T) {
	h := newHub(t)
	request := h.request(h.member("known"), "x", v1alpha1.RegistrationToken)
	known := func() bool {
		exists, err := h.Known(t.Context(), "x", request.Member.Namespace)
		require.NoError(t, err)
		return exists
	}
	require.False(t, known())
	_, err := h.registrar(&wire{failAt: 2}).Ensure(t.Context(), request)
	require.Error(t, err)
	require.True(t, known(), "want access after an interrupted registration")
	_, err = h.Revoke(t.Context(), "x", request.Member.Namespace)
	require.NoError(t, err)
	require.False(t, known())
}

// TestIsManifest checks that the Secret for a member is distinguished from other Secrets of the add-on.
func TestIsManifest(t *testing.T) {
	secret := func(addon string, keys ...string) *corev1.Secret {
		out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.AddonLabel: addon}},
			Data: map[string][]byte{}}
		for _, key := range keys {
			out.Data[key] = []byte(key)
		}
		return out
	}
	for _, test := range []struct {
		reason string
		secret *corev1.Secret
		want   bool
	}{
		{"the Secret of a token", secret("x", "kubeconfig", "token"), true},
		{"the Secret of a certificate", secret("x", "kubeconfig", "tls.crt", "tls.key"), true},
		{"the Secret of another add-on", secret("x-y", "kubeconfig", "token"), false},
		{"a kubeconfig without a credential", secret("x", "kubeconfig"), false},
		{"a credential with an additional key", secret("x", "kubeconfig", "token", "color"), false},
		{"a certificate without a kubeconfig", secret("x", "ca.crt", "tls.crt", "tls.key"), false},
		{"an empty Secret", secret("x"), false},
	} {
		t.Run(test.reason, func(t *testing.T) { require.Equal(t, test.want, registration.IsManifest(test.secret, "x")) })
	}
}
