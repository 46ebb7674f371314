package crds_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/mustertest"
)

// TestConfinement checks the operations that the policies deny to a hub with its own role, and with the role for
// agents of add-ons, although RBAC permits them, and that an administrator is not confined.
func TestConfinement(t *testing.T) {
	s := mustertest.Scheme()
	p := plane.ForTest(t)
	admin := mustertest.Client(t, p.Config(), s, crds.InstallPolicies, crds.InstallPolicies)
	member := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "member-confined", Labels: map[string]string{membership.MemberLabel: "confined"},
	}}
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "not-a-member"}}
	registration := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.RegistrationNamespace}}
	for _, namespace := range []*corev1.Namespace{member, other, registration} {
		require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), namespace)))
	}
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	for _, at := range []metav1.ObjectMeta{
		in(member.Name, "muster-agent"), in(member.Name, "addon-logs"), in(member.Name, "victim"), in(other.Name,
			"addon-logs"),
		in(registration.Name, "join-east"),
	} {
		require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: at})))
	}
	require.NoError(t, mustertest.GrantFiles(t.Context(), admin, "hub", "../hub/rbac/role.yaml",
		"../../addon/internal/registration/rbac/role.yaml"))
	confined := mustertest.Client(t, p.User("hub"), s)

	token := func(namespace, name string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			return c.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: in(namespace, name)},
				&authenticationv1.TokenRequest{})
		}
	}
	create := func(object client.Object) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
		}
	}
	role := func(namespace, name string) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: in(namespace, name), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"},
		}}}
	}
	deletion := func(object client.Object) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, object, client.DryRunAll) }
	}
	label := func(namespace *corev1.Namespace, value string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			next := &corev1.Namespace{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(namespace), next); err != nil {
				return err
			}
			metav1.SetMetaDataLabel(&next.ObjectMeta, membership.MemberLabel, value)
			return c.Update(ctx, next, client.DryRunAll)
		}
	}
	mustertest.Holds(t, time.Minute, "the API server enforces the policy", func() bool {
		return apierrors.IsForbidden(token(other.Name, "addon-logs")(t.Context(), confined))
	})
	for operation, attempt := range map[string]func(context.Context, client.Client) error{
		"a token of another ServiceAccount of a member's namespace": token(member.Name, "victim"),
		"a token in another namespace":                              token(other.Name, "addon-logs"),
		"a token in kube-system":                                    token(metav1.NamespaceSystem, "default"),
		"a ServiceAccount in another namespace": create(&corev1.ServiceAccount{ObjectMeta: in(
			other.Name, "addon-logs")}),
		"a Role that lets another user create tokens":  create(role(metav1.NamespaceSystem, "addon-logs")),
		"a Role with another name":                     create(role(member.Name, "mine")),
		"the deletion of another namespace":            deletion(other),
		"a member label on another namespace":          label(other, "confined"),
		"another member label on a member's namespace": label(member, "other"),
	} {
		err := attempt(t.Context(), confined)
		require.True(t, apierrors.IsForbidden(err), "%s: want Forbidden, got %v", operation, err)
		require.ErrorContains(t, err, `user "hub" is a hub, which`, operation)
		require.NoError(t, client.IgnoreAlreadyExists(attempt(t.Context(), admin)), "administrator: %s", operation)
	}
	for operation, attempt := range map[string]func(context.Context, client.Client) error{
		"a token of the agent":              token(member.Name, "muster-agent"),
		"a token of an add-on":              token(member.Name, "addon-logs"),
		"a token of a bootstrap credential": token(registration.Name, "join-east"),
		"a ServiceAccount of an add-on":     create(&corev1.ServiceAccount{ObjectMeta: in(member.Name, "addon-new")}),
		"a ServiceAccount of a JoinToken": create(&corev1.ServiceAccount{ObjectMeta: in(registration.Name,
			"join-new")}),
		"a Role of an add-on":                     create(role(member.Name, "addon-new")),
		"the deletion of the member's namespace":  deletion(member),
		"an update that keeps the member's label": label(member, "confined"),
	} {
		require.NoError(t, attempt(t.Context(), confined), operation)
	}
}

// TestConfinement_Leases checks that the agent of a member cannot fill its namespace with Leases.
func TestConfinement_Leases(t *testing.T) {
	s := mustertest.Scheme()
	p := plane.ForTest(t)
	admin := mustertest.Client(t, p.Config(), s, crds.InstallPolicies)
	member := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "member-leases", Labels: map[string]string{membership.MemberLabel: "leases"},
	}}
	require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), member)))
	shared := hub.AgentRole()
	require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), shared)))
	require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: member.Name, Name: "agent"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: shared.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "lease-agent"}},
	})))
	agent := mustertest.Client(t, p.User("lease-agent"), s)
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: member.Name, Name: name}}
	}
	i := 0
	var err error
	mustertest.Holds(t, time.Minute, "the API server enforces the policy", func() bool {
		i++
		err = agent.Create(t.Context(), lease(fmt.Sprintf("flood-%d", i)))
		return apierrors.IsForbidden(err)
	})
	require.ErrorContains(t, err, `user "lease-agent" may create only the Lease "heartbeat" in the namespace of a member`)
	require.NoError(t, agent.Create(t.Context(), lease(membership.LeaseName)))
	require.NoError(t, agent.Create(t.Context(), lease("probe"), client.DryRunAll))
	generated := lease("")
	generated.GenerateName = "flood-"
	require.True(t, apierrors.IsForbidden(agent.Create(t.Context(), generated)))
	require.NoError(t, admin.Create(t.Context(), lease("logs")), "the Lease of an add-on")
}
