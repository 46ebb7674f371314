package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/tenancy"
	tenancycrds "github.com/muster-sdk/muster/tenancy/crds"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// TestTenancy_Permissions checks both commands without ClusterSets, without a binding, and with a binding.
func TestTenancy_Permissions(t *testing.T) {
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
	require.NotContains(t, command("can-place", "-n", "tenant", "-o", "json"), "subject")
	require.Contains(t, command("who-may", "tenant-eu"), "No ClusterSetBinding grants a namespace the member tenant-eu.\n")
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

// TestTenancy_ClusterScope checks that who-may lists the subjects that may write ClusterPlacements, with the object
// that grants it. It checks that can-place lists only the ServiceAccounts of the namespace among them.
func TestTenancy_ClusterScope(t *testing.T) {
	plane := hub.ForTest(t)
	c, err := newClient(plane.Config())
	require.NoError(t, err)
	require.NoError(t, membershipcrds.Install(t.Context(), c))
	create := func(objects ...client.Object) {
		for _, object := range objects {
			require.NoError(t, c.Create(t.Context(), object))
			t.Cleanup(func() { _ = c.Delete(context.Background(), object) })
		}
	}
	role := func(name string, rule rbacv1.PolicyRule) client.Object {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}
	}
	bind := func(role string, subjects ...rbacv1.Subject) client.Object {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role + "-bound"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
	}
	group := []string{placementv1alpha1.GroupName}
	program := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "scoped", Name: "deployer"}
	// A ServiceAccount can be bound by the name of its user as well.
	const user = "system:serviceaccount:scoped:cleaner"
	create(
		&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "scoped"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "scoped"}},
		role("scoped-platform", rbacv1.PolicyRule{APIGroups: group, Resources: []string{"clusterplacements"},
			Verbs: []string{"create", "get"}}),
		bind("scoped-platform", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "platform-team"},
			program),
		role("scoped-sets", rbacv1.PolicyRule{APIGroups: group, Resources: []string{"clusterworksets"},
			Verbs: []string{"update", "patch", "delete"}}),
		bind("scoped-sets", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "anna"},
			rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}),
		role("scoped-readers", rbacv1.PolicyRule{APIGroups: group, Resources: []string{"clusterplacements"},
			Verbs: []string{"get"}}),
		bind("scoped-readers", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "bert"}),
		role("scoped-tenants", rbacv1.PolicyRule{APIGroups: group, Resources: []string{"placements"},
			Verbs: []string{"create"}}),
		bind("scoped-tenants", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "carl"}),
	)
	lines := func(args ...string) (lines []string) {
		t.Helper()
		code, out, errs := call(t, "", append(args, "--kubeconfig", plane.Kubeconfig())...)
		require.Zero(t, code, errs)
		for line := range strings.Lines(out) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		return lines
	}
	output := lines("who-may", "scoped")
	require.Contains(t, output, "Group platform-team create scoped-platform-bound scoped-platform")
	require.Contains(t, output, "ServiceAccount scoped/deployer create scoped-platform-bound scoped-platform")
	require.Contains(t, output, "User anna patch,update,delete scoped-sets-bound scoped-sets")
	const admin = "cluster-admin"
	require.Contains(t, output, "Group system:masters create,patch,update,delete "+admin+" "+admin)
	for _, reader := range []string{"bert", "carl"} {
		require.NotContains(t, strings.Join(output, "\n"), reader)
	}
	output = lines("can-place", "-n", "scoped")
	require.Contains(t, output, "ServiceAccount scoped/deployer create scoped-platform-bound scoped-platform")
	require.Contains(t, output, "User "+user+" patch,update,delete scoped-sets-bound scoped-sets")
	require.NotContains(t, strings.Join(output, "\n"), "platform-team")
	require.NotContains(t, strings.Join(lines("can-place", "-n", "default"), "\n"), "deployer")
	require.Contains(t, strings.Join(lines("who-may", "scoped", "-o", "json"), "\n"),
		`"clusterRoleBinding": "scoped-platform-bound"`)

	// A user without permission to read RBAC objects gets the namespaces, and an error that names the missing part.
	create(
		role("scoped-viewer", rbacv1.PolicyRule{APIGroups: []string{"", "membership.muster.dev", "tenancy.muster.dev"},
			Resources: []string{"namespaces", "memberclusters", "clustersets", "clustersetbindings", "selectiongrants"},
			Verbs:     []string{"get", "list"}}),
		bind("scoped-viewer", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "dora"}),
	)
	mustertest.Eventually(t, time.Minute, "the API server has observed the binding", func() error {
		code, out, errs := call(t, "", "who-may", "scoped", "--as", "dora", "--kubeconfig", plane.Kubeconfig())
		if code == 0 || !strings.Contains(errs, "does not contain the subjects that may write ClusterPlacements") {
			return fmt.Errorf("code %d, %q", code, errs)
		}
		require.NotContains(t, out, "SUBJECT")
		return nil
	})
}
