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

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestTaken checks that a kubeconfig that leads to another cluster admits no member, and that the Events contain the
// next step.
func TestTaken(t *testing.T) {
	w := newWorld(t)
	id := w.eastID()
	for _, test := range []struct {
		name, reason string
		prepare      func(*v1alpha1.MemberClusterSpec)
		want         string
	}{
		{"reserved", "the name is that of another cluster", func(s *v1alpha1.MemberClusterSpec) { s.ClusterID = "another" },
			"member reserved is cluster another, and its kubeconfig connects to cluster " + id},
		{"second", "the cluster is a member already, with an agent of its own", func(s *v1alpha1.MemberClusterSpec) {
			first := w.newMember("first", func(s *v1alpha1.MemberClusterSpec) {
				s.ClusterID, s.JoinMode, s.KubeConfigSecretRef = id, v1alpha1.JoinPull, nil
			})
			t.Cleanup(func() { _ = w.hub.Delete(context.Background(), first) })
		}, "which MemberCluster first has already"},
		{"silent", "it is not known which cluster it is", func(*v1alpha1.MemberClusterSpec) {
			w.proxy.Cut()
			t.Cleanup(w.proxy.Heal)
		}, "determine the identity of member silent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster := w.newMember(test.name, func(s *v1alpha1.MemberClusterSpec) { s.Accepted = new(true); test.prepare(s) })
			f := w.run(cluster)
			defer f.stop()
			mustertest.Eventually(t, timeout, test.reason, func() error {
				err := f.err()
				return orError(err != nil && strings.Contains(err.Error(), test.want), "it says %v", err)
			})
			w.remove(test.name)
			<-f.ended
			w.untilNothingLeft()
		})
	}
}

// TestPermissions checks that the roles contain no more permissions than necessary. All other tests show that they are
// sufficient.
func TestPermissions(t *testing.T) {
	w := newWorld(t)
	c, err := client.New(w.user(hubPlane.ForTest(t)), client.Options{Scheme: scheme, Mapper: w.hub.RESTMapper()})
	require.NoError(t, err)
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"mine":"now"}}}`))
	const registration, connections = membership.RegistrationNamespace, membership.ConnectionNamespace
	ctx := t.Context()
	for what, err := range map[string]error{
		"read Secrets of others":      c.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "any"}, &corev1.Secret{}),
		"list kubeconfigs":            c.List(ctx, &corev1.SecretList{}, client.InNamespace(connections)),
		"list bootstrap credentials":  c.List(ctx, &corev1.SecretList{}, client.InNamespace(registration)),
		"write bootstrap credentials": c.Create(ctx, &corev1.Secret{ObjectMeta: in(registration, "any")}),
		"make members":                c.Create(ctx, &v1alpha1.MemberCluster{ObjectMeta: in("", "any")}),
		"remove members":              c.Delete(ctx, &v1alpha1.MemberCluster{ObjectMeta: in("", "any")}),
		"judge members":               c.Status().Patch(ctx, &v1alpha1.MemberCluster{ObjectMeta: in("", "any")}, patch),
		"list JoinTokens":             c.List(ctx, &v1alpha1.JoinTokenList{}, client.InNamespace(registration)),
		"change JoinTokens":           c.Patch(ctx, &v1alpha1.JoinToken{ObjectMeta: in(registration, "any")}, patch),
		"count JoinTokens":            c.Status().Patch(ctx, &v1alpha1.JoinToken{ObjectMeta: in(registration, "any")}, patch),
		"make JoinTokens elsewhere":   c.Create(ctx, &v1alpha1.JoinToken{ObjectMeta: in("default", "any")}),
		"create JoinRequests":         c.Create(ctx, &v1alpha1.JoinRequest{ObjectMeta: in(registration, "any")}),
		"answer JoinRequests": c.Status().Patch(ctx, &v1alpha1.JoinRequest{ObjectMeta: in(registration, "any")},
			patch),
		"speak for members": c.Status().Patch(ctx, &v1alpha1.Membership{ObjectMeta: in("member-any", "self")},
			patch),
		"read Memberships": c.List(ctx, &v1alpha1.MembershipList{}),
		"make namespaces":  c.Create(ctx, &corev1.Namespace{ObjectMeta: in("", "any")}),
		"bind roles":       c.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: in(registration, "any")}),
		"make accounts":    c.Create(ctx, &corev1.ServiceAccount{ObjectMeta: in(registration, "any")}),
	} {
		require.True(t, apierrors.IsForbidden(err), "it may %s: %v", what, err)
	}
}
