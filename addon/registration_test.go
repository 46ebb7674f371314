package addon_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
)

// reporter is an add-on whose agent reads ConfigMaps in its member's namespace on the hub.
type reporter struct{ echo }

func (reporter) Registration(addon.Input) *v1alpha1.TemplateRegistration {
	return readConfigMaps(v1alpha1.RegistrationToken)
}

// certified is a reporter with a certificate.
type certified struct{ echo }

func (certified) Registration(addon.Input) *v1alpha1.TemplateRegistration {
	return readConfigMaps(v1alpha1.RegistrationCertificate)
}

func readConfigMaps(by v1alpha1.RegistrationCredential) *v1alpha1.TemplateRegistration {
	return &v1alpha1.TemplateRegistration{Credential: by, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}}}
}

// registration returns the registration options for a hub in memory, whose certificate is in no client configuration.
func (h *hub) registration() *addon.Registration {
	return &addon.Registration{Server: h.memory.URL(), CA: h.memory.CertificateAuthority()}
}

// agentOf returns a client of the hub with the credential of an add-on's agent in its Works; nil: they have none.
func (h *hub) agentOf(name, member string) client.Client {
	h.T.Helper()
	for _, w := range h.works(name, member) {
		for _, m := range w.Spec.Manifests {
			if !strings.Contains(string(m.Raw), `"kind":"Secret"`) {
				continue
			}
			secret := &corev1.Secret{}
			require.NoError(h.T, json.Unmarshal(m.Raw, secret))
			config := &rest.Config{Host: h.Config.Host, BearerToken: string(secret.Data["token"])}
			config.TLSClientConfig = rest.TLSClientConfig{
				CAData: h.Config.CAData, CAFile: h.Config.CAFile, CertData: secret.Data[corev1.TLSCertKey],
				KeyData: secret.Data[corev1.TLSPrivateKeyKey],
			}
			if h.memory != nil {
				config.Dial, config.CAData = h.memory.DialContext, h.memory.CertificateAuthority()
			}
			require.NotEqual(h.T, len(config.BearerToken) > 0, len(config.CertData) > 0, "want either a token or a certificate")
			c, err := client.New(config, client.Options{Scheme: scheme})
			require.NoError(h.T, err)
			return c
		}
	}
	return nil
}

// TestRegistration checks that an agent has the requested access to the hub, in the namespace of its member, and no
// access after its removal.
func TestRegistration(t *testing.T) {
	for credential, reports := range map[v1alpha1.RegistrationCredential]func(echo) addon.Agent{
		v1alpha1.RegistrationToken:       func(e echo) addon.Agent { return reporter{e} },
		v1alpha1.RegistrationCertificate: func(e echo) addon.Agent { return certified{e} },
	} {
		t.Run(string(credential), func(t *testing.T) { testRegistration(t, reports) })
	}
}

func testRegistration(t *testing.T, reports func(echo) addon.Agent) {
	h := newHubOnPlane(t)
	err := h.Client.Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.RegistrationNamespace}})
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), err)
	h.members("a", "a-b")
	h.choose("all", "a", "a-b")
	h.runAgents()
	r := h.start(addon.Options{Agents: []addon.Agent{reports(echo{h.name("x")}), reports(echo{h.name("x-y")})},
		Registration: &addon.Registration{}})
	for _, name := range []string{"x", "x-y"} {
		h.addon(name, h.byPlacement("all"))
		for _, m := range []string{"a", "a-b"} {
			h.Holds(m+" has "+name, func() bool {
				addonOnMember := h.memberAddon(name, m)
				return isTrue(addonOnMember, v1alpha1.ConditionAvailable) && isTrue(addonOnMember,
					v1alpha1.ConditionRegistrationReady) &&
					addonOnMember.Status.Registration != nil
			})
		}
	}
	agent := h.agentOf("x", "a")
	require.NotNil(t, agent)
	list := func(namespace string) error {
		return agent.List(context.Background(), &corev1.ConfigMapList{}, client.InNamespace(namespace))
	}
	h.Holds("the agent has the requested access", func() bool { return list(h.namespaceOf("a")) == nil })
	require.True(t, apierrors.IsForbidden(list(h.namespaceOf("a-b"))), "ConfigMaps of another member")
	require.True(t, apierrors.IsForbidden(agent.List(t.Context(), &v1alpha1.MemberAddonList{},
		client.InNamespace(h.namespaceOf("a")))), "a kind that was not requested")
	require.NoError(t, h.agentOf("x-y", "a-b").List(t.Context(), &corev1.ConfigMapList{},
		client.InNamespace(h.namespaceOf("a-b"))))
	require.True(t, apierrors.IsForbidden(renewLease(t.Context(), agent, h.namespaceOf("a"), h.name("x-y"))),
		"the Lease of another add-on")
	r.quiet(t)
	r.stop()

	again := h.start(addon.Options{Agents: []addon.Agent{reports(echo{h.name("x")}), reports(echo{h.name("x-y")})},
		Registration: &addon.Registration{}})
	h.Holds("the controllers read Works", func() bool { return again.wire.Count("GET works") > 0 })
	again.quiet(t)
	require.Empty(t, again.wire.Writes(), "a restart must not issue credentials")

	h.choose("all", "a-b")
	h.Holds("the add-ons are removed from a", func() bool {
		return h.memberAddon("x", "a") == nil && h.memberAddon("x-y", "a") == nil
	})
	h.Holds("the access of the agent is revoked", func() bool {
		err := list(h.namespaceOf("a"))
		return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)
	})
	var left corev1.ServiceAccountList
	require.NoError(t, h.Client.List(t.Context(), &left, client.InNamespace(h.namespaceOf("a")),
		client.HasLabels{v1alpha1.AddonLabel}))
	require.Empty(t, left.Items)
}

func renewLease(ctx context.Context, agent client.Client, namespace, name string) error {
	lease := &coordinationv1.Lease{}
	if err := agent.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, lease); err != nil {
		return err
	}
	lease.Spec.RenewTime = new(metav1.NowMicro())
	return agent.Update(ctx, lease)
}
