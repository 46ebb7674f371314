package registration_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/internal/registration"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
)

// TestAgentsAreConfined checks agents of add-ons and on members with similar names against all objects that do not
// belong to them.
func TestAgentsAreConfined(t *testing.T) {
	for _, credential := range credentials {
		t.Run(string(credential), func(t *testing.T) {
			h := newHubOnPlane(t)
			prefix := map[v1alpha1.RegistrationCredential]string{v1alpha1.RegistrationToken: "confined-t",
				v1alpha1.RegistrationCertificate: "confined-c"}[credential]
			a, ab := h.member(prefix), h.member(prefix+"-b")
			requests := map[string]registration.Request{
				"x of a": h.request(a, "x", credential), "x-y of a": h.request(a, "x-y", credential),
				"x of a-b": h.request(ab, "x", credential),
			}
			h.exists(
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "there"}},
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ab.Namespace, Name: "there"}},
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "there"}},
				&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: membership.LeaseName}},
			)
			for requester, request := range requests {
				agent := h.agentOf(h.registered(h.Registrar, request))
				own, name := request.Member.Namespace, request.MemberAddon.Name
				other, otherAddon := ab.Namespace, "x-y"
				if own == other {
					other = a.Namespace
				}
				if name == otherAddon {
					otherAddon = "x"
				}
				for action, try := range map[string]func(context.Context) error{
					"renew its Lease": renew(agent, own, name),
					"read ConfigMaps": func(ctx context.Context) error {
						return agent.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(own))
					},
					"make a ConfigMap": func(ctx context.Context) error {
						return agent.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: own, GenerateName: "mine-"}})
					},
				} {
					h.Holds(fmt.Sprintf("%s may %s", requester, action), func() bool { return try(t.Context()) == nil })
				}
				for action, try := range forbidden(agent, own, name) {
					require.Truef(t, apierrors.IsForbidden(try(t.Context())), "%s must not %s: %v", requester, action,
						try(t.Context()))
				}
				for action, try := range map[string]func(context.Context) error{
					"renew the Lease of another add-on":      renew(agent, own, otherAddon),
					"renew the Lease of the member":          renew(agent, own, membership.LeaseName),
					"renew the Lease on another member":      renew(agent, other, name),
					"get the ServiceAccount of another":      get(agent, &corev1.ServiceAccount{}, own, "addon-"+otherAddon),
					"have a token of another":                tokenOf(agent, own, "addon-"+otherAddon),
					"have a token of that on another member": tokenOf(agent, other, "addon-"+name),
					"read ConfigMaps of another member":      get(agent, &corev1.ConfigMap{}, other, "there"),
					"read ConfigMaps of all": func(ctx context.Context) error {
						return agent.List(ctx,
							&corev1.ConfigMapList{})
					},
					"read ConfigMaps where the credentials are": get(agent, &corev1.ConfigMap{}, registrationNamespace, "there"),
				} {
					require.Truef(t, apierrors.IsForbidden(try(t.Context())), "%s must not %s: %v", requester, action,
						try(t.Context()))
				}
			}
		})
	}
}

func forbidden(agent client.Client, own, name string) map[string]func(context.Context) error {
	object := func(apiVersion, kind string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		return u
	}
	secret := func(ctx context.Context) error {
		return agent.Get(ctx, client.ObjectKey{Namespace: registrationNamespace, Name: own + "." + name}, &corev1.Secret{})
	}
	return map[string]func(context.Context) error{
		"read Secrets":                     get(agent, &corev1.Secret{}, own, "there"),
		"read the hub's Secret of its own": secret,
		"have another token of its own":    tokenOf(agent, own, "addon-"+name),
		"have a token of the member":       tokenOf(agent, own, membership.AgentName),
		"read its MemberAddon":             get(agent, &v1alpha1.MemberAddon{}, own, name),
		"read its Role":                    get(agent, &rbacv1.Role{}, own, "addon-"+name),
		"read Leases": func(ctx context.Context) error {
			return agent.List(ctx, &coordinationv1.LeaseList{}, client.InNamespace(own))
		},
		"delete its Lease": func(ctx context.Context) error {
			return agent.Delete(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: name}})
		},
		"make a Lease": func(ctx context.Context) error {
			return agent.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "mine"}})
		},
		"read a Namespace": get(agent, &corev1.Namespace{}, "", own),
		"read an Addon":    get(agent, &v1alpha1.Addon{}, "", name),
		"delete a ConfigMap, which it makes": func(ctx context.Context) error {
			return agent.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "there"}})
		},
		"read a ClusterRole": get(agent, object("rbac.authorization.k8s.io/v1", "ClusterRole"), "", "view"),
	}
}

func get(agent client.Client, object client.Object, namespace, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return agent.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	}
}

func renew(agent client.Client, namespace, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		return agent.Patch(ctx, lease,
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"renewTime":"2030-01-01T00:00:00.000000Z"}}`)))
	}
}

func tokenOf(agent client.Client, namespace, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		return agent.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
	}
}
