package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/tenancy"
	tenancycrds "github.com/muster-sdk/muster/tenancy/crds"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// TestTenancy_CanPlaceAndWhoMay checks both commands without sets, without a binding, and with a binding.
func TestTenancy_CanPlaceAndWhoMay(t *testing.T) {
	plane := hub.ForTest(t)
	c, err := newClient(plane.Config())
	require.NoError(t, err)
	require.NoError(t, membershipcrds.Install(t.Context(), c))
	create := func(object client.Object) {
		require.NoError(t, c.Create(t.Context(), object))
		t.Cleanup(func() { _ = c.Delete(context.Background(), object) })
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}})
	for name, region := range map[string]string{"tenant-eu": "eu", "tenant-us": "us"} {
		create(&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"region": region}}})
	}
	command := func(args ...string) string {
		t.Helper()
		code, out, errs := call(t, "", append(args, "--kubeconfig", plane.Kubeconfig())...)
		require.Zero(t, code, errs)
		return out
	}
	require.Contains(t, command("can-place", "-n", "tenant"), "tenant-us", "the hub does not restrict namespaces")

	require.NoError(t, tenancycrds.Install(t.Context(), c))
	create(&tenancyv1alpha1.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: "europe"},
		Spec: tenancyv1alpha1.ClusterSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
			"region": "eu"}}},
	})
	require.Equal(t, tenancy.NotBound("tenant")+"\n", command("can-place", "-n", "tenant"))
	require.NotContains(t, command("who-may", "tenant-eu"), "europe")

	binding := &tenancyv1alpha1.ClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "use-europe",
			Finalizers: []string{tenancyv1alpha1.Finalizer}},
		Spec: tenancyv1alpha1.ClusterSetBindingSpec{ClusterSetName: "europe"},
	}
	create(binding)
	t.Cleanup(func() {
		binding.Finalizers = nil
		_ = c.Update(context.Background(), binding)
	})
	require.Equal(t, "NAMESPACE   MEMBER      CLUSTERSETBINDING   CLUSTERSET\ntenant      tenant-eu   use-europe        "+
		"  europe\n",
		command("can-place", "-n", "tenant"))
	require.Contains(t, command("who-may", "tenant-eu"), "tenant      tenant-eu   use-europe          europe\n")
	require.NotContains(t, command("who-may", "tenant-us"), "use-europe")
	require.Contains(t, command("who-may", "tenant-eu", "-o", "json"), `"binding": "use-europe"`)
}
