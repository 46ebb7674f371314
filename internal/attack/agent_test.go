package attack

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// work is a Work of a hub, with a ConfigMap.
func work(namespace, name string) *workv1alpha1.Work {
	object := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	object.Spec.Manifests = []workv1alpha1.Manifest{manifest(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
	})}
	return object
}

// TestAttack_Agent_OtherNamespaces checks that the credential of an agent reaches the namespace of its member and no
// other, and in that namespace nothing by which it could get more.
func TestAttack_Agent_OtherNamespaces(t *testing.T) {
	s := newScene(t, assembly.HubOptions{})
	agent, own := s.joinMember("confined-a")
	_, other := s.joinMember("confined-b")
	of := func(m *v1alpha1.MemberCluster, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: m.Status.Namespace, Name: name}
	}
	theirs := work(other.Status.Namespace, "theirs")
	s.createTemporary(theirs)
	membershipOf := func(m *v1alpha1.MemberCluster) *v1alpha1.Membership {
		object := &v1alpha1.Membership{}
		list := &v1alpha1.MembershipList{}
		require.NoError(t, s.admin.List(t.Context(), list, client.InNamespace(m.Status.Namespace)))
		require.Len(t, list.Items, 1)
		*object = list.Items[0]
		return object
	}
	lease := &coordinationv1.Lease{ObjectMeta: of(other, membership.LeaseName)}
	require.NoError(t, client.IgnoreAlreadyExists(s.admin.Create(t.Context(), lease)))
	require.NoError(t, s.admin.Get(t.Context(), client.ObjectKeyFromObject(lease), lease))
	require.NoError(t, agent.List(t.Context(), &workv1alpha1.WorkList{}, client.InNamespace(own.Status.Namespace)))

	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	s.requireForbidden(agent, map[string]attempt{
		"list the Works of another member": listing(&workv1alpha1.WorkList{}, other.Status.Namespace),
		"list all Works":                   listing(&workv1alpha1.WorkList{}, ""),
		"read a Work of another member":    reading(theirs),
		"change a Work of another member":  changing(theirs, func(w *workv1alpha1.Work) { w.Spec = work("x", "x").Spec }),
		"report for another member":        changingStatus(theirs, func(w *workv1alpha1.Work) { w.Status.Message = "x" }),
		"read another Membership":          reading(membershipOf(other)),
		"report for another Membership":    changingStatus(membershipOf(other), claimNothing),
		"renew the Lease of another member": changing(lease, func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity = new("x")
		}),
		"create a Lease for another member":  creation(&coordinationv1.Lease{ObjectMeta: of(other, "x")}),
		"create a Work for itself":           creation(work(own.Status.Namespace, "x")),
		"create a Work for another member":   creation(work(other.Status.Namespace, "x")),
		"change its Membership":              changing(membershipOf(own), labelMembership),
		"list members":                       listing(&v1alpha1.MemberClusterList{}, ""),
		"change its MemberCluster":           changing(own, changeClaim),
		"list JoinRequests":                  listing(&v1alpha1.JoinRequestList{}, membership.RegistrationNamespace),
		"list Secrets of its namespace":      listing(&corev1.SecretList{}, own.Status.Namespace),
		"list all Secrets":                   listing(&corev1.SecretList{}, ""),
		"list ConfigMaps":                    listing(&corev1.ConfigMapList{}, own.Status.Namespace),
		"list Placements":                    listing(&placementv1alpha1.PlacementList{}, ""),
		"list WorkSets":                      listing(&placementv1alpha1.WorkSetList{}, ""),
		"list MemberAddons of its namespace": listing(&addonv1alpha1.MemberAddonList{}, own.Status.Namespace),
		"list namespaces":                    listing(&corev1.NamespaceList{}, ""),
		"create a pod on the hub": creation(&corev1.Pod{ObjectMeta: of(own, "x"), Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "x", Image: "x"}}}}),
		"create a ServiceAccount": creation(&corev1.ServiceAccount{ObjectMeta: of(own, "addon-x")}),
		"create a RoleBinding": creation(&rbacv1.RoleBinding{ObjectMeta: of(own, "addon-x"), RoleRef: role,
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "x"}}}),
		"create a token of its ServiceAccount": func(ctx context.Context, c client.Client, o ...client.CreateOption) error {
			if len(o) > 0 {
				return nil // An administrator's token would be a credential.
			}
			return c.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: of(own, "muster-agent")},
				&authenticationv1.TokenRequest{})
		},
	})
}

func changeClaim(m *v1alpha1.MemberCluster) { m.Spec.Claim = strings.Repeat("0", 64) }

func claimNothing(m *v1alpha1.Membership) { m.Status.Claim = "x" }

// TestAttack_Agent_LeaseFlood checks that the credential of an agent cannot fill the namespace of its member with
// Leases.
func TestAttack_Agent_LeaseFlood(t *testing.T) {
	s := newScene(t, assembly.HubOptions{})
	agent, own := s.joinMember("leases")
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: own.Status.Namespace, Name: name}}
	}
	i := 0
	mustertest.Holds(t, timeout, "the API server enforces the policy", func() bool {
		i++
		return apierrors.IsForbidden(agent.Create(t.Context(), lease(fmt.Sprintf("flood-%d", i))))
	})
	for range 20 {
		i++
		err := agent.Create(t.Context(), lease(fmt.Sprintf("flood-%d", i)))
		require.True(t, apierrors.IsForbidden(err), "%v", err)
	}
	require.True(t, apierrors.IsForbidden(agent.Delete(t.Context(), lease(membership.LeaseName))))
}

// TestAttack_Agent_OversizedStatus checks that a status of an agent that is larger than the limits of the definitions
// is rejected by the API server, so that it is neither stored nor read by the caches of the hub.
func TestAttack_Agent_OversizedStatus(t *testing.T) {
	s := newScene(t, assembly.HubOptions{})
	agent, own := s.joinMember("oversized")
	list := &v1alpha1.MembershipList{}
	require.NoError(t, agent.List(t.Context(), list, client.InNamespace(own.Status.Namespace)))
	require.Len(t, list.Items, 1)
	current := &list.Items[0]
	report := func(change func(*v1alpha1.Membership)) error {
		next := current.DeepCopy()
		change(next)
		return agent.Status().Patch(t.Context(), next, client.MergeFrom(current))
	}
	require.NoError(t, report(func(m *v1alpha1.Membership) {
		m.Status.Properties = []v1alpha1.Property{{Name: "example.com/a", Value: "b"}}
	}))
	many := make([]v1alpha1.Property, 5000)
	for i := range many {
		many[i] = v1alpha1.Property{Name: fmt.Sprintf("example.com/p%d", i), Value: strings.Repeat("v", 100)}
	}
	for name, change := range map[string]func(*v1alpha1.Membership){
		"many properties": func(m *v1alpha1.Membership) { m.Status.Properties = many },
		"a long property": func(m *v1alpha1.Membership) {
			m.Status.Properties = []v1alpha1.Property{{Name: "example.com/a", Value: strings.Repeat("v", 1<<20)}}
		},
	} {
		err := report(change)
		require.True(t, apierrors.IsInvalid(err), "%s: %v", name, err)
	}
}

func labelMembership(m *v1alpha1.Membership) { m.Labels = map[string]string{"x": "y"} }
