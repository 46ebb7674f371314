package jointoken

import (
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/registration/internal/regtest"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestBootstrapCredentialMayDoNothingElse checks that a bootstrap credential can only create and get JoinRequests.
func TestBootstrapCredentialMayDoNothingElse(t *testing.T) {
	h := newHub(t, onPlane(t))
	other := h.waitFor(h.token("other", v1alpha1.JoinTokenSpec{}), v1alpha1.ReasonReady)
	for name, kind := range map[string]v1alpha1.JoinTokenType{
		"account": v1alpha1.JoinTokenServiceAccount, "bootstrap-token-join01": v1alpha1.JoinTokenBootstrapToken,
	} {
		token := h.waitFor(h.token(name, v1alpha1.JoinTokenSpec{Type: kind}), v1alpha1.ReasonReady)
		t.Run(string(kind), func(t *testing.T) { testPermissions(t, h, token, other) })
	}
}

func testPermissions(t *testing.T, h *hub, token, other *v1alpha1.JoinToken) {
	bootstrap := h.bootstrap(token)
	request, err := h.createRequest(bootstrap, "east-id")
	require.NoError(t, err, "create")
	agent, err := client.NewWithWatch(bootstrap.RESTConfig(), client.Options{Scheme: regtest.Scheme()})
	require.NoError(t, err)
	found := &v1alpha1.JoinRequest{}
	require.NoError(t, agent.Get(t.Context(), client.ObjectKeyFromObject(request), found), "get")

	ctx, in := t.Context(), client.InNamespace(namespace)
	here := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	for operation, try := range map[string]func() error{
		"list requests": func() error { return agent.List(ctx, &v1alpha1.JoinRequestList{}, in) },
		"watch requests": func() error {
			w, err := agent.Watch(ctx, &v1alpha1.JoinRequestList{}, in)
			if err == nil {
				w.Stop()
			}
			return err
		},
		"update a request": func() error { return agent.Update(ctx, found.DeepCopy()) },
		"patch a request": func() error {
			return agent.Patch(ctx, found.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{}`)))
		},
		"delete a request":               func() error { return agent.Delete(ctx, found.DeepCopy()) },
		"delete all requests":            func() error { return agent.DeleteAllOf(ctx, &v1alpha1.JoinRequest{}, in) },
		"change the status of a request": func() error { return agent.Status().Update(ctx, found.DeepCopy()) },
		"create a request in another namespace": func() error {
			return agent.Create(ctx, &v1alpha1.JoinRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"},
				Spec: found.Spec})
		},
		"get a request in another namespace": func() error {
			return agent.Get(ctx, client.ObjectKey{Namespace: "default", Name: "x"}, &v1alpha1.JoinRequest{})
		},
		"read its own Secret": func() error {
			return agent.Get(ctx, client.ObjectKeyFromObject(token), &corev1.Secret{})
		},
		"read another token's Secret": func() error {
			return agent.Get(ctx, client.ObjectKeyFromObject(other), &corev1.Secret{})
		},
		"list Secrets": func() error { return agent.List(ctx, &corev1.SecretList{}, in) },
		"read its JoinToken": func() error {
			return agent.Get(ctx, client.ObjectKeyFromObject(token), &v1alpha1.JoinToken{})
		},
		"create a JoinToken": func() error {
			return agent.Create(ctx,
				&v1alpha1.JoinToken{ObjectMeta: here("mine"), Spec: v1alpha1.JoinTokenSpec{AutoAccept: true}})
		},
		"change the status of a JoinToken": func() error {
			return agent.Status().Update(ctx,
				token.DeepCopy())
		},
		"list MemberClusters": func() error { return agent.List(ctx, &v1alpha1.MemberClusterList{}) },
		"create a MemberCluster": func() error {
			return agent.Create(ctx, &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "mine"}})
		},
		"list Memberships": func() error { return agent.List(ctx, &v1alpha1.MembershipList{}) },
		"list Leases":      func() error { return agent.List(ctx, &coordinationv1.LeaseList{}) },
		"create a CSR": func() error {
			return agent.Create(ctx, &certificatesv1.CertificateSigningRequest{
				ObjectMeta: metav1.ObjectMeta{Name: "mine"},
				Spec: certificatesv1.CertificateSigningRequestSpec{
					Request: []byte("x"), SignerName: certificatesv1.KubeAPIServerClientSignerName,
					Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
				},
			})
		},
		"list CSRs": func() error { return agent.List(ctx, &certificatesv1.CertificateSigningRequestList{}) },
		"create a token of its ServiceAccount": func() error {
			return agent.SubResource("token").Create(ctx, h.account(token), &authenticationv1.TokenRequest{})
		},
		"create a token of another ServiceAccount": func() error {
			return agent.SubResource("token").Create(ctx, h.account(other), &authenticationv1.TokenRequest{})
		},
		"impersonate": func() error {
			config := bootstrap.RESTConfig()
			config.Impersonate.UserName, config.Impersonate.Groups = "root", []string{"system:masters"}
			return regtest.Client(t, config).List(ctx, &corev1.SecretList{}, in)
		},
		"bind a role": func() error {
			return agent.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: here("mine"),
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"}})
		},
		"list pods":          func() error { return agent.List(ctx, &corev1.PodList{}, in) },
		"list namespaces":    func() error { return agent.List(ctx, &corev1.NamespaceList{}) },
		"list nodes":         func() error { return agent.List(ctx, &corev1.NodeList{}) },
		"read its namespace": func() error { return agent.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{}) },
		"read a bootstrap token": func() error {
			return agent.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: token.Name}, &corev1.Secret{})
		},
		"list bootstrap tokens": func() error {
			return agent.List(ctx, &corev1.SecretList{}, client.InNamespace(metav1.NamespaceSystem))
		},
		"list ConfigMaps in kube-system": func() error {
			return agent.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("kube-system"))
		},
		"review another token": func() error { return agent.Create(ctx, &authenticationv1.TokenReview{}) },
		"run a pod":            func() error { return agent.Create(ctx, &corev1.Pod{ObjectMeta: here("mine")}) },
		"create a ServiceAccount": func() error {
			return agent.Create(ctx,
				&corev1.ServiceAccount{ObjectMeta: here("mine")})
		},
		"delete its namespace": func() error {
			return agent.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		},
	} {
		if err := try(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: want Forbidden, got %v", operation, err)
		}
	}

	// All other operations: the API server lists the permissions of the credential. Those of all authenticated users
	// are not checked.
	review, err := kubernetes.NewForConfigOrDie(bootstrap.RESTConfig()).AuthorizationV1().SelfSubjectRulesReviews().
		Create(ctx,
			&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}},
			metav1.CreateOptions{})
	require.NoError(t, err)
	for _, rule := range review.Status.ResourceRules {
		switch rule.APIGroups[0] {
		case "authorization.k8s.io", "authentication.k8s.io": // reviews of the own permissions
			require.Equal(t, []string{"create"}, rule.Verbs)
		default:
			require.Equal(t, []string{"joinrequests"}, rule.Resources)
			require.ElementsMatch(t, []string{"create", "get"}, rule.Verbs)
		}
	}
}
