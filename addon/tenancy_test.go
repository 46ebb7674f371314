package addon_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/tenancy"
	tenancycrds "github.com/muster-sdk/muster/tenancy/crds"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var tenantScheme = mustertest.Scheme(v1alpha1.AddToScheme, membershipv1alpha1.AddToScheme,
	placementv1alpha1.AddToScheme, workv1alpha1.AddToScheme, tenancyv1alpha1.AddToScheme)

// newTenantHub returns a hub in memory that runs the controllers of tenancy and of add-ons. The test writes the
// decisions of Placements, so that no other controller refuses a cluster before.
func newTenantHub(t testing.TB) *hub {
	t.Helper()
	s := testkit.Memory(t, tenantScheme, append(slices.Clone(installs), tenancycrds.Install)...)
	h := &hub{Hub: testkit.NewHub(t, s.Admin(), tenantScheme), memory: s}
	h.runAgents()
	mustertest.StartManager(t, s.Admin(), manager.Options{
		Scheme: tenantScheme, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	}, func(mgr manager.Manager) error {
		grants, err := tenancy.SetupWithManager(mgr, tenancy.Options{})
		if err != nil {
			return err
		}
		return addon.SetupWithManager(mgr, addon.Options{Tenancy: grants, Agents: []addon.Agent{echo{h.name("echo")}}})
	})
	return h
}

func (h *hub) bind(name, set string) {
	h.T.Helper()
	require.NoError(h.T, h.Client.Create(h.T.Context(), &tenancyv1alpha1.ClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name},
		Spec:       tenancyv1alpha1.ClusterSetBindingSpec{ClusterSetName: set},
	}))
}

// refused waits until an Addon reports that it may not be installed on a member, and returns the message.
func (h *hub) refused(addon, member string) (message string) {
	h.T.Helper()
	h.Holds("the Addon reports that member "+member+" is not allowed", func() bool {
		a := &v1alpha1.Addon{}
		require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Name: h.name(addon)}, a))
		c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionDegraded)
		if c == nil {
			return false
		}
		message = c.Message
		return c.Reason == v1alpha1.ReasonNotAllowed && strings.Contains(message, h.name(member))
	})
	return message
}

// TestTenancy_Install checks that an add-on is installed only on members that the bindings of the namespace of its
// Placement grant, whatever the PlacementDecisions contain, and that a member that has the add-on keeps it until the
// Placement leaves.
func TestTenancy_Install(t *testing.T) { testkit.Virtual(t, testTenancyInstall) }

func testTenancyInstall(t *testing.T) {
	h := newTenantHub(t)
	h.members("mine", "theirs")
	h.choose("all", "mine", "theirs")
	h.addon("echo", h.byPlacement("all"))
	message := h.refused("echo", "mine")
	require.Contains(t, message, "Namespace "+h.Namespace+" has no ClusterSetBinding")
	require.Contains(t, message, "kubectl apply -f -", "the message contains the command that creates a binding")
	require.Nil(t, h.memberAddon("echo", "mine"))

	set := &tenancyv1alpha1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "ours"}}
	require.NoError(t, h.Client.Create(t.Context(), set))
	h.bind("use", "mine")
	member := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: h.name("mine")}}
	label := func(team string) {
		mustertest.Change(t, h.Client, member, func(m *membershipv1alpha1.MemberCluster) { m.Labels["team"] = team })
	}
	label("ours")
	h.Holds("the granted member has the add-on", func() bool {
		return isTrue(h.memberAddon("echo", "mine"), v1alpha1.ConditionAvailable)
	})
	require.Contains(t, h.refused("echo", "theirs"),
		"Placement "+h.Namespace+"/all: no ClusterSetBinding of namespace "+h.Namespace+" grants the cluster")
	require.Nil(t, h.memberAddon("echo", "theirs"))
	require.Empty(t, h.works("echo", "theirs"))

	// The permission ends: the member keeps the add-on until the Placement leaves it.
	label("other")
	h.bind("again", tenancyv1alpha1.GlobalClusterSet)
	h.Holds("the other member has the add-on", func() bool {
		return isTrue(h.memberAddon("echo", "theirs"), v1alpha1.ConditionAvailable)
	})
	require.True(t, isTrue(h.memberAddon("echo", "mine"), v1alpha1.ConditionAvailable))
	b := &tenancyv1alpha1.ClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "again"}}
	require.NoError(t, h.Client.Delete(t.Context(), b))
	h.Holds("the binding is gone", func() bool {
		return client.IgnoreNotFound(h.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b)) == nil &&
			h.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b) != nil
	})
	h.choose("all", "theirs")
	h.Holds("the Placement has left", func() bool { return h.memberAddon("echo", "mine") == nil })
	require.True(t, isTrue(h.memberAddon("echo", "theirs"), v1alpha1.ConditionAvailable))
}

// TestTenancy_ClusterPlacement checks that an Addon that refers to a ClusterPlacement is installed on its members
// without a ClusterSetBinding, is not installed by a namespaced Placement with this name, and stays while the
// ClusterPlacement or its decisions are missing.
func TestTenancy_ClusterPlacement(t *testing.T) { testkit.Virtual(t, testTenancyClusterPlacement) }

func testTenancyClusterPlacement(t *testing.T) {
	h := newTenantHub(t)
	h.members("a", "b")
	require.NoError(t, h.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: placementv1alpha1.ClusterScopeNamespace}}))
	h.addon("echo", func(s *v1alpha1.AddonSpec) {
		s.Install = v1alpha1.InstallStrategy{Type: v1alpha1.InstallPlacements,
			Placements: []v1alpha1.PlacementInstall{{Name: "all"}}}
	})
	degraded := func(description, text string) {
		t.Helper()
		h.Holds(description, func() bool {
			a := &v1alpha1.Addon{}
			require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{Name: h.name("echo")}, a))
			c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionDegraded)
			return c != nil && strings.Contains(c.Message, text)
		})
	}
	const missing = "ClusterPlacement all does not exist"
	// Placements with the name of the ClusterPlacement.
	h.choose("all", "b")
	namesake := &placementv1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Name: "all",
		Namespace: placementv1alpha1.ClusterScopeNamespace}}
	h.decide(namesake, namesake, metav1.ObjectMeta{Namespace: namesake.Namespace, Name: "namesake-",
		Labels: map[string]string{placementv1alpha1.PlacementLabel: "all"}}, []string{"b"})
	degraded("the Addon names the missing ClusterPlacement", missing)
	require.Nil(t, h.memberAddon("echo", "b"))

	has := func(member string) bool { return isTrue(h.memberAddon("echo", member), v1alpha1.ConditionAvailable) }
	h.chooseClusterScoped("all", "a")
	h.Holds("the selected member has the add-on", func() bool { return has("a") })
	require.Equal(t, "/all", h.memberAddon("echo", "a").Annotations[v1alpha1.InstalledByAnnotation])
	require.Nil(t, h.memberAddon("echo", "b"))
	h.chooseClusterScoped("all", "a", "b")
	h.Holds("the added member has the add-on", func() bool { return has("b") })

	// Absence is not a request.
	decision := &placementv1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: placementv1alpha1.ClusterScopeNamespace, Name: "all-0"}}
	require.NoError(t, h.Client.Delete(t.Context(), decision))
	h.Holds("the ClusterPlacement is not decided", func() bool {
		a := &v1alpha1.Addon{}
		require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{Name: h.name("echo")}, a))
		return len(a.Status.Placements) == 1 &&
			strings.Contains(a.Status.Placements[0].Message, "does not exist or has no decision")
	})
	require.NoError(t, h.Client.Delete(t.Context(), &placementv1alpha1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{
		Name: "all"}}))
	degraded("the Addon names the deleted ClusterPlacement", missing)
	require.True(t, has("a") && has("b"))

	h.chooseClusterScoped("all", "b")
	h.Holds("the ClusterPlacement has left a member", func() bool { return h.memberAddon("echo", "a") == nil })
	require.True(t, has("b"))
	found, err := addon.Deliveries{Client: h.Client, Live: h.Client,
		ClusterOf: func(_ context.Context, namespace string) (string, error) { return namespace, nil },
	}.ClustersOf(t.Context(), client.ObjectKey{Name: "all"})
	require.NoError(t, err)
	require.Equal(t, []string{h.namespaceOf("b")}, found)
}
