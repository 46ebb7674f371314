package hub_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestPermissions checks that agents of both credential types, of members whose names have a common prefix, and a
// bootstrap credential have access only to their own objects. Kubernetes' own authorizer decides.
func TestPermissions(t *testing.T) {
	h := startHub(t, plane.ForTest(t), hub.Options{})
	bootstrap := h.token("permissions", v1alpha1.JoinTokenSpec{AutoAccept: true})

	credentials := map[string]client.Client{}
	for name, method := range map[string]registration.Method{"a": token.Method{}, "a-b": csr.Method{}} {
		c, err := client.New(h.admitted(bootstrap, name, method),
			client.Options{Scheme: newScheme(), Mapper: h.Client.RESTMapper()})
		require.NoError(t, err)
		defer h.remove(name)
		credentials["agent of "+name] = c
	}
	requester, err := client.New(bootstrap.RESTConfig(), client.Options{Scheme: newScheme(),
		Mapper: h.Client.RESTMapper()})
	require.NoError(t, err)

	const registrationNamespace = membership.RegistrationNamespace
	self := func(namespace string) *v1alpha1.Membership {
		return &v1alpha1.Membership{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: membership.MembershipName}}
	}
	lease := func(namespace, name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"mine":"now"}}}`))

	type attempt struct {
		name string
		do   func(context.Context, client.Client) error
	}
	get := func(name string, object client.Object) attempt {
		return attempt{"get " + name, func(ctx context.Context, c client.Client) error {
			return c.Get(ctx, client.ObjectKeyFromObject(object), object)
		}}
	}
	list := func(name string, list client.ObjectList, where ...client.ListOption) attempt {
		return attempt{"list " + name,
			func(ctx context.Context, c client.Client) error { return c.List(ctx, list, where...) }}
	}
	write := func(name string, object client.Object) []attempt {
		return []attempt{
			{"create " + name, func(ctx context.Context, c client.Client) error {
				return c.Create(ctx, object.DeepCopyObject().(client.Object))
			}},
			{"patch " + name, func(ctx context.Context, c client.Client) error {
				return c.Patch(ctx, object.DeepCopyObject().(client.Object), patch)
			}},
			{"delete " + name, func(ctx context.Context, c client.Client) error { return c.Delete(ctx, object) }},
		}
	}
	tokenOf := func(namespace, name string) attempt {
		return attempt{fmt.Sprintf("a token of ServiceAccount %s/%s", namespace, name),
			func(ctx context.Context, c client.Client) error {
				return c.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: in(namespace, name)},
					&authenticationv1.TokenRequest{})
			}}
	}
	signing := &certificatesv1.CertificateSigningRequest{ObjectMeta: in("", "mine"),
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: []byte("x"), SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		}}
	binding := &rbacv1.RoleBinding{ObjectMeta: in("", "mine"),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: membership.AgentClusterRole}}

	// The requests that no credential may send.
	forbiddenToAll := [][]attempt{
		write("MemberCluster", &v1alpha1.MemberCluster{ObjectMeta: in("", "a")}),
		write("Secret in kube-system", &corev1.Secret{ObjectMeta: in("kube-system", "mine")}),
		write("CertificateSigningRequest", signing),
		write("ClusterRole", &rbacv1.ClusterRole{ObjectMeta: in("", "mine")}),
		write("Namespace", &corev1.Namespace{ObjectMeta: in("", "mine")}),
		write("JoinToken", &v1alpha1.JoinToken{ObjectMeta: in(registrationNamespace, "permissions")}),
		write("Pod", &corev1.Pod{ObjectMeta: in("default", "mine")}),
		{
			get("MemberCluster", &v1alpha1.MemberCluster{ObjectMeta: in("", "a")}),
			get("the Secret of the JoinToken", &corev1.Secret{ObjectMeta: in(registrationNamespace, "permissions")}),
			get("JoinToken", &v1alpha1.JoinToken{ObjectMeta: in(registrationNamespace, "permissions")}),
			list("MemberClusters", &v1alpha1.MemberClusterList{}),
			list("Memberships everywhere", &v1alpha1.MembershipList{}),
			list("Leases everywhere", &coordinationv1.LeaseList{}),
			list("Secrets everywhere", &corev1.SecretList{}),
			list("JoinRequests", &v1alpha1.JoinRequestList{}, client.InNamespace(registrationNamespace)),
			list("Namespaces", &corev1.NamespaceList{}),
			list("CertificateSigningRequests", &certificatesv1.CertificateSigningRequestList{}),
			list("Nodes", &corev1.NodeList{}),
			tokenOf(registrationNamespace, "join-permissions"),
			tokenOf("kube-system", "namespace-controller"),
			tokenOf("member-a", membership.AgentName),
			tokenOf("default", "default"),
		},
	}
	// The requests that no agent may send, neither to the namespace of another member nor to its own.
	foreign := func(namespace string) [][]attempt {
		foreignBinding := binding.DeepCopy()
		foreignBinding.Namespace = namespace
		return [][]attempt{
			write("Membership in "+namespace, self(namespace)),
			write("Secret in "+namespace, &corev1.Secret{ObjectMeta: in(namespace, "mine")}),
			write("RoleBinding in "+namespace, foreignBinding),
			write("ServiceAccount in "+namespace, &corev1.ServiceAccount{ObjectMeta: in(namespace, "mine")}),
			write("ConfigMap in "+namespace, &corev1.ConfigMap{ObjectMeta: in(namespace, "mine")}),
			{
				get("Secret in "+namespace, &corev1.Secret{ObjectMeta: in(namespace, "mine")}),
				list("Secrets in "+namespace, &corev1.SecretList{}, client.InNamespace(namespace)),
				list("Leases in "+namespace, &coordinationv1.LeaseList{}, client.InNamespace(namespace)),
				get("another Lease in "+namespace, lease(namespace, "other")),
				{"delete the Lease in " + namespace, func(ctx context.Context, c client.Client) error {
					return c.Delete(ctx, lease(namespace, membership.LeaseName))
				}},
			},
		}
	}
	others := func(namespace string) [][]attempt {
		return append(foreign(namespace), []attempt{
			get("Membership in "+namespace, self(namespace)),
			get("Lease in "+namespace, lease(namespace, membership.LeaseName)),
			list("Memberships in "+namespace, &v1alpha1.MembershipList{}, client.InNamespace(namespace)),
			{"create a Lease in " + namespace,
				func(ctx context.Context, c client.Client) error { return c.Create(ctx, lease(namespace, "mine")) }},
			{"patch the status of the Membership in " + namespace, func(ctx context.Context, c client.Client) error {
				return c.Status().Patch(ctx, self(namespace), patch)
			}},
		})
	}
	request := &v1alpha1.JoinRequest{ObjectMeta: in(registrationNamespace, "mine"), Spec: v1alpha1.JoinRequestSpec{
		ClusterID: "x", Name: "x", ClaimKey: []byte{1}, Signature: []byte{1},
		Credential: v1alpha1.CredentialRequest{Type: v1alpha1.CredentialIdentity},
	}}
	withJoinRequests := []attempt{
		{"create a JoinRequest", func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, request.DeepCopy(), client.DryRunAll)
		}},
		get("JoinRequest", request.DeepCopy()),
	}
	withOtherObjects := []attempt{
		{"delete a JoinRequest", func(ctx context.Context, c client.Client) error { return c.Delete(ctx, request) }},
		{"patch a JoinRequest",
			func(ctx context.Context, c client.Client) error { return c.Patch(ctx, request.DeepCopy(), patch) }},
		{"answer a JoinRequest", func(ctx context.Context, c client.Client) error {
			return c.Status().Patch(ctx, request.DeepCopy(), patch)
		}},
		{"create a JoinRequest in another namespace", func(ctx context.Context, c client.Client) error {
			foreign := request.DeepCopy()
			foreign.Namespace = "default"
			return c.Create(ctx, foreign)
		}},
	}

	for _, test := range []struct {
		user    string
		client  client.Client
		refused [][]attempt
		allowed []attempt
	}{
		{
			"the agent of a", credentials["agent of a"],
			append(append(append(forbiddenToAll, others("member-a-b")...), foreign("member-a")...), withJoinRequests,
				withOtherObjects),
			[]attempt{
				get("its Membership", self("member-a")),
				get("its Lease", lease("member-a", membership.LeaseName)),
				{"patch the status of its Membership", func(ctx context.Context, c client.Client) error {
					return c.Status().Patch(ctx, self("member-a"), patch)
				}},
			},
		},
		{
			"the agent of a-b", credentials["agent of a-b"],
			append(append(append(forbiddenToAll, others("member-a")...), foreign("member-a-b")...), withJoinRequests,
				withOtherObjects),
			[]attempt{get("its Membership", self("member-a-b"))},
		},
		{
			"the bootstrap credential", requester,
			append(append(append(forbiddenToAll, others("member-a")...), foreign(registrationNamespace)...), withOtherObjects),
			withJoinRequests,
		},
	} {
		t.Run(test.user, func(t *testing.T) {
			for _, group := range test.refused {
				for _, attempt := range group {
					if err := attempt.do(t.Context(), test.client); !apierrors.IsForbidden(err) {
						t.Errorf("%s: %s: want Forbidden, got %v", test.user, attempt.name, err)
					}
				}
			}
			for _, attempt := range test.allowed {
				if err := attempt.do(t.Context(), test.client); client.IgnoreNotFound(err) != nil {
					t.Errorf("%s: %s: unexpected error: %v", test.user, attempt.name, err)
				}
			}
		})
	}
}

// admitted creates a JoinRequest, and returns the config of an agent with the issued credential.
func (h *testHub) admitted(bootstrap *registration.Bootstrap, name string, method registration.Method) *rest.Config {
	h.T.Helper()
	sender := newRequestSender(h.T, name, method, bootstrap)
	requester := h.requester(bootstrap)
	h.Eventually("a JoinRequest can be created", func() error { return requester.Create(h.T.Context(), sender.request) })
	return sender.config(h, bootstrap, h.request("id-"+name, v1alpha1.AnswerIssued, v1alpha1.ReasonIssued))
}

// testWithdrawnAcceptanceRevokesPermissions checks that the end of the acceptance revokes only the permissions of the
// credential: when the member is accepted again, the credential works again.
func testWithdrawnAcceptanceRevokesPermissions(t *testing.T, h *testHub) {
	bootstrap := h.token("withdrawn", v1alpha1.JoinTokenSpec{AutoAccept: true})
	for name, method := range map[string]registration.Method{"withdrawn-token": token.Method{},
		"withdrawn-csr": csr.Method{}} {
		c, err := client.New(h.admitted(bootstrap, name, method),
			client.Options{Scheme: newScheme(), Mapper: h.Client.RESTMapper()})
		require.NoError(t, err)
		read := func() error {
			return c.Get(t.Context(), client.ObjectKey{Namespace: "member-" + name, Name: membership.MembershipName},
				&v1alpha1.Membership{})
		}
		h.Eventually("the agent may read its Membership", read)
		// As long as the request exists, its token accepts the member again at once.
		require.NoError(t, h.Client.DeleteAllOf(t.Context(), &v1alpha1.JoinRequest{},
			client.InNamespace(membership.RegistrationNamespace)))
		for _, accepted := range []*bool{new(false), nil} {
			h.change(name, func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = accepted })
			h.Eventually("the agent has no access", func() error {
				err := read()
				return orError(apierrors.IsForbidden(err), "%v", err)
			})
			h.change(name, func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(true) })
			h.Eventually("the agent has access again", read)
		}
		h.remove(name)
	}
}
