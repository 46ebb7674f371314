package registration_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon/internal/registration"
	"github.com/muster-sdk/muster/addon/internal/removal"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
)

func TestEnsure_NoRequestsAtRest(t *testing.T) { testkit.Virtual(t, testEnsureNoRequestsAtRest) }

func testEnsureNoRequestsAtRest(t *testing.T) {
	h := newHub(t)
	member := h.member("rest")
	var cached client.Reader
	mustertest.StartManager(t, h.config(h.wire), manager.Options{Scheme: scheme}, func(mgr manager.Manager) (err error) {
		cached, err = registration.NewCache(mgr, "")
		return err
	})
	t.Cleanup(synctest.Wait) // A watch of metadata never ends if it stops while an event is pending.
	wire := &wire{}
	registrar := h.registrar(wire, func(o *registration.Options) { o.Cache = cached })

	for _, credential := range credentials {
		request := h.request(member, strings.ToLower(string(credential)), credential)
		name := request.MemberAddon.Name
		h.registered(registrar, request)
		quiet := func() bool {
			wire.reset()
			result := h.registered(registrar, request)
			return result.Secret != nil && len(wire.all()) == 0
		}
		h.Holds("Ensure sends no requests", quiet)
		for range 3 {
			require.True(t, quiet(), "want no requests of later calls")
		}
		for _, object := range []client.Object{
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: "addon-" + name}},
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: "addon-" + name}},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: name}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: "addon-" + name}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: registrationNamespace, Name: member.Namespace + "." + name}},
		} {
			if _, account := object.(*corev1.ServiceAccount); account && credential != v1alpha1.RegistrationToken {
				continue
			}
			require.NoError(t, h.Client.Delete(t.Context(), object))
			h.Holds("the deleted object is created again", func() bool {
				_, err := registrar.Ensure(t.Context(), request)
				require.NoError(t, err)
				return h.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object) == nil
			})
			agent := h.agentOf(h.registered(registrar, request))
			h.Holds("the credential is valid", func() bool {
				return renew(agent, member.Namespace, name)(t.Context()) == nil
			})
			h.Holds("Ensure sends no requests", quiet)
		}
		require.Equal(t, client.ObjectKeyFromObject(request.MemberAddon),
			registration.MemberAddonOf(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: registrationNamespace,
				Name: member.Namespace + "." + name, Labels: map[string]string{v1alpha1.AddonLabel: name}}}))
	}
	var secrets corev1.SecretList
	require.NoError(t, cached.List(t.Context(), &secrets))
	for _, secret := range secrets.Items {
		require.Equal(t, registrationNamespace, secret.Namespace)
		require.Contains(t, secret.Labels, v1alpha1.AddonLabel, "want no Secrets of other components in the cache")
	}
}

func TestEnsure_EmptyCache(t *testing.T) { testkit.Virtual(t, testEnsureEmptyCache) }

func testEnsureEmptyCache(t *testing.T) {
	h := newHub(t)
	empty := fake.NewClientBuilder().WithScheme(scheme).Build()
	behind := h.registrar(h.wire, func(o *registration.Options) { o.Cache = empty })
	for _, credential := range credentials {
		request := h.request(h.member("stale-"+strings.ToLower(string(credential))), "x", credential)
		before := h.registered(h.Registrar, request)
		h.wire.reset()
		result := h.registered(behind, request)
		require.Equal(t, before.Secret, result.Secret)
		require.Zero(t, h.wire.writes)
		presence, err := behind.Present(t.Context(), "x", request.Member.Namespace)
		require.NoError(t, err)
		require.Equal(t, removal.Present, presence)
	}
}

func TestPermissions_AllAreUsed(t *testing.T) {
	h := newHubOnPlane(t)
	member := h.member("needed")
	used := map[string]bool{}
	for _, credential := range credentials {
		request := h.request(member, strings.ToLower(string(credential)), credential)
		h.registered(h.Registrar, request)
		request.Want.Rules, request.Want.Credential = nil, credentials[0]
		h.registered(h.Registrar, request)
		request.Want.Credential = credentials[1]
		_, err := h.Ensure(t.Context(), request)
		require.NoError(t, err)
		_, err = h.Revoke(t.Context(), request.MemberAddon.Name, member.Namespace)
		require.NoError(t, err)
	}
	for _, request := range h.wire.all() {
		used[request] = true
	}
	all, own := roles(t)
	granted := map[string]bool{}
	for _, rule := range append(all.Rules, own.Rules...) {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				granted[verb+" "+strings.Trim(rule.APIGroups[0]+"/"+resource, "/")] = true
			}
		}
	}
	for request := range granted {
		verb, resource, _ := strings.Cut(request, " ")
		switch {
		case verb == "watch" || verb == "list" && resource != "certificates.k8s.io/certificatesigningrequests":
			delete(granted, request) // for NewCache; see TestEnsure_NoRequestsAtRest
		case request == "approve certificates.k8s.io/signers", request == "patch coordination.k8s.io/leases",
			request == "update coordination.k8s.io/leases":
			delete(granted, request) // no agent uses the first one; the hub has the others only to grant them
		case request == "confine membership.muster.dev/hubs":
			delete(granted, request) // it restricts the user; see TestConfinement of membership/crds
		}
	}
	require.Equal(t, granted, used)
}
