package tenancy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	placementcrds "github.com/muster-sdk/muster/placement/crds"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/tenancy"
	"github.com/muster-sdk/muster/tenancy/crds"
	"github.com/muster-sdk/muster/tenancy/v1alpha1"
)

var plane = localplane.Shared{Options: localplane.Options{Name: "tenancy"}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

var scheme = mustertest.Scheme(v1alpha1.AddToScheme, placementv1alpha1.AddToScheme, membershipv1alpha1.AddToScheme)

const timeout = time.Minute

// hub is a namespace of a control plane with the definitions.
type hub struct{ *testkit.Hub }

func newHub(t *testing.T) *hub {
	return &hub{testkit.NewHub(t, plane.ForTest(t).Config(), scheme, crds.Install, placementcrds.Install,
		membershipcrds.Install)}
}

// start runs the controllers as a user with the role in the folder rbac, and no other permissions.
func (h *hub) start() (grants *tenancy.Grants, restricted *rest.Config) {
	h.T.Helper()
	role := mustertest.ClusterRole(h.T, "rbac/role.yaml")
	role.Name += "-" + h.Namespace
	require.NoError(h.T, mustertest.Grant(h.T.Context(), h.Client, h.Namespace, role))
	restricted = plane.ForTest(h.T).User(h.Namespace)
	options := manager.Options{
		Scheme: scheme, Controller: config.Controller{SkipNameValidation: new(true)},
		Metrics: metricsserver.Options{BindAddress: "0"},
	}
	mustertest.StartManager(h.T, restricted, options, func(mgr manager.Manager) (err error) {
		grants, err = tenancy.SetupWithManager(mgr, tenancy.Options{})
		return err
	})
	return grants, restricted
}

// binding returns an error while the condition Ready of a binding has another reason.
func (h *hub) binding(name, reason string) error {
	b := &v1alpha1.ClusterSetBinding{}
	if err := h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: h.Namespace, Name: name}, b); err != nil {
		return err
	}
	if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != reason {
		return fmt.Errorf("ClusterSetBinding %s has the status %+v", name, b.Status)
	}
	return nil
}

func (h *hub) member(name string, labels map[string]string) {
	h.T.Helper()
	member := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	require.NoError(h.T, h.Client.Create(h.T.Context(), member))
	h.T.Cleanup(func() { _ = h.Client.Delete(context.Background(), member) })
	meta.SetStatusCondition(&member.Status.Conditions, metav1.Condition{
		Type: membershipv1alpha1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: "Test", Message: "Set by a test.",
	})
	require.NoError(h.T, h.Client.Status().Update(h.T.Context(), member))
}

// TestControllers checks the status, the finalizers and the order of deletion, with the permissions of the role only.
func TestControllers(t *testing.T) {
	h := newHub(t)
	_, restricted := h.start()
	global := &v1alpha1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.GlobalClusterSet}}
	mustertest.Eventually(t, timeout, "ClusterSet global exists", func() error {
		return h.Client.Get(t.Context(), client.ObjectKeyFromObject(global), global)
	})
	require.Equal(t, &metav1.LabelSelector{}, global.Spec.Selector)

	h.member(h.Namespace+"-a", map[string]string{"tenant": h.Namespace})
	h.member(h.Namespace+"-b", map[string]string{"tenant": h.Namespace})
	b := &v1alpha1.ClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "use"},
		Spec:       v1alpha1.ClusterSetBindingSpec{ClusterSetName: h.Namespace},
	}
	require.NoError(t, h.Client.Create(t.Context(), b))
	mustertest.Eventually(t, timeout, "the set is reported as missing", func() error {
		return h.binding("use", v1alpha1.ReasonClusterSetNotFound)
	})

	set := &v1alpha1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: h.Namespace}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tenant": h.Namespace}}
	require.NoError(t, h.Client.Create(t.Context(), set))
	mustertest.Eventually(t, timeout, "the binding is ready", func() error {
		return h.binding("use", v1alpha1.ReasonReady)
	})
	mustertest.Eventually(t, timeout, "the set counts its clusters and bindings", func() error {
		if err := h.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if s := set.Status; s.Clusters != 2 || s.ReadyClusters != 2 || s.Bindings != 1 || len(set.Finalizers) != 1 {
			return fmt.Errorf("finalizers %v, status %+v", set.Finalizers, s)
		}
		return nil
	})

	// 25 Placements have a cluster by the binding.
	for i := range 25 {
		decision := &placementv1alpha1.PlacementDecision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: h.Namespace, Name: fmt.Sprintf("p-%02d-0", i),
				Labels: map[string]string{placementv1alpha1.PlacementLabel: fmt.Sprintf("p-%02d", i)},
			},
			Decisions: []placementv1alpha1.ClusterDecision{{ClusterName: "a", Binding: "use"}},
		}
		require.NoError(t, h.Client.Create(t.Context(), decision))
	}
	require.NoError(t, h.Client.Delete(t.Context(), set))
	require.NoError(t, h.Client.Delete(t.Context(), b))
	mustertest.Eventually(t, timeout, "the binding waits for its users", func() error {
		if err := h.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			return err
		}
		if s := b.Status; s.UserCount != 25 || len(s.Users) != v1alpha1.MaxUsers {
			return fmt.Errorf("status %+v", s)
		}
		return h.binding("use", v1alpha1.ReasonInUse)
	})
	mustertest.Eventually(t, timeout, "the set reports that it waits for the binding", func() error {
		if err := h.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Reason != v1alpha1.ReasonInUse || !strings.Contains(c.Message, h.Namespace+"/use") {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	require.NoError(t, h.Client.DeleteAllOf(t.Context(), &placementv1alpha1.PlacementDecision{},
		client.InNamespace(h.Namespace)))
	for _, object := range []client.Object{b, set} {
		mustertest.Eventually(t, timeout, object.GetName()+" does not exist", func() error {
			err := h.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("object %s exists: %w", object.GetName(), err)
		})
	}

	nothing := client.RawPatch("application/merge-patch+json", []byte("{}"))
	c, in := mustertest.Client(t, restricted, scheme), metav1.ObjectMeta{Namespace: h.Namespace, Name: "x"}
	for request, err := range map[string]error{
		"delete sets":           c.Delete(t.Context(), &v1alpha1.ClusterSet{ObjectMeta: in}),
		"update sets":           c.Update(t.Context(), &v1alpha1.ClusterSet{ObjectMeta: in}),
		"create bindings":       c.Create(t.Context(), &v1alpha1.ClusterSetBinding{ObjectMeta: in}),
		"delete bindings":       c.Delete(t.Context(), &v1alpha1.ClusterSetBinding{ObjectMeta: in}),
		"patch MemberClusters":  c.Patch(t.Context(), &membershipv1alpha1.MemberCluster{ObjectMeta: in}, nothing),
		"write decisions":       c.Update(t.Context(), &placementv1alpha1.PlacementDecision{ObjectMeta: in}),
		"read Placements":       c.List(t.Context(), &placementv1alpha1.PlacementList{}),
		"read Secrets":          c.List(t.Context(), &corev1.SecretList{}),
		"read roles":            c.List(t.Context(), &rbacv1.ClusterRoleList{}),
		"read namespaces":       c.List(t.Context(), &corev1.NamespaceList{}),
		"delete MemberClusters": c.Delete(t.Context(), &membershipv1alpha1.MemberCluster{ObjectMeta: in}),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: want Forbidden, got %v", request, err)
	}
}

// TestRole_LabelsOfNewMembers checks that the hub's role, together with that of membership, permits the creation of a
// MemberCluster whose labels add it to a ClusterSet.
func TestRole_LabelsOfNewMembers(t *testing.T) {
	h := newHub(t)
	set := &v1alpha1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: h.Namespace}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"of": h.Namespace}}
	require.NoError(t, h.Client.Create(t.Context(), set))
	t.Cleanup(func() { _ = h.Client.Delete(context.Background(), set) })
	create := rbacv1.PolicyRule{APIGroups: []string{"membership.muster.dev"}, Resources: []string{"memberclusters"},
		Verbs: []string{"create"}}
	user := func(suffix string, rules ...rbacv1.PolicyRule) client.Client {
		role := mustertest.ClusterRole(t, "rbac/role.yaml")
		role.Name += "-" + suffix + "-" + h.Namespace
		role.Rules = append(rules, create)
		require.NoError(t, mustertest.Grant(t.Context(), h.Client, role.Name, role))
		return mustertest.Client(t, plane.ForTest(t).User(role.Name), scheme)
	}
	member := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: h.Namespace,
		Labels: map[string]string{"of": h.Namespace}}}
	without := user("without")
	mustertest.Eventually(t, time.Minute, "the API server enforces the policy", func() error {
		err := without.Create(t.Context(), member.DeepCopy(), client.DryRunAll)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "may not bind. Grant") {
			return nil
		}
		return fmt.Errorf("creation without the permission: %w", err)
	})
	with := user("with", mustertest.ClusterRole(t, "rbac/role.yaml").Rules...)
	mustertest.Eventually(t, time.Minute, "the role is sufficient", func() error {
		return with.Create(t.Context(), member.DeepCopy(), client.DryRunAll)
	})
}
