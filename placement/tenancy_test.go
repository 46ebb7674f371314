package placement_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/crds"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/tenancy"
	tenancycrds "github.com/muster-sdk/muster/tenancy/crds"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
)

var tenantScheme = mustertest.Scheme(v1alpha1.AddToScheme, membershipv1alpha1.AddToScheme, tenancyv1alpha1.AddToScheme)

// newTenantHub returns an in-memory hub with the CustomResourceDefinitions of tenancy.
func newTenantHub(t testing.TB) *hub {
	t.Helper()
	return &hub{testkit.NewMemoryHub(t, tenantScheme, crds.Install, membershipcrds.Install, tenancycrds.Install)}
}

// another returns another namespace of the same API server.
func (h *hub) another() *hub {
	h.T.Helper()
	other := *h.Hub
	other.Namespace = mustertest.Namespace(h.T, h.Client)
	return &hub{&other}
}

// startTenants runs the controllers of placement and tenancy for all namespaces.
func (h *hub) startTenants(o placement.Options) (stop func()) {
	h.T.Helper()
	return mustertest.StartManager(h.T, h.Config, manager.Options{
		Scheme: tenantScheme, Controller: config.Controller{SkipNameValidation: new(true)},
	}, func(mgr manager.Manager) error {
		grants, err := tenancy.SetupWithManager(mgr, tenancy.Options{})
		if err != nil {
			return err
		}
		o.Tenancy = grants
		return placement.SetupWithManager(mgr, o)
	})
}

func (h *hub) clusterSet(name string, selector metav1.LabelSelector) *tenancyv1alpha1.ClusterSet {
	h.T.Helper()
	set := &tenancyv1alpha1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: tenancyv1alpha1.ClusterSetSpec{Selector: &selector}}
	h.Create(set)
	return set
}

func (h *hub) bind(name, set string) *tenancyv1alpha1.ClusterSetBinding {
	h.T.Helper()
	b := &tenancyv1alpha1.ClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name},
		Spec:       tenancyv1alpha1.ClusterSetBindingSpec{ClusterSetName: set},
	}
	h.Create(b)
	return b
}

func (h *hub) allowed(name string) metav1.Condition {
	h.T.Helper()
	if c := meta.FindStatusCondition(h.get(name).Status.Conditions, v1alpha1.ConditionClustersAllowed); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (h *hub) untilAllowed(name, reason string) metav1.Condition {
	h.T.Helper()
	h.Holds("ClustersAllowed of "+name+" has the reason "+reason, func() bool {
		return h.allowed(name).Reason == reason
	})
	return h.allowed(name)
}

func (h *hub) untilChosen(name string, clusters ...string) {
	h.T.Helper()
	h.Holds(name+" is on "+strings.Join(clusters, ","), func() bool {
		return slices.Equal(sorted(h.chosen(name)), clusters)
	})
}

func (h *hub) gone(object client.Object) {
	h.T.Helper()
	h.Holds("object "+object.GetName()+" does not exist", func() bool {
		return client.IgnoreNotFound(h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(object), object)) == nil &&
			h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(object), object) != nil
	})
}

func region(name string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{"region": name}}
}

// TestTenancy_BindingLifecycle checks that a namespace without a binding chooses nothing, that a binding allows it to,
// and that the deletion of the binding withdraws the clusters before the binding ends.
func TestTenancy_BindingLifecycle(t *testing.T) { testkit.Virtual(t, testTenancyBindingLifecycle) }

func testTenancyBindingLifecycle(t *testing.T) {
	h, s := newTenantHub(t), newSource(cluster("eu-1", "eu"), cluster("eu-2", "eu"), cluster("us-1", "us"))
	h.startTenants(placement.Options{Clusters: s})
	h.create("all", v1alpha1.PlacementPolicy{})
	h.create("failover", pick(2))
	h.change("failover", func(p *v1alpha1.Placement) { p.Spec.Failover = &v1alpha1.FailoverPolicy{} })
	h.create("fixed", v1alpha1.PlacementPolicy{Type: v1alpha1.PickFixed, ClusterNames: []string{"eu-1", "us-1"}})
	names := []string{"all", "failover", "fixed"}
	h.scheduled(v1alpha1.ReasonUnschedulable, names...)
	for _, name := range names {
		require.Empty(t, h.chosen(name))
		for _, message := range []string{h.condition(name).Message, h.untilAllowed(name, v1alpha1.ReasonNoBinding).Message} {
			require.Contains(t, message, "Namespace "+h.Namespace+" has no ClusterSetBinding")
			require.Contains(t, message, "kubectl apply -f -")
		}
	}

	h.clusterSet("europe", region("eu"))
	europe := h.bind("use-europe", "europe")
	h.untilChosen("all", "eu-1", "eu-2")
	h.untilChosen("failover", "eu-1", "eu-2")
	h.untilChosen("fixed", "eu-1")
	for _, slice := range h.slices() {
		for _, d := range slice.Decisions {
			require.Equal(t, "use-europe", d.Binding)
		}
	}
	h.untilAllowed("all", v1alpha1.ReasonClustersAllowed)
	require.Contains(t, h.condition("fixed").Message, "candidates are the clusters that a ClusterSetBinding of namespace "+
		h.Namespace)

	// A new label puts a cluster into the set, and another takes one out.
	s.set(cluster("us-1", "eu"))
	h.untilChosen("all", "eu-1", "eu-2", "us-1")
	h.untilChosen("fixed", "eu-1", "us-1")
	s.set(cluster("us-1", "us"))
	h.untilChosen("all", "eu-1", "eu-2")
	require.Contains(t, h.untilAllowed("all", v1alpha1.ReasonClustersWithdrawn).Message,
		"us-1: ClusterSet europe does not select the cluster any more")

	// A second binding grants the clusters when the first one is deleted.
	global := h.bind("use-global", "global")
	h.untilChosen("all", "eu-1", "eu-2", "us-1")
	require.NoError(t, h.Client.Delete(t.Context(), europe))
	h.gone(europe)
	h.untilChosen("all", "eu-1", "eu-2", "us-1")

	require.NoError(t, h.Client.Delete(t.Context(), global))
	for _, name := range names {
		h.untilChosen(name)
	}
	h.gone(global)
	h.untilAllowed("all", v1alpha1.ReasonNoBinding)
	h.Holds("an Event reports the withdrawal", func() bool {
		var list eventsv1.EventList
		require.NoError(t, h.Client.List(t.Context(), &list, client.InNamespace(h.Namespace)))
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == v1alpha1.ReasonClustersWithdrawn && e.Regarding.Name == "failover" &&
				strings.Contains(e.Note, "use-global was deleted")
		})
	})
}

// TestTenancy_AbsenceIsNotARequest checks that nothing is withdrawn when sets and bindings vanish without a request,
// and that nothing new is chosen.
func TestTenancy_AbsenceIsNotARequest(t *testing.T) { testkit.Virtual(t, testTenancyAbsence) }

func testTenancyAbsence(t *testing.T) {
	h, s := newTenantHub(t), newSource(cluster("eu-1", "eu"))
	stop := h.startTenants(placement.Options{Clusters: s})
	set := h.clusterSet("europe", region("eu"))
	b := h.bind("use-europe", "europe")
	h.create("web", v1alpha1.PlacementPolicy{})
	h.untilChosen("web", "eu-1")
	stop()

	strip := func(object client.Object) {
		require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		object.SetFinalizers(nil)
		require.NoError(t, h.Client.Update(t.Context(), object))
		require.NoError(t, h.Client.Delete(t.Context(), object))
	}
	strip(set)
	stop = h.startTenants(placement.Options{Clusters: s})
	h.untilAllowed("web", v1alpha1.ReasonGrantNotObserved)
	s.set(cluster("eu-2", "eu"))
	h.create("other", v1alpha1.PlacementPolicy{})
	h.scheduled(v1alpha1.ReasonUnschedulable, "other")
	require.Equal(t, []string{"eu-1"}, h.chosen("web"))
	stop()

	strip(b)
	h.startTenants(placement.Options{Clusters: s})
	message := h.untilAllowed("web", v1alpha1.ReasonNoBinding).Message
	require.Contains(t, message, "Chosen clusters stay")
	require.Equal(t, []string{"eu-1"}, h.chosen("web"))
	h.evict("leave", "web", "eu-1")
	h.untilChosen("web")

	h.clusterSet("europe", region("eu"))
	h.bind("use-europe", "europe")
	h.untilChosen("other", "eu-1", "eu-2")
}

// TestTenancy_CreatedAgainWithoutBinding checks a Placement that is created again after the last binding of its
// namespace was deleted: it stays on the clusters with its objects, chooses no other cluster, and reports that no
// binding grants its clusters. The deletion of the binding ended the permissions of the former Placement, which no
// longer existed by then.
func TestTenancy_CreatedAgainWithoutBinding(t *testing.T) {
	testkit.Virtual(t, testTenancyCreatedAgain)
}

func testTenancyCreatedAgain(t *testing.T) {
	h, s := newTenantHub(t), newSource(cluster("eu-1", "eu"))
	h.startTenants(placement.Options{
		Clusters: s, Deliveries: &delivered{clusters: map[string][]string{"web": {"eu-1"}}},
	})
	h.clusterSet("europe", region("eu"))
	b := h.bind("use-europe", "europe")
	h.create("web", v1alpha1.PlacementPolicy{})
	h.untilChosen("web", "eu-1")
	h.delete("web")
	require.NoError(t, h.Client.Delete(t.Context(), b))
	h.gone(b)

	s.set(cluster("eu-2", "eu"))
	h.create("web", v1alpha1.PlacementPolicy{})
	require.Contains(t, h.untilAllowed("web", v1alpha1.ReasonNoBinding).Message, "Chosen clusters stay")
	h.untilChosen("web", "eu-1")
	h.evict("leave", "web", "eu-1")
	h.untilChosen("web")
}

// TestTenancy_OnlyAffectedNamespaces checks that a new binding causes decisions in its namespace only.
func TestTenancy_OnlyAffectedNamespaces(t *testing.T) { testkit.Virtual(t, testTenancyAffected) }

func testTenancyAffected(t *testing.T) {
	h := newTenantHub(t)
	other := h.another()
	decider := newCounting(t)
	h.startTenants(placement.Options{Clusters: newSource(cluster("eu-1", "eu")), Decider: decider})
	h.create("ours", v1alpha1.PlacementPolicy{})
	other.create("theirs", v1alpha1.PlacementPolicy{})
	h.scheduled(v1alpha1.ReasonUnschedulable, "ours")
	other.scheduled(v1alpha1.ReasonUnschedulable, "theirs")
	quiet(t, func() int64 { return int64(decider.total()) })
	decider.takeCounts()
	h.bind("use-global", "global")
	h.untilChosen("ours", "eu-1")
	quiet(t, func() int64 { return int64(decider.total()) })
	require.Zero(t, decider.takeCounts()["theirs"])
	require.Empty(t, other.chosen("theirs"))
}

// TestTenancy_Explain checks that an explanation contains only the candidates.
func TestTenancy_Explain(t *testing.T) {
	h := newTenantHub(t)
	h.clusterSet("europe", region("eu"))
	b := h.bind("use-europe", "europe")
	controllerFinalizer := func(b *tenancyv1alpha1.ClusterSetBinding) {
		b.Finalizers = []string{tenancyv1alpha1.Finalizer}
	}
	mustertest.Change(t, h.Client, b, controllerFinalizer)
	grants, err := tenancy.Load(t.Context(), h.Client)
	require.NoError(t, err)
	wanted := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "dry"}}
	wanted.Spec.Policy.Type = v1alpha1.PickAll
	for namespace, want := range map[string]int{h.Namespace: 1, "elsewhere": 0} {
		wanted.Namespace = namespace
		diagnosis, err := placement.Explain(context.Background(), nil, placement.Options{
			Clusters: newSource(cluster("eu-1", "eu"), cluster("us-1", "us")), Tenancy: grants,
		}, wanted)
		require.NoError(t, err)
		chosen := 0
		for _, c := range diagnosis.Clusters {
			if c.Outcome == scheduler.Chosen {
				chosen++
				require.Equal(t, "eu-1", c.Name)
			}
		}
		require.Equal(t, want, chosen, namespace)
	}
}

// TestTenancy_Evictions checks that an eviction, and the failover of a cluster, choose a replacement only among the
// clusters that the bindings of the namespace grant, and none in a namespace without a binding.
func TestTenancy_Evictions(t *testing.T) { testkit.Virtual(t, testTenancyEvictions) }

func testTenancyEvictions(t *testing.T) {
	h, s := newTenantHub(t), newSource(cluster("eu-1", "eu"), cluster("eu-2", "eu"), cluster("us-1", "us"))
	stop := h.startTenants(placement.Options{Clusters: s})
	h.clusterSet("europe", region("eu"))
	h.bind("use-europe", "europe")
	h.create("web", pick(1))
	h.Holds("web is on one cluster", func() bool { return len(h.chosen("web")) == 1 })
	first := h.chosen("web")[0]
	require.NotEqual(t, "us-1", first)
	other := map[string]string{"eu-1": "eu-2", "eu-2": "eu-1"}[first]
	h.evict("leave", "web", first)
	h.untilChosen("web", other)

	// The only granted cluster is evicted, and no other one replaces it.
	s.set(cluster(first, "us"))
	h.evict("leave-again", "web", other)
	h.untilChosen("web")
	require.Contains(t, h.condition("web").Message, "candidates are the clusters that a ClusterSetBinding")

	// A namespace without a binding that has a cluster from before: nothing replaces the cluster.
	unbound := h.another()
	b := unbound.bind("use", "global")
	unbound.create("web", pick(1))
	unbound.Holds("web is on one cluster", func() bool { return len(unbound.chosen("web")) == 1 })
	on := unbound.chosen("web")[0]
	unbound.change("web", func(p *v1alpha1.Placement) { p.Spec.Failover = &v1alpha1.FailoverPolicy{} })
	stop()
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	b.SetFinalizers(nil)
	require.NoError(t, h.Client.Update(t.Context(), b))
	require.NoError(t, h.Client.Delete(t.Context(), b))
	h.startTenants(placement.Options{Clusters: s})
	unbound.untilAllowed("web", v1alpha1.ReasonNoBinding)
	s.set(lost(on, "eu"))
	require.Equal(t, []string{on}, unbound.chosen("web"))
	unbound.evict("leave", "web", on)
	unbound.untilChosen("web")
	require.Contains(t, unbound.condition("web").Message, "has no ClusterSetBinding")
}
