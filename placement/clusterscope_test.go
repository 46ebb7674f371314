package placement_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// clusterScope lets a manager observe the namespace of cluster-scoped objects in addition to that of the test.
func clusterScope(s *setup) {
	s.options.Cache.DefaultNamespaces[v1alpha1.ClusterScopeNamespace] = cache.Config{}
}

func (h *hub) createClusterScoped(name string, policy v1alpha1.PlacementPolicy) *v1alpha1.ClusterPlacement {
	h.T.Helper()
	p := &v1alpha1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.PlacementSpec{Policy: policy}}
	h.Create(p)
	h.T.Cleanup(func() { _ = h.Client.Delete(context.Background(), p) })
	return p
}

func (h *hub) clusterScoped(name string) *v1alpha1.ClusterPlacement {
	h.T.Helper()
	p := &v1alpha1.ClusterPlacement{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, p))
	return p
}

// clusterDecisions returns the PlacementDecisions in the namespace of cluster-scoped objects that have an owner's name
// in a label.
func (h *hub) clusterDecisions(label, name string) []v1alpha1.PlacementDecision {
	h.T.Helper()
	var list v1alpha1.PlacementDecisionList
	require.NoError(h.T, h.Client.List(h.T.Context(), &list, client.InNamespace(v1alpha1.ClusterScopeNamespace),
		client.MatchingLabels{label: name}))
	return list.Items
}

func clustersIn(decisions []v1alpha1.PlacementDecision) []string {
	var clusters []string
	for _, d := range decisions {
		for _, c := range d.Decisions {
			clusters = append(clusters, c.ClusterName)
		}
	}
	slices.Sort(clusters)
	return clusters
}

// untilClusterScoped waits until a ClusterPlacement is decided for its generation and has these clusters.
func (h *hub) untilClusterScoped(name string, clusters ...string) {
	h.T.Helper()
	h.Holds(name+" is decided", func() bool {
		p := h.clusterScoped(name)
		return p.Status.DecidedGeneration == p.Generation && p.Status.ObservedGeneration == p.Generation &&
			int(p.Status.SelectedClusters) == len(clusters) &&
			slices.Equal(clustersIn(h.clusterDecisions(v1alpha1.ClusterPlacementLabel, name)), clusters)
	})
}

func (h *hub) createClusterScopeNamespace() {
	h.T.Helper()
	require.NoError(h.T, h.Client.Create(h.T.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterScopeNamespace},
	}))
}

// TestClusterPlacement_OnPlane checks on a real API server that a ClusterPlacement is decided, that its decisions are
// in the hub's namespace and name it as their owner, and that the garbage collector deletes them with it.
func TestClusterPlacement_OnPlane(t *testing.T) {
	h := newHubOnPlane(t)
	h.start(placement.Options{Clusters: newSource(cluster("a", "eu"), cluster("b", "us"))}, clusterScope)
	p := h.createClusterScoped(h.Namespace, inRegion(v1alpha1.PlacementPolicy{}, "eu"))
	h.untilClusterScoped(p.Name, "a")
	decisions := h.clusterDecisions(v1alpha1.ClusterPlacementLabel, p.Name)
	require.Len(t, decisions, 1)
	require.Equal(t, p.Name+"-clusterdecision-0", decisions[0].Name)
	require.True(t, metav1.IsControlledBy(&decisions[0], p))
	require.Equal(t, "ClusterPlacement", metav1.GetControllerOf(&decisions[0]).Kind)
	require.NotContains(t, decisions[0].Labels, v1alpha1.PlacementLabel)
	require.True(t, meta.IsStatusConditionTrue(h.clusterScoped(p.Name).Status.Conditions, v1alpha1.ConditionReady))

	require.NoError(t, h.Client.Delete(t.Context(), p))
	h.Holds("the decisions are deleted", func() bool {
		return len(h.clusterDecisions(v1alpha1.ClusterPlacementLabel, p.Name)) == 0
	})
}

// TestClusterPlacement_SameNames checks that a ClusterPlacement and a Placement with its name in the hub's namespace
// have different decisions, and that each keeps its own when the other is deleted or its controller restarts.
func TestClusterPlacement_SameNames(t *testing.T) { testkit.Virtual(t, testClusterPlacementSameNames) }

func testClusterPlacementSameNames(t *testing.T) {
	h := newHub(t)
	h.createClusterScopeNamespace()
	options := placement.Options{Clusters: newSource(cluster("a", "eu"), cluster("b", "us"))}
	running := h.start(options, clusterScope)
	h.createClusterScoped("web", inRegion(v1alpha1.PlacementPolicy{}, "eu"))
	other := &v1alpha1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterScopeNamespace, Name: "web"},
		Spec:       v1alpha1.PlacementSpec{Policy: inRegion(v1alpha1.PlacementPolicy{}, "us")},
	}
	h.Create(other)
	h.untilClusterScoped("web", "a")
	namespaced := func() []v1alpha1.PlacementDecision { return h.clusterDecisions(v1alpha1.PlacementLabel, "web") }
	h.Holds("the Placement is decided", func() bool { return slices.Equal(clustersIn(namespaced()), []string{"b"}) })

	running.stop()
	before := versions(slices.Concat(h.clusterDecisions(v1alpha1.ClusterPlacementLabel, "web"), namespaced()))
	running = h.start(options, clusterScope)
	quiet(t, running.transport.writes.Load)
	require.Equal(t, before,
		versions(slices.Concat(h.clusterDecisions(v1alpha1.ClusterPlacementLabel, "web"), namespaced())))

	require.NoError(t, h.Client.Delete(t.Context(), other))
	h.Holds("the decisions are deleted", func() bool { return len(namespaced()) == 0 })
	quiet(t, running.transport.writes.Load)
	require.Equal(t, []string{"a"}, clustersIn(h.clusterDecisions(v1alpha1.ClusterPlacementLabel, "web")))
}

// TestClusterPlacement_LimitedCache checks that a manager whose cache does not contain the hub's namespace leaves a
// ClusterPlacement to another manager: the existing decisions would seem to be missing.
func TestClusterPlacement_LimitedCache(t *testing.T) {
	testkit.Virtual(t, testClusterPlacementLimitedCache)
}

func testClusterPlacementLimitedCache(t *testing.T) {
	h, s := newHub(t), newSource(cluster("a", "eu"))
	limited := h.start(placement.Options{Clusters: s})
	h.createClusterScoped("web", v1alpha1.PlacementPolicy{})
	h.create("own", v1alpha1.PlacementPolicy{})
	h.scheduled(v1alpha1.ReasonScheduled, "own")
	quiet(t, limited.transport.writes.Load)
	require.Empty(t, h.clusterScoped("web").Status.Conditions)
	limited.stop()
	h.start(placement.Options{Clusters: s}, clusterScope)
	h.untilClusterScoped("web", "a")
}

// TestClusterPlacement_Restored checks that a ClusterPlacement keeps its clusters although another cluster is better:
// after a backup tool has restored its decisions without their owners, and after the decisions, their namespace or the
// ClusterPlacement itself were deleted while no controller ran. None of these is a request to leave a cluster.
func TestClusterPlacement_Restored(t *testing.T) {
	for _, test := range []struct {
		name string
		lose func(*hub)
	}{
		{"owners", func(h *hub) {
			for _, d := range h.clusterDecisions(v1alpha1.ClusterPlacementLabel, "web") {
				require.NoError(h.T, h.Client.Delete(h.T.Context(), &d))
				d.ObjectMeta = metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, Labels: d.Labels}
				h.Create(&d)
			}
		}},
		{"decisions", func(h *hub) {
			for _, d := range h.clusterDecisions(v1alpha1.ClusterPlacementLabel, "web") {
				require.NoError(h.T, h.Client.Delete(h.T.Context(), &d))
			}
		}},
		{"namespace", func(h *hub) {
			n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterScopeNamespace}}
			require.NoError(h.T, h.Client.Delete(h.T.Context(), n))
			h.gone(n)
		}},
		{"placement", func(h *hub) {
			require.NoError(h.T, h.Client.Delete(h.T.Context(), h.clusterScoped("web")))
			h.Holds("the decisions are deleted", func() bool {
				return len(h.clusterDecisions(v1alpha1.ClusterPlacementLabel, "web")) == 0
			})
			h.createClusterScoped("web", pick(1))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) { testClusterPlacementRestored(t, test.lose) })
		})
	}
}

func testClusterPlacementRestored(t *testing.T, lose func(*hub)) {
	h := newHub(t)
	s := newSource(cluster("b", "eu"))
	known := &delivered{clusters: map[string][]string{"web": {"b"}}}
	options := placement.Options{Clusters: s, Deliveries: known}
	running := h.start(options, clusterScope)
	h.createClusterScoped("web", pick(1))
	h.untilClusterScoped("web", "b")
	running.stop()
	lose(h)
	s.set(cluster("a", "eu"), cluster("b", "eu", func(c *scheduler.Cluster) { c.Healthy = false }))
	running = h.start(options, clusterScope)
	h.Holds("the decision is complete", func() bool {
		all := h.clusterDecisions(v1alpha1.ClusterPlacementLabel, "web")
		return len(all) == 1 && metav1.IsControlledBy(&all[0], h.clusterScoped("web"))
	})
	quiet(t, running.transport.writes.Load)
	require.Equal(t, []string{"b"}, clustersIn(h.clusterDecisions(v1alpha1.ClusterPlacementLabel, "web")))
}

// TestClusterPlacement_Tenancy checks that a ClusterPlacement needs no binding, that a Placement of a namespace without
// one still chooses nothing, and that a decision which a tenant writes for a ClusterPlacement has no effect.
func TestClusterPlacement_Tenancy(t *testing.T) { testkit.Virtual(t, testClusterPlacementTenancy) }

func testClusterPlacementTenancy(t *testing.T) {
	h := newTenantHub(t)
	p := h.createClusterScoped("web", v1alpha1.PlacementPolicy{})
	forged := &v1alpha1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: h.Namespace, Name: "web-clusterdecision-0",
			Labels: map[string]string{v1alpha1.ClusterPlacementLabel: "web", v1alpha1.DecisionIndexLabel: "0"},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(p, v1alpha1.GroupVersion.WithKind("ClusterPlacement")),
			},
		},
		Decisions: []v1alpha1.ClusterDecision{{ClusterName: "lost"}},
	}
	h.Create(forged)
	s := newSource(cluster("eu-1", "eu"), cluster("us-1", "us"))
	h.startTenants(placement.Options{Clusters: s})
	h.create("own", v1alpha1.PlacementPolicy{})
	h.untilClusterScoped("web", "eu-1", "us-1")
	h.untilAllowed("own", v1alpha1.ReasonNoBinding)
	require.Empty(t, h.chosen("own"))
	condition := meta.FindStatusCondition(h.clusterScoped("web").Status.Conditions, v1alpha1.ConditionClustersAllowed)
	require.Equal(t, metav1.ConditionTrue, condition.Status, condition.Message)

	// A change of the labels withdraws nothing, and a new cluster is chosen.
	s.set(cluster("eu-1", "elsewhere"), cluster("eu-2", "eu"))
	h.untilClusterScoped("web", "eu-1", "eu-2", "us-1")
}

// TestClusterPlacement_Eviction checks that an eviction in the hub's namespace makes a ClusterPlacement leave a
// cluster, and that one in the namespace of a tenant does not.
func TestClusterPlacement_Eviction(t *testing.T) { testkit.Virtual(t, testClusterPlacementEviction) }

func testClusterPlacementEviction(t *testing.T) {
	h := newHub(t)
	h.createClusterScopeNamespace()
	h.start(placement.Options{Clusters: newSource(cluster("a", "eu"), cluster("b", "eu"))}, clusterScope)
	h.createClusterScoped("web", v1alpha1.PlacementPolicy{})
	h.untilClusterScoped("web", "a", "b")
	evict := func(namespace string) *v1alpha1.PlacementEviction {
		e := &v1alpha1.PlacementEviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "leave"},
			Spec:       v1alpha1.PlacementEvictionSpec{ClusterPlacement: "web", Cluster: "a"},
		}
		h.Create(e)
		return e
	}
	reason := func(e *v1alpha1.PlacementEviction) string {
		require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(e), e))
		if c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionExecuted); c != nil {
			return c.Reason
		}
		return ""
	}
	tenant := evict(h.Namespace)
	h.Holds("the eviction of the tenant is refused", func() bool {
		return reason(tenant) == v1alpha1.ReasonPlacementNotFound
	})
	h.untilClusterScoped("web", "a", "b")
	platform := evict(v1alpha1.ClusterScopeNamespace)
	h.untilClusterScoped("web", "b")
	h.Holds("the eviction is executed", func() bool { return reason(platform) == v1alpha1.ReasonEvicted })
	require.NoError(t, h.Client.Delete(t.Context(), platform))
	h.untilClusterScoped("web", "a", "b")
}

// TestClusterPlacement_Explain checks that a dry run of an existing ClusterPlacement keeps its clusters.
func TestClusterPlacement_Explain(t *testing.T) { testkit.Virtual(t, testClusterPlacementExplain) }

func testClusterPlacementExplain(t *testing.T) {
	h, s := newHub(t), newSource(cluster("b", "eu"))
	options := placement.Options{Clusters: s}
	h.start(options, clusterScope)
	h.createClusterScoped("web", pick(1))
	h.untilClusterScoped("web", "b")
	s.set(cluster("a", "eu"), cluster("c", "eu"))
	diagnosis, err := placement.Explain(t.Context(), h.Client, options, (*v1alpha1.Placement)(h.clusterScoped("web")))
	require.NoError(t, err)
	require.Equal(t, types.NamespacedName{Name: "web"}.String(), diagnosis.Request)
	for _, c := range diagnosis.Clusters {
		require.Equal(t, c.Name == "b", c.Outcome == scheduler.Chosen, c.Name)
	}
}
