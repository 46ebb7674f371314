package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/internal/failover"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// lost returns a cluster whose heartbeats have stopped, with the taint that the hub adds to it.
func lost(name, region string) *scheduler.Cluster {
	return cluster(name, region, func(c *scheduler.Cluster) {
		c.Healthy = false
		c.Taints = []corev1.Taint{{Key: membership.TaintUnreachable, Effect: corev1.TaintEffectNoExecute,
			TimeAdded: new(metav1.NewTime(time.Now()))}}
	})
}

func notReady(name, region string) *scheduler.Cluster {
	c := lost(name, region)
	c.Taints[0].Key = membership.TaintNotReady
	return c
}

// TestChosenClustersStay checks that by default a placement stays on clusters that are unreachable, not ready, or have
// to join again, and that the condition states this.
func TestChosenClustersStay(t *testing.T) { testkit.Virtual(t, testChosenClustersStay) }

func testChosenClustersStay(t *testing.T) {
	h, s := newHub(t), newSource(many(3, "eu")...)
	h.start(placement.Options{Clusters: s})
	policies := map[string]v1alpha1.PlacementPolicy{
		"all": {}, "some": pick(3), "fixed": {Type: v1alpha1.PickFixed, ClusterNames: []string{"eu-000", "eu-001", "eu-002"}},
	}
	for name, policy := range policies {
		h.create(name, policy)
		h.scheduled(v1alpha1.ReasonScheduled, name)
	}
	before := versions(h.slices())
	s.set(lost("eu-000", "eu"), notReady("eu-001", "eu"), cluster("eu-002", "eu", func(c *scheduler.Cluster) {
		c.Joined, c.Healthy = false, false
	}))
	for name := range policies {
		h.Holds("no cluster is ready", func() bool { return h.get(name).Status.ReadyClusters == 0 })
		require.Equal(t, []string{"eu-000", "eu-001", "eu-002"}, sorted(h.chosen(name)), name)
		message := h.condition(name).Message
		require.True(t, strings.HasSuffix(message,
			"; 3 chosen clusters are not known to be healthy and stay, since spec.failover is not set"), message)
	}
	require.Equal(t, before, versions(h.slices()), "no decision was written")

	s.set(cluster("eu-003", "eu"))
	h.Holds("a new cluster is chosen", func() bool { return len(h.chosen("all")) == 4 })
	s.set(cluster("eu-000", "eu", func(c *scheduler.Cluster) {
		c.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoExecute}}
	}))
	h.Holds("the placements leave a cluster with a taint of a user", func() bool {
		return len(h.chosen("all")) == 3 && !contains(h.chosen("some"), "eu-000")
	})
	require.Len(t, h.chosen("fixed"), 3)
	s.set(many(3, "eu")...)
	for name := range policies {
		h.Holds("the message no longer reports clusters that stay", func() bool {
			return !strings.Contains(h.condition(name).Message, "stay")
		})
	}
}

func contains(names []string, name string) bool {
	return slices.Contains(names, name)
}

// TestFailoverOfUnreachableClusters checks that with a failover policy a placement leaves an unreachable cluster when
// its replacement is ready, and stays if the cluster returns before that.
func TestFailoverOfUnreachableClusters(t *testing.T) {
	testkit.Virtual(t, testFailoverOfUnreachableClusters)
}

func testFailoverOfUnreachableClusters(t *testing.T) {
	h, s := newHub(t), newSource(cluster("a", "eu"), cluster("b", "eu"))
	ready := &readiness{ready: map[string]bool{"a": true, "b": true}}
	h.start(placement.Options{Clusters: s, Ready: placement.ReadyFunc(ready.Ready)})
	h.evictable("web", v1alpha1.PlacementSpec{Policy: pick(2), Failover: &v1alpha1.FailoverPolicy{}})
	h.evictable("all", v1alpha1.PlacementSpec{Failover: &v1alpha1.FailoverPolicy{}})
	s.set(lost("a", "eu"), lost("b", "eu"))
	h.Holds("one cluster per minute is left without a replacement", func() bool { return len(h.chosen("all")) == 1 })
	h.Holds("no cluster is ready", func() bool { return h.get("web").Status.ReadyClusters == 0 })
	require.Equal(t, []string{"a", "b"}, sorted(h.chosen("web")), "no replacement is available")

	s.set(cluster("c", "eu"))
	h.Holds("a replacement is chosen", func() bool { return len(h.chosen("web")) == 3 })
	reasons := func() map[string]string {
		of := map[string]string{}
		for _, slice := range h.slices() {
			if slice.Labels[v1alpha1.PlacementLabel] == "web" {
				for _, d := range slice.Decisions {
					of[d.ClusterName] = d.Reason
				}
			}
		}
		return of
	}
	require.Equal(t, map[string]string{"a": failover.WaitsForReplacement, "b": failover.WaitsForReplacement,
		"c": v1alpha1.ReasonScheduled}, reasons())
	s.set(cluster("b", "eu")) // returns before c is ready
	h.Holds("b is chosen again", func() bool { return reasons()["b"] == v1alpha1.ReasonScheduled })
	require.Len(t, h.chosen("web"), 3)
	ready.set("c")
	h.Holds("a is left", func() bool { return fmt.Sprint(sorted(h.chosen("web"))) == "[b c]" })
}

// TestSpreadDropsNoHealthyCluster checks that a spread constraint drops no healthy cluster when a provider, a zone or
// half of the fleet fails, or when a zone joins.
func TestSpreadDropsNoHealthyCluster(t *testing.T) {
	groups := pick(4)
	groups.GroupSpread = []v1alpha1.GroupSpreadConstraint{{Label: "region", MinGroups: 2}}
	hard := func(n int32) v1alpha1.PlacementPolicy {
		policy := pick(n)
		policy.TopologySpread = []v1alpha1.TopologySpreadConstraint{{TopologyKey: "region", MaxSkew: 1,
			WhenUnsatisfiable: v1alpha1.DoNotSchedule}}
		return policy
	}
	fails := func(n int) func(s *source) {
		return func(s *source) {
			for i := range n {
				s.set(cluster(fmt.Sprintf("us-%03d", i), "us", func(c *scheduler.Cluster) {
					c.Taints = []corev1.Taint{{Key: "broken", Effect: corev1.TaintEffectNoExecute}}
				}))
			}
		}
	}
	for _, test := range []struct {
		name   string
		policy v1alpha1.PlacementPolicy
		eu, us int
		change func(s *source)
		left   int // clusters of us that are still chosen
	}{
		{"a provider fails under minGroups", groups, 2, 2, fails(2), 0},
		{"two of a region fail under DoNotSchedule", hard(6), 3, 3, fails(2), 1},
		{"a region joins under DoNotSchedule", hard(4), 4, 0, func(s *source) { s.set(cluster("us-000", "us")) }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) {
				h, s := newHub(t), newSource(append(many(test.eu, "eu"), many(test.us, "us")...)...)
				h.start(placement.Options{Clusters: s})
				h.create("web", test.policy)
				h.scheduled(v1alpha1.ReasonScheduled, "web")
				test.change(s)
				h.Holds("the failed clusters are left", func() bool { return len(h.chosen("web")) == test.eu+test.left })
				h.change("web", func(p *v1alpha1.Placement) { p.Spec.DecisionGroups = []v1alpha1.DecisionGroup{{Name: "again"}} })
				h.Holds("the placement is decided again", func() bool { return h.get("web").Status.ObservedGeneration == 2 })
				chosen := h.chosen("web")
				for _, c := range many(test.eu, "eu") {
					require.Contains(t, chosen, c.Name)
				}
				require.Len(t, chosen, test.eu+test.left)
			})
		})
	}
}
