package plugins_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

// TestSteady_NoClusterIsRemoved checks that without a failover no decision removes a cluster that is in the fleet,
// matches the affinity, and has no taint by a user, and that a second decision changes nothing.
func TestSteady_NoClusterIsRemoved(t *testing.T) {
	s := newScheduler(t)
	rapid.Check(t, func(t *rapid.T) {
		spec := drawPolicy(t)
		policy, err := scheduler.NewPolicy(&spec)
		require.NoError(t, err)
		fleet := map[string]*scheduler.Cluster{}
		for i := range rapid.IntRange(1, 8).Draw(t, "clusters") {
			name := fmt.Sprint("c", i)
			fleet[name] = drawCluster(t, name)
		}
		var cache scheduler.Cache
		var previous *scheduler.Result
		decide := func(bound []string) []string {
			for name, cluster := range fleet {
				counted := *cluster
				if slices.Contains(bound, name) {
					counted.Placements++
				}
				cache.Update(&counted)
			}
			request := &scheduler.Request{Name: "test", Policy: policy, Bound: bound, Previous: previous, Now: schedulertest.Now}
			result, err := s.Schedule(t.Context(), cache.Snapshot(), request)
			require.NoError(t, err)
			previous = &result
			chosen := schedulertest.Chosen(result)
			slices.Sort(chosen)
			return chosen
		}
		chosen := decide(nil)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			for _, name := range slices.Sorted(maps.Keys(fleet)) {
				switch rapid.SampledFrom([]string{"stays", "stays", "health", "redrawn", "gone"}).Draw(t, name) {
				case "health":
					next := *fleet[name]
					drawHealth(t, &next)
					fleet[name] = &next
				case "redrawn":
					fleet[name] = drawCluster(t, name)
				case "gone":
					delete(fleet, name)
					cache.Remove(name)
				}
			}
			before := chosen
			chosen = decide(before)
			for _, name := range before {
				if cluster := fleet[name]; cluster != nil && mustStay(&spec, cluster) && !slices.Contains(chosen, name) {
					t.Fatalf("%+v was removed: %v became %v with %+v", cluster, before, chosen, spec)
				}
			}
			require.Equal(t, chosen, decide(chosen), "the second decision differs")
		}
	})
}

// mustStay reports whether a placement has no reason to leave a cluster.
func mustStay(spec *v1alpha1.PlacementPolicy, c *scheduler.Cluster) bool {
	drained := slices.ContainsFunc(c.Taints, func(t corev1.Taint) bool {
		return t.Key == "drain" && t.Effect == corev1.TaintEffectNoExecute
	})
	return !c.Leaving && (spec.Affinity == nil || c.Labels["env"] == "prod") &&
		(!drained || spec.Type == v1alpha1.PickFixed)
}

func drawCluster(t *rapid.T, name string) *scheduler.Cluster {
	c := schedulertest.Cluster(name)
	c.Labels = map[string]string{}
	drawLabel(t, c, "env", "prod", "prod", "test")
	drawLabel(t, c, "zone", "a", "a", "b", "")
	drawLabel(t, c, "provider", "x", "y", "y", "")
	c.Properties = map[string]string{"price": fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "price"))}
	c.Placements = rapid.IntRange(0, 3).Draw(t, "placements")
	c.Allocatable = cpus(8)
	c.Available = cpus(rapid.Int64Range(0, 8).Draw(t, "cpu"))
	drawHealth(t, c)
	c.Leaving = rapid.IntRange(0, 9).Draw(t, "leaving") == 0
	return c
}

// drawLabel sets a label of a cluster to one of the values. The value "" means no label.
func drawLabel(t *rapid.T, c *scheduler.Cluster, key string, values ...string) {
	delete(c.Labels, key)
	if value := rapid.SampledFrom(values).Draw(t, key); value != "" {
		c.Labels[key] = value
	}
}

func drawHealth(t *rapid.T, c *scheduler.Cluster) {
	c.Joined = rapid.IntRange(0, 9).Draw(t, "joined") > 0
	c.Healthy = rapid.Bool().Draw(t, "healthy")
	c.Taints = nil
	since := new(metav1.NewTime(schedulertest.Now))
	if !c.Healthy && rapid.Bool().Draw(t, "tainted") {
		key := rapid.SampledFrom([]string{membership.TaintUnreachable, membership.TaintNotReady}).Draw(t, "taint")
		c.Taints = append(c.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: since})
	}
	if rapid.IntRange(0, 9).Draw(t, "drained") == 0 {
		c.Taints = append(c.Taints, corev1.Taint{Key: "drain", Effect: corev1.TaintEffectNoExecute, TimeAdded: since})
	}
}

func cpus(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
}

func drawPolicy(t *rapid.T) v1alpha1.PlacementPolicy {
	var spec v1alpha1.PlacementPolicy
	switch spec.Type = rapid.SampledFrom([]v1alpha1.PolicyType{v1alpha1.PickAll, v1alpha1.PickN, v1alpha1.PickN,
		v1alpha1.PickFixed}).Draw(t, "type"); spec.Type {
	case v1alpha1.PickFixed:
		spec.ClusterNames = []string{"c0", "c2", "c3"}
		return spec
	case v1alpha1.PickN:
		spec.NumberOfClusters = new(rapid.Int32Range(0, 6).Draw(t, "wanted"))
	}
	some := func(label string) bool { return rapid.IntRange(0, 2).Draw(t, label) == 0 }
	if some("affinity") {
		spec.Affinity = &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
		}}}
	}
	if some("sorter") {
		spec.Sorters = []v1alpha1.PropertySorter{{Name: rapid.SampledFrom([]string{"price", "available/cpu"}).Draw(t, "by")}}
	}
	if some("resources") {
		spec.Resources = cpus(2)
	}
	switch { // both together may need more than one decision to become stable
	case some("spread"):
		spread := v1alpha1.TopologySpreadConstraint{TopologyKey: "zone", MaxSkew: 1,
			WhenUnsatisfiable: v1alpha1.ScheduleAnyway}
		if spec.Type == v1alpha1.PickN && some("hard") {
			spread.WhenUnsatisfiable, spread.MinDomains = v1alpha1.DoNotSchedule, new(rapid.Int32Range(1, 3).Draw(t, "domains"))
		}
		spec.TopologySpread = append(spec.TopologySpread, spread)
	case some("groups"):
		least := rapid.Int32Range(0, 2).Draw(t, "minGroups")
		most := rapid.SampledFrom([]int32{0, 2}).Draw(t, "maxGroups")
		spec.GroupSpread = append(spec.GroupSpread, v1alpha1.GroupSpreadConstraint{Label: "provider", MinGroups: least,
			MaxGroups: most})
	}
	return spec
}

func pickOne(sorters ...v1alpha1.PropertySorter) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(1)), Sorters: sorters}
}

// TestSteady_OwnUsage checks that the resources that a placement uses itself never move it, not even in a decision
// without bound clusters.
func TestSteady_OwnUsage(t *testing.T) {
	requesting := func(sorters ...v1alpha1.PropertySorter) v1alpha1.PlacementPolicy {
		spec := pickOne(sorters...)
		spec.Resources = cpus(2)
		return spec
	}
	used := func(c *scheduler.Cluster) { c.Placements, c.Available = 1, cpus(6) }
	idle := func(c *scheduler.Cluster) { c.Available = cpus(8) }
	full := func(c *scheduler.Cluster) { c.Placements, c.Available = 1, cpus(0) }
	for _, test := range []struct {
		reason     string
		spec       v1alpha1.PlacementPolicy
		east, west func(*scheduler.Cluster)
		want       string
	}{
		{"placement count", pickOne(), idle, used, "west"},
		{"used resources", requesting(), idle, used, "west"},
		{"used resources with a sorter", requesting(v1alpha1.PropertySorter{Name: "available/cpu"}), idle, used, "west"},
		{"own cluster is filled by other placements", requesting(), idle, full, "east"},
		{"both clusters are full", requesting(), full, full, "west"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			allocatable := func(c *scheduler.Cluster) { c.Allocatable = cpus(8) }
			snapshot := schedulertest.Snapshot(schedulertest.Cluster("east", allocatable, test.east),
				schedulertest.Cluster("west", allocatable, test.west))
			request := schedulertest.Request(t, test.spec)
			request.Placed = []string{"west"}
			result, err := newScheduler(t).Schedule(t.Context(), snapshot, request)
			require.NoError(t, err)
			require.Equal(t, []string{test.want}, schedulertest.Chosen(result))
		})
	}
}

// TestSteady_SmallGain checks that a small gain moves nothing. Without rebalancing, no gain does; with rebalancing, the
// gain must exceed the maximum of one sorter.
func TestSteady_SmallGain(t *testing.T) {
	price := v1alpha1.PropertySorter{Name: "price", Order: v1alpha1.Ascending}
	spread := pickOne(price)
	spread.TopologySpread = []v1alpha1.TopologySpreadConstraint{
		{TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: v1alpha1.ScheduleAnyway}}
	preferred := pickOne(price)
	preferred.Affinity = &v1alpha1.ClusterAffinity{Preferred: []v1alpha1.PreferredTerm{{
		Weight: 1, Term: v1alpha1.ClusterSelectorTerm{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}},
	}}}
	for _, test := range []struct {
		reason    string
		spec      v1alpha1.PlacementPolicy
		rebalance v1alpha1.RebalancePolicy
		want      string
	}{
		{"sorter", pickOne(price), "", "west"},
		{"sorter and soft topology spread", spread, "", "west"},
		{"sorter and preference", preferred, "", "west"},
		{"sorter with rebalancing", pickOne(price), v1alpha1.RebalanceAlways, "west"},
		{"sorter and preference with rebalancing", preferred, v1alpha1.RebalanceAlways, "east"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			snapshot := schedulertest.Snapshot(
				schedulertest.Cluster("east", schedulertest.Property("price", "10"), schedulertest.Label("zone", "a")),
				schedulertest.Cluster("west", schedulertest.Property("price", "11"), schedulertest.Label("zone", "b")),
			)
			test.spec.Rebalance = test.rebalance
			result, err := newScheduler(t).Schedule(t.Context(), snapshot, schedulertest.Request(t, test.spec, "west"))
			require.NoError(t, err)
			require.Equal(t, []string{test.want}, schedulertest.Chosen(result))
		})
	}
}
