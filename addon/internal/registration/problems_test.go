package registration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/registration"
	"github.com/muster-sdk/muster/addon/internal/removal"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
)

func TestEnsure_ProblemsOfConfiguration(t *testing.T) {
	testkit.Virtual(t, testEnsureProblemsOfConfiguration)
}

func testEnsureProblemsOfConfiguration(t *testing.T) {
	h := newHub(t)
	member := h.member("people")
	problem := func(request registration.Request) registration.Result {
		t.Helper()
		result, err := h.Ensure(t.Context(), request)
		require.NoError(t, err)
		require.NotNil(t, result.Problem)
		require.Equal(t, v1alpha1.ReasonRegistering, result.Problem.Reason)
		require.Equal(t, time.Minute, result.After)
		return result
	}
	tooMuch := []rbacv1.PolicyRule{hubRules[0],
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"get", "escalate"}}}
	notGranted := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"},
		Verbs: []string{"delete"}}}
	for name, test := range map[string]struct {
		rules []rbacv1.PolicyRule
		want  string
	}{
		"too-much": {tooMuch, "registration.rules[1].verbs[1]: Forbidden"},
		"not-held": {notGranted, "grant these rules to the hub's user"},
	} {
		request := h.request(member, name, "")
		request.Want.Rules = test.rules
		first := problem(request)
		require.Contains(t, first.Problem.Message, test.want)
		require.False(t, first.Problem.Retried, "want a problem that is not retried")
		require.Nil(t, first.Secret)
		require.Empty(t, h.objects(member, name), "want no objects without the permissions")

		request.Want.Rules = hubRules
		running := h.registered(h.Registrar, request)
		request.Want.Rules = test.rules
		after := problem(request)
		require.Equal(t, running.Secret, after.Secret, "want a running agent to keep its credential")
		require.Equal(t, health.Registered, after.Registration.State)
		h.clock.SetTime(h.clock.Now().Add(running.After + time.Second))
		require.NotEqual(t, running.Secret.Data["token"], problem(request).Secret.Data["token"],
			"want the credential of a running agent to be renewed")
		h.clock.SetTime(time.Now())
	}

	heartbeat := h.request(member, membership.LeaseName, "")
	require.Contains(t, problem(heartbeat).Problem.Message, "the member's own Lease has that name")
	heartbeat.Lease = false
	h.registered(h.Registrar, heartbeat)

	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: "addon-foreign"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: "addon-foreign"}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: "foreign"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: registrationNamespace, Name: member.Namespace + ".foreign"}},
	} {
		h.Create(object)
		request := h.request(member, "foreign", "")
		require.Contains(t, problem(request).Problem.Message, client.ObjectKeyFromObject(object).String()+
			" exists and does not belong")
		left, err := h.Revoke(t.Context(), "foreign", member.Namespace)
		require.NoError(t, err)
		require.Equal(t, removal.Absent, left, "want objects of other owners to be ignored")
		require.NoError(t, h.Client.Delete(t.Context(), object))
		h.registered(h.Registrar, request)
		_, err = h.Revoke(t.Context(), "foreign", member.Namespace)
		require.NoError(t, err)
		require.NoError(t, h.Client.Delete(t.Context(), request.MemberAddon))
	}
}

// unsigned is a reader of a hub without a signer.
type unsigned struct{ client.Reader }

func (u unsigned) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	err := u.Reader.Get(ctx, key, object, options...)
	if csr, ok := object.(*certificatesv1.CertificateSigningRequest); ok {
		csr.Status.Certificate = nil
	}
	return err
}

func TestEnsure_NoSigner(t *testing.T) { testkit.Virtual(t, testEnsureNoSigner) }

func testEnsureNoSigner(t *testing.T) {
	h := newHub(t)
	request := h.request(h.member("unsigned"), "x", v1alpha1.RegistrationCertificate)
	unsignedRegistrar := h.registrar(h.wire, func(o *registration.Options) { o.Live = unsigned{o.Live} })
	for range 3 {
		result, err := unsignedRegistrar.Ensure(t.Context(), request)
		require.NoError(t, err)
		require.Nil(t, result.Problem)
		require.Equal(t, time.Second, result.After)
	}
	h.clock.SetTime(h.clock.Now().Add(2 * time.Minute))
	for range 2 {
		result, err := unsignedRegistrar.Ensure(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, health.Registering, result.Registration.State)
		require.Contains(t, result.Problem.Message, "set the credential of the registration to Token")
		require.True(t, result.Problem.Retried)
		require.Equal(t, time.Minute, result.After)
	}
	h.clock.SetTime(time.Now())
	h.registered(h.Registrar, request) // the problem is solved
}

func TestEnsure_ErrorOfAPIServer(t *testing.T) { testkit.Virtual(t, testEnsureErrorOfAPIServer) }

func testEnsureErrorOfAPIServer(t *testing.T) {
	h := newHub(t)
	request := h.request(h.member("errors"), "x", "")
	broken := errors.New("broken before create serviceaccounts")
	failing := h.registrar(&wire{failAt: 3})
	result, err := failing.Ensure(t.Context(), request)
	require.ErrorContains(t, err, "register add-on x of member errors: create ServiceAccount member-errors/addon-x")
	require.ErrorContains(t, err, broken.Error())
	require.Equal(t, registration.Result{Registration: health.Registration{State: health.Registering}}, result)
}
