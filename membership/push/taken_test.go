package push_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestRunner_OtherCluster checks that a kubeconfig of another cluster admits no member, and that the Events contain the
// next step.
func TestRunner_OtherCluster(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		prepare      func(*testHub, *v1alpha1.MemberClusterSpec)
		want         string // ID is the ID of the cluster
	}{
		{"reserved", "the name belongs to another cluster",
			func(_ *testHub, s *v1alpha1.MemberClusterSpec) { s.ClusterID = "another" },
			"member reserved is cluster another, and its kubeconfig connects to cluster ID"},
		{"second", "the cluster is already a member in pull mode", func(h *testHub, _ *v1alpha1.MemberClusterSpec) {
			first := h.newMember("first", func(s *v1alpha1.MemberClusterSpec) {
				s.ClusterID, s.JoinMode, s.KubeConfigSecretRef = h.eastID(), v1alpha1.JoinPull, nil
			})
			h.T.Cleanup(func() { _ = h.Client.Delete(context.Background(), first) })
		}, "which MemberCluster first has already"},
		{"silent", "the identity of the cluster is unknown", func(h *testHub, _ *v1alpha1.MemberClusterSpec) {
			h.proxy.Cut()
			h.T.Cleanup(h.proxy.Heal)
		}, "determine the identity of member silent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) {
				h := newMemoryHub(t)
				want := strings.ReplaceAll(test.want, "ID", h.eastID())
				cluster := h.newMember(test.name,
					func(s *v1alpha1.MemberClusterSpec) { s.Accepted = new(true); test.prepare(h, s) })
				f := h.run(cluster)
				defer f.stop()
				mustertest.Eventually(t, timeout, test.reason, func() error {
					err := f.err()
					return orError(err != nil && strings.Contains(err.Error(), want), "the error of the runner is %v", err)
				})
				h.remove(test.name)
				<-f.ended
				h.waitUntilClean()
			})
		})
	}
}

// TestPermissions checks that the roles contain no more permissions than necessary. All other tests show that they are
// sufficient.
func TestPermissions(t *testing.T) {
	h := newHub(t)
	c, err := client.New(h.pushUser(), client.Options{Scheme: scheme, Mapper: h.Client.RESTMapper()})
	require.NoError(t, err)
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"mine":"now"}}}`))
	const registration, connections = membership.RegistrationNamespace, membership.ConnectionNamespace
	ctx := t.Context()
	for operation, err := range map[string]error{
		"read Secrets in kube-system": c.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "any"},
			&corev1.Secret{}),
		"list kubeconfigs":            c.List(ctx, &corev1.SecretList{}, client.InNamespace(connections)),
		"list bootstrap credentials":  c.List(ctx, &corev1.SecretList{}, client.InNamespace(registration)),
		"write bootstrap credentials": c.Create(ctx, &corev1.Secret{ObjectMeta: in(registration, "any")}),
		"create members":              c.Create(ctx, &v1alpha1.MemberCluster{ObjectMeta: in("", "any")}),
		"remove members":              c.Delete(ctx, &v1alpha1.MemberCluster{ObjectMeta: in("", "any")}),
		"change the status of members": c.Status().Patch(ctx,
			&v1alpha1.MemberCluster{ObjectMeta: in("", "any")}, patch),
		"list JoinTokens":   c.List(ctx, &v1alpha1.JoinTokenList{}, client.InNamespace(registration)),
		"change JoinTokens": c.Patch(ctx, &v1alpha1.JoinToken{ObjectMeta: in(registration, "any")}, patch),
		"change the status of JoinTokens": c.Status().Patch(ctx,
			&v1alpha1.JoinToken{ObjectMeta: in(registration, "any")}, patch),
		"create JoinTokens in other namespaces": c.Create(ctx, &v1alpha1.JoinToken{ObjectMeta: in("default", "any")}),
		"create JoinRequests":                   c.Create(ctx, &v1alpha1.JoinRequest{ObjectMeta: in(registration, "any")}),
		"answer JoinRequests": c.Status().Patch(ctx, &v1alpha1.JoinRequest{ObjectMeta: in(registration, "any")},
			patch),
		"change the status of Memberships": c.Status().Patch(ctx, &v1alpha1.Membership{ObjectMeta: in("member-any", "self")},
			patch),
		"read Memberships":       c.List(ctx, &v1alpha1.MembershipList{}),
		"create namespaces":      c.Create(ctx, &corev1.Namespace{ObjectMeta: in("", "any")}),
		"bind roles":             c.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: in(registration, "any")}),
		"create ServiceAccounts": c.Create(ctx, &corev1.ServiceAccount{ObjectMeta: in(registration, "any")}),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: want Forbidden, got %v", operation, err)
	}
}
