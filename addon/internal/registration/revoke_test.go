package registration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/registration"
	"github.com/muster-sdk/muster/addon/internal/removal"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
)

func TestRevoke_EndsAccess(t *testing.T) {
	h := newHubOnPlane(t)
	member := h.member("revoke")
	kept := h.agentOf(h.registered(h.Registrar, h.request(member, "x-y", v1alpha1.RegistrationToken)))
	for _, credential := range credentials {
		request := h.request(member, "x", credential)
		result := h.registered(h.Registrar, request)
		agent := h.agentOf(result)
		h.Holds("the agent renews its Lease", func() bool {
			return renew(agent, member.Namespace,
				"x")(t.Context()) == nil
		})
		presence, err := h.Present(t.Context(), "x", member.Namespace)
		require.NoError(t, err)
		require.Equal(t, removal.Present, presence)

		left, err := h.Revoke(t.Context(), "x", member.Namespace)
		require.NoError(t, err)
		require.Equal(t, removal.Absent, left)
		require.Empty(t, h.objects(member, "x"))
		list := func() error {
			return agent.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(member.Namespace))
		}
		h.Holds("the permissions of the agent end",
			func() bool { return apierrors.IsForbidden(list()) || apierrors.IsUnauthorized(list()) })
		if credential == v1alpha1.RegistrationToken {
			h.Holds("the token becomes invalid", func() bool {
				_,
					err := whoami(t, agent)
				return apierrors.IsUnauthorized(err)
			})
		}

		h.wire.reset()
		left, err = h.Revoke(t.Context(), "x", member.Namespace)
		require.NoError(t, err)
		require.Equal(t, removal.Absent, left)
		require.Zero(t, h.wire.writes)
		presence, err = h.Present(t.Context(), "x", member.Namespace)
		require.NoError(t, err)
		require.Equal(t, removal.Absent, presence)

		// After a new registration, the previous credential stays invalid.
		anew := h.registered(h.Registrar, request)
		h.Holds("the new credential is valid",
			func() bool { return renew(h.agentOf(anew), member.Namespace, "x")(t.Context()) == nil })
		require.Error(t, list())
		require.NoError(t, h.Client.Delete(t.Context(), request.MemberAddon))
		_, err = h.Revoke(t.Context(), "x", member.Namespace)
		require.NoError(t, err)
	}
	require.NoError(t, kept.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(member.Namespace)),
		"want the access of add-on x-y to stay")
	require.Len(t, h.objects(member, "x-y"), 5)
}

func TestRevoke_PendingCertificate(t *testing.T) {
	testkit.Virtual(t, testRevokePendingCertificate)
}

func testRevokePendingCertificate(t *testing.T) {
	h := newHub(t)
	request := h.request(h.member("pending"), "x", v1alpha1.RegistrationCertificate)
	result, err := h.Ensure(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, health.Registration{State: health.Registering, Message: "The certificate of the add-on agent " +
		"is not signed yet."}, result.Registration)
	require.Equal(t, time.Second, result.After)
	require.Nil(t, result.Secret)
	require.Len(t, h.signingRequests(request.Member), 1)
	require.Equal(t, "x", h.signingRequests(request.Member)[0].Labels[v1alpha1.AddonLabel])
	_, err = h.Revoke(t.Context(), "x", request.Member.Namespace)
	require.NoError(t, err)
	require.Empty(t, h.signingRequests(request.Member))
	require.Empty(t, h.objects(request.Member, "x"))
}

func TestEnsure_InterruptedAtEachWrite(t *testing.T) {
	testkit.Virtual(t, testEnsureInterruptedAtEachWrite)
}

func testEnsureInterruptedAtEachWrite(t *testing.T) {
	h := newHub(t)
	member := h.member("interrupted")
	for _, credential := range credentials {
		for _, lose := range []bool{false, true} {
			for n, broke := 1, true; broke; n++ {
				name := fmt.Sprintf("%c%c%d", strings.ToLower(string(credential))[0], map[bool]byte{false: 'b', true: 'a'}[lose], n)
				request := h.request(member, name, credential)
				broken := &wire{failAt: n, lose: lose}
				failing := h.registrar(broken)
				var err error
				h.Holds("the registration is complete or interrupted", func() bool {
					var result registration.Result
					result, err = failing.Ensure(t.Context(), request)
					return err != nil || result.Registration.State == health.Registered
				})
				broke = err != nil

				after := &wire{}
				agent := h.agentOf(h.registered(h.registrar(after), request))
				h.Holds("the agent renews its Lease", func() bool {
					return renew(agent, member.Namespace, name)(t.Context()) == nil
				})
				require.Empty(t, h.signingRequests(member), name)
				want := map[v1alpha1.RegistrationCredential]int{v1alpha1.RegistrationToken: 5,
					v1alpha1.RegistrationCertificate: 4}[credential]
				require.Len(t, h.objects(member, name), want, name)
				tokens := broken.of("create serviceaccounts/token") + after.of("create serviceaccounts/token")
				require.LessOrEqual(t, tokens, 2, "want at most two tokens: one that was lost, and one that was stored")
				keys := broken.of("create certificates.k8s.io/certificatesigningrequests") +
					after.of("create certificates.k8s.io/certificatesigningrequests")
				require.LessOrEqual(t, keys, 2)

				revoking := h.registrar(&wire{failAt: n, lose: lose})
				if _, err := revoking.Revoke(t.Context(), name, member.Namespace); err != nil {
					presence, err := h.Present(t.Context(), name, member.Namespace)
					require.NoError(t, err)
					if !lose {
						require.Equal(t, removal.Present, presence, name)
					}
				}
				left, err := h.Revoke(t.Context(), name, member.Namespace)
				require.NoError(t, err)
				require.Equal(t, removal.Absent, left)
				require.Empty(t, h.objects(member, name))
			}
		}
	}
}

func TestEnsure_AnotherHolder(t *testing.T) { testkit.Virtual(t, testEnsureAnotherHolder) }

func testEnsureAnotherHolder(t *testing.T) {
	h := newHub(t)
	for _, credential := range credentials {
		member := h.member("holder-" + strings.ToLower(string(credential)))
		request := h.request(member, "x", credential)
		first := h.registered(h.Registrar, request)
		old := h.agentOf(first)
		for reason, change := range map[string]func(){
			"a takeover": func() { request.Member.Claim = "claim-of-another" },
			"a new MemberAddon": func() {
				require.NoError(t, h.Client.Delete(t.Context(), request.MemberAddon))
				request.MemberAddon = &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: "x"}}
				h.Create(request.MemberAddon)
			},
		} {
			change()
			result, _ := h.Ensure(t.Context(), request) // can fail while objects of the previous owner are garbage-collected
			if result.Secret != nil {
				require.NotEqual(t, first.Secret.Data, result.Secret.Data, "%s: want a new credential", reason)
			}
			h.Holds(reason, func() bool { return renew(old, member.Namespace, "x")(t.Context()) != nil })
			h.Holds("the new credential is valid", func() bool {
				first, _ = h.Ensure(t.Context(), request)
				if first.Secret == nil {
					return false
				}
				old = h.agentOf(first)
				return renew(old, member.Namespace, "x")(t.Context()) == nil
			})
			var binding rbacv1.RoleBinding
			require.NoError(t,
				h.Client.Get(t.Context(), client.ObjectKey{Namespace: member.Namespace, Name: "addon-x"}, &binding))
			require.Equal(t, request.MemberAddon.UID, binding.OwnerReferences[0].UID)
		}
	}
}
