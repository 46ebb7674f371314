package plugins_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

func newScheduler(tb testing.TB, extra ...scheduler.PluginConfig) *scheduler.Scheduler {
	profile := plugins.DefaultProfile()
	profile.Plugins = append(profile.Plugins, extra...)
	s, err := scheduler.New(scheduler.Options{Registry: plugins.Registry(), Profiles: []scheduler.Profile{profile}})
	require.NoError(tb, err)
	return s
}

func TestRegistry_NamesAndUnknownArguments(t *testing.T) {
	for name, factory := range plugins.Registry() {
		args := scheduler.Args(nil)
		if name == "ExternalScore" {
			args = scheduler.Args(`{"scores":[{"name":"a"}]}`)
		}
		plugin, err := factory(args, scheduler.Handle{})
		require.NoError(t, err)
		require.Equal(t, name, plugin.Name())
		// Each plugin rejects unknown arguments.
		_, err = factory(scheduler.Args(`{"unheard-of":1}`), scheduler.Handle{})
		require.Error(t, err, name)
	}
	delete(plugins.Registry(), "Balance")
	require.Contains(t, plugins.Registry(), "Balance", "each caller has its own registry")
}

// TestDefaultProfile checks that every field of a policy affects the decision of the default profile.
func TestDefaultProfile(t *testing.T) {
	fleet := []*scheduler.Cluster{
		schedulertest.Cluster("a-down", good, func(c *scheduler.Cluster) { c.Healthy = false }),
		schedulertest.Cluster("b-tainted", good, schedulertest.Taint("maintenance", "", corev1.TaintEffectNoSchedule, 0)),
		schedulertest.Cluster("c-us", good, schedulertest.Label("region", "us")),
		schedulertest.Cluster("d-old", good, schedulertest.Property("version", "v1.29.0")),
		schedulertest.Cluster("e-odd", good, schedulertest.Property("version", "latest")),
		schedulertest.Cluster("f-cold", good, schedulertest.Property("temperature", "4")),
		schedulertest.Cluster("g-full", good, schedulertest.Resource("cpu", "8", "1")),
		schedulertest.Cluster("h-bare", good, func(c *scheduler.Cluster) { clear(c.APIs) }),
		schedulertest.Cluster("h-closed", good, func(c *scheduler.Cluster) {
			c.Policy = &scheduler.ObjectPolicy{Kinds: []schema.GroupKind{{Kind: "ConfigMap"}}}
		}),
		schedulertest.Cluster("i-zone-a", good, schedulertest.Label("zone", "a"), schedulertest.Property("price", "3")),
		schedulertest.Cluster("j-zone-a", good, schedulertest.Label("zone", "a"), schedulertest.Property("price", "1")),
		schedulertest.Cluster("k-zone-b", good, schedulertest.Label("zone", "b"), schedulertest.Property("price", "9")),
		schedulertest.Cluster("l-gcp", good, schedulertest.Label("zone", "c"), schedulertest.Label("provider", "gcp"),
			schedulertest.Property("price", "90")),
	}
	spec := v1alpha1.PlacementPolicy{
		Type: v1alpha1.PickN, NumberOfClusters: new(int32(2)),
		Affinity: &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}},
			Properties: []v1alpha1.PropertyRequirement{{Name: "version", Operator: v1alpha1.PropertyGe,
				Values: []string{"v1.30.0"}}},
			CEL: []string{`quantity(cluster.properties.temperature) > quantity("10")`},
		}}},
		Resources:      corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		RequiredAPIs:   []metav1.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}},
		Sorters:        []v1alpha1.PropertySorter{{Name: "price", Order: v1alpha1.Ascending}},
		TopologySpread: []v1alpha1.TopologySpreadConstraint{{TopologyKey: "zone", MaxSkew: 1}},
		GroupSpread:    []v1alpha1.GroupSpreadConstraint{{Label: "provider", MaxGroups: 1}},
	}
	result, err := newScheduler(t).Schedule(t.Context(), schedulertest.Snapshot(fleet...), schedulertest.Request(t, spec))
	require.NoError(t, err)
	require.Equal(t, []string{"j-zone-a", "k-zone-b"}, schedulertest.Chosen(result), "the cheapest of each zone")
	diagnosis, err := result.Diagnose(t.Context())
	require.NoError(t, err)
	reasons := map[string]string{}
	for _, c := range diagnosis.Clusters {
		reasons[c.Name] = fmt.Sprintf("%s %s", c.Plugin, c.Reason)
	}
	for name, want := range map[string]string{
		"a-down":    "Eligibility is not known to be healthy",
		"b-tainted": "TaintToleration has taint maintenance",
		"c-us":      "ClusterAffinity does not match region=eu",
		"d-old":     "ClusterAffinity does not match version >= v1.30.0",
		"e-odd":     `ClusterAffinity has property version with value "latest", which is no semantic version`,
		"f-cold":    `ClusterAffinity does not match quantity(cluster.properties.temperature) > quantity("10")`,
		"g-full":    "ResourceFit has less than 2 of cpu available",
		"h-bare":    "APIAvailability does not serve apps/v1 Deployment",
		"h-closed":  "ObjectPolicy does not accept Deployment.apps",
		"l-gcp":     "GroupSpread is in provider gcp, which was not chosen",
	} {
		require.Contains(t, reasons[name], want)
	}
}

// TestConformance checks the conformance of every plugin with all fields of a policy.
func TestConformance(t *testing.T) {
	required := func(term v1alpha1.ClusterSelectorTerm) v1alpha1.PlacementPolicy {
		return v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{term}}}
	}
	property := func(operator v1alpha1.PropertyOperator, values ...string) v1alpha1.PlacementPolicy {
		return required(v1alpha1.ClusterSelectorTerm{
			Properties: []v1alpha1.PropertyRequirement{{Name: "price", Operator: operator, Values: values}}})
	}
	policies := []v1alpha1.PlacementPolicy{
		property(v1alpha1.PropertyGe, "3"), property(v1alpha1.PropertyNotIn, "3", "9"), property(v1alpha1.PropertyExists),
		required(v1alpha1.ClusterSelectorTerm{CEL: []string{`cluster.labels.zone == "a"`}}),
		{RequiredAPIs: []metav1.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}}},
		{Sorters: []v1alpha1.PropertySorter{{Name: "price", Order: v1alpha1.Ascending}, {Name: "available/cpu", Weight: 3}}},
		{
			Type: v1alpha1.PickN, NumberOfClusters: new(int32(2)),
			TopologySpread: []v1alpha1.TopologySpreadConstraint{{TopologyKey: "zone", MaxSkew: 1}},
		},
		{GroupSpread: []v1alpha1.GroupSpreadConstraint{{Label: "zone", MinGroups: 2}}},
		{Type: v1alpha1.PickFixed, ClusterNames: []string{"a", "b"}},
	}
	clusters := []*scheduler.Cluster{
		schedulertest.Cluster("a", good), schedulertest.Cluster("b", good, schedulertest.Label("zone", "b"),
			schedulertest.Property("price", "3")),
		schedulertest.Cluster("c", schedulertest.Property("price", "free")), schedulertest.Cluster("d"),
		schedulertest.Cluster("e", good, schedulertest.Resource("cpu", "8", "1"), schedulertest.Property("price", "9"),
			func(c *scheduler.Cluster) { clear(c.APIs) }),
		schedulertest.Cluster("closed", good, func(c *scheduler.Cluster) { c.Policy = &scheduler.ObjectPolicy{} }),
		schedulertest.Cluster("f", good, func(c *scheduler.Cluster) { c.Healthy = false }),
		schedulertest.Cluster("g", good, schedulertest.Taint("t", "", corev1.TaintEffectNoSchedule, 0)),
	}
	for name, factory := range plugins.Registry() {
		t.Run(name, func(t *testing.T) {
			plugin := schedulertest.Plugin{Name: name, Factory: factory, Policies: policies, Clusters: clusters}
			if name == "ExternalScore" {
				plugin.Args = `{"scores":[{"name":"a"}]}`
			}
			schedulertest.Conformance(t, plugin)
		})
	}
}

// good changes a cluster so that it satisfies the policy of the test.
func good(c *scheduler.Cluster) {
	for _, option := range []schedulertest.Option{
		schedulertest.Label("region", "eu"), schedulertest.Label("zone", "a"), schedulertest.Label("provider", "aws"),
		schedulertest.Property("version", "v1.31.2"), schedulertest.Property("temperature", "20"),
		schedulertest.Property("price", "50"),
		schedulertest.Resource("cpu", "8", "8"), schedulertest.API("apps", "v1", "Deployment"),
	} {
		option(c)
	}
}

func Example() {
	s, err := scheduler.New(scheduler.Options{
		Registry: plugins.Registry(),
		Profiles: []scheduler.Profile{plugins.DefaultProfile()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{
		Type: v1alpha1.PickN, NumberOfClusters: new(int32(1)),
		Sorters: []v1alpha1.PropertySorter{{Name: "available/cpu"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := s.Schedule(context.Background(), schedulertest.Snapshot(
		schedulertest.Cluster("east", schedulertest.Resource("cpu", "64", "12")),
		schedulertest.Cluster("north", schedulertest.Resource("cpu", "64", "60"),
			schedulertest.Taint("maintenance", "", corev1.TaintEffectNoSchedule, 0)),
		schedulertest.Cluster("west", schedulertest.Resource("cpu", "64", "48")),
	), &scheduler.Request{Name: "shop", Policy: policy})
	if err != nil {
		fmt.Println(err)
		return
	}
	diagnosis, err := result.Diagnose(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(diagnosis)
	for _, c := range diagnosis.Clusters {
		fmt.Printf("%s: %s %q\n", c.Name, c.Outcome, c.Reason)
	}
	// Output:
	// 1 of 3 clusters chosen; 1 more is feasible, 1 has taint maintenance
	// west: Chosen ""
	// east: Feasible ""
	// north: Rejected "has taint maintenance"
}
