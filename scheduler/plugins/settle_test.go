package plugins_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

// randomFleet is a fleet for repeated decisions on one placement.
type randomFleet struct {
	scheduler *scheduler.Scheduler
	policy    *scheduler.Policy
	failover  bool
	clusters  map[string]*scheduler.Cluster
	uses      corev1.ResourceList // the resources that the placement uses on each of its clusters
}

func drawFleet(t *rapid.T, s *scheduler.Scheduler, spec *v1alpha1.PlacementPolicy) *randomFleet {
	policy, err := scheduler.NewPolicy(spec)
	require.NoError(t, err)
	f := &randomFleet{
		scheduler: s, policy: policy, failover: rapid.Bool().Draw(t, "failover"), clusters: map[string]*scheduler.Cluster{},
		uses: spec.Resources,
	}
	for i := range rapid.IntRange(1, 9).Draw(t, "clusters") {
		name := fmt.Sprint("c", i)
		c := drawCluster(t, name)
		if rapid.IntRange(0, 4).Draw(t, "well") > 0 { // most clusters are eligible
			c.Joined, c.Healthy, c.Leaving, c.Taints = true, true, false, nil
		}
		// More values than drawCluster has, so that maxima matter.
		drawLabel(t, c, "zone", "a", "b", "c", "d", "")
		drawLabel(t, c, "provider", "w", "x", "y", "z", "")
		f.clusters[name] = c
	}
	return f
}

// decide returns the decision for a placement that runs on the bound clusters. Its Works use resources there.
func (f *randomFleet) decide(t *rapid.T, bound []string) []string {
	var cache scheduler.Cache
	for name, cluster := range f.clusters {
		loaded := *cluster
		if slices.Contains(bound, name) {
			loaded.Placements++
			loaded.Available = loaded.Available.DeepCopy()
			for resource, used := range f.uses {
				left := loaded.Available[resource]
				left.Sub(used)
				loaded.Available[resource] = left
			}
		}
		cache.Update(&loaded)
	}
	result, err := f.scheduler.Schedule(t.Context(), cache.Snapshot(), &scheduler.Request{
		Name: "test", Policy: f.policy, Bound: bound, Failover: f.failover, Now: schedulertest.Now,
	})
	require.NoError(t, err)
	chosen := schedulertest.Chosen(result)
	slices.Sort(chosen)
	return chosen
}

// drawRichPolicy draws a policy that may rebalance, prefer clusters, and have several constraints of one kind.
func drawRichPolicy(t *rapid.T) v1alpha1.PlacementPolicy {
	spec := drawPolicy(t)
	if spec.Type == v1alpha1.PickFixed {
		return spec
	}
	if rapid.Bool().Draw(t, "rebalance") {
		spec.Rebalance = v1alpha1.RebalanceAlways
	}
	if rapid.Bool().Draw(t, "prefers") {
		if spec.Affinity == nil {
			spec.Affinity = &v1alpha1.ClusterAffinity{}
		}
		spec.Affinity.Preferred = []v1alpha1.PreferredTerm{{Weight: 50, Term: v1alpha1.ClusterSelectorTerm{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}},
		}}}
	}
	if len(spec.GroupSpread) > 0 && rapid.Bool().Draw(t, "zones") {
		spec.GroupSpread = append(spec.GroupSpread, v1alpha1.GroupSpreadConstraint{
			Label: "zone", MaxGroups: rapid.Int32Range(0, 2).Draw(t, "most zones"),
		})
	}
	if len(spec.GroupSpread) > 0 {
		spec.GroupSpread[0].MaxGroups = rapid.Int32Range(max(1, spec.GroupSpread[0].MinGroups), 3).Draw(t, "most providers")
	}
	if spec.Type == v1alpha1.PickN && len(spec.GroupSpread) > 0 && rapid.Bool().Draw(t, "both") {
		spec.TopologySpread = []v1alpha1.TopologySpreadConstraint{{TopologyKey: "zone", MaxSkew: 1,
			WhenUnsatisfiable: rapid.SampledFrom([]v1alpha1.UnsatisfiableAction{v1alpha1.DoNotSchedule,
				v1alpha1.ScheduleAnyway}).Draw(t, "when")}}
	}
	if len(spec.TopologySpread) > 0 && rapid.Bool().Draw(t, "providers") {
		spec.TopologySpread = append(spec.TopologySpread, v1alpha1.TopologySpreadConstraint{
			TopologyKey: "provider", MaxSkew: rapid.Int32Range(1, 2).Draw(t, "skew"),
			WhenUnsatisfiable: spec.TopologySpread[0].WhenUnsatisfiable,
		})
	}
	return spec
}

// often checks a property with ten times as many cases as one call of rapid.Check, because errors that depend on two
// constraints are rare.
func often(t *testing.T, property func(*rapid.T)) {
	for range 10 {
		rapid.Check(t, property)
	}
}

// requireStable checks that a decision with the chosen clusters as bound clusters does not change. Several group
// constraints are applied one after the other and may find more clusters if some are bound already. In that case the
// decision may add clusters.
func (f *randomFleet) requireStable(t *rapid.T, chosen []string) {
	next := f.decide(t, chosen)
	if spec := f.policy.Spec(); len(spec.GroupSpread) > 1 && spec.Rebalance != v1alpha1.RebalanceAlways {
		require.Subset(t, next, chosen, "a second decision removes clusters")
		return
	}
	require.Equal(t, chosen, next, "the second decision differs")
}

// TestSteady_NothingChanged checks that a second decision with the chosen clusters as bound clusters does not change.
// This holds for all policies, also if they rebalance, and although the placement uses resources of its clusters.
func TestSteady_NothingChanged(t *testing.T) {
	s := newScheduler(t)
	often(t, func(t *rapid.T) {
		spec := drawRichPolicy(t)
		fleet := drawFleet(t, s, &spec)
		fleet.requireStable(t, fleet.decide(t, nil))
	})
}

// TestSteady_OneClusterLost checks that all other clusters of a placement stay when one cluster is lost in any way,
// unless the policy rebalances, and that a further decision changes nothing.
func TestSteady_OneClusterLost(t *testing.T) {
	s := newScheduler(t)
	often(t, func(t *rapid.T) {
		spec := drawRichPolicy(t)
		spec.Rebalance = ""
		fleet := drawFleet(t, s, &spec)
		before := fleet.decide(t, nil)
		if len(before) == 0 {
			t.Skip("no cluster is chosen")
		}
		lost := rapid.SampledFrom(before).Draw(t, "lost")
		broken := *fleet.clusters[lost]
		switch rapid.SampledFrom([]string{"unreachable", "not ready", "leaves", "is drained", "is removed"}).Draw(t, "how") {
		case "unreachable":
			broken.Healthy, broken.Taints = false, tainted(membership.TaintUnreachable)
		case "not ready":
			broken.Healthy, broken.Taints = false, tainted(membership.TaintNotReady)
		case "leaves":
			broken.Leaving = true
		case "is drained":
			broken.Taints = tainted("drain")
		}
		if fleet.clusters[lost] = &broken; !broken.Leaving && broken.Healthy && len(broken.Taints) == 0 {
			delete(fleet.clusters, lost)
		}
		after := fleet.decide(t, before)
		for _, name := range before {
			if name != lost && !slices.Contains(after, name) {
				t.Fatalf("cluster %s was lost, and the decision removes %s: %v became %v", lost, name, before, after)
			}
		}
		if !fleet.failover && fleet.clusters[lost] != nil && !broken.Healthy && !slices.Contains(after, lost) {
			t.Fatalf("the decision removes %s without a failover: %v became %v", lost, before, after)
		}
		fleet.requireStable(t, after)
	})
}

func tainted(key string) []corev1.Taint {
	now := new(metav1.NewTime(schedulertest.Now))
	return []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: now}}
}

// TestSteady_OneClusterJoins checks that a placement keeps its clusters when one cluster joins, and that the next
// decision has no fewer clusters, unless the policy rebalances.
func TestSteady_OneClusterJoins(t *testing.T) {
	s := newScheduler(t)
	often(t, func(t *rapid.T) {
		spec := drawRichPolicy(t)
		spec.Rebalance = ""
		fleet := drawFleet(t, s, &spec)
		before := fleet.decide(t, nil)
		joins := drawCluster(t, "joins")
		joins.Labels["zone"] = rapid.SampledFrom([]string{"a", "b", "new"}).Draw(t, "joins zone")
		fleet.clusters[joins.Name] = joins
		after := fleet.decide(t, before)
		require.Subset(t, after, before)
		fleet.requireStable(t, after)
	})
}
