package placement_test

import (
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/internal/failover"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// TestPlacement_FollowsChanges checks that a placement is decided, and that it follows changes of the clusters and of
// its policy.
func TestPlacement_FollowsChanges(t *testing.T) { testkit.Virtual(t, testPlacementFollowsChanges) }

func testPlacementFollowsChanges(t *testing.T) {
	h, s := newHub(t), newSource(append(many(150, "eu"), cluster("us-1", "us"))...)
	h.start(placement.Options{Clusters: s})
	h.create("web", inRegion(pick(3), "eu"))
	h.create("all", v1alpha1.PlacementPolicy{}, v1alpha1.DecisionGroup{Name: "canary",
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"region": "us"}}})
	h.scheduled(v1alpha1.ReasonScheduled, "web", "all")

	web := h.chosen("web")
	require.Len(t, web, 3)
	require.Len(t, h.chosen("all"), 151)
	require.Equal(t, "us-1", h.chosen("all")[0], "the clusters of a group come first")
	require.Equal(t, "151 of 151 clusters chosen", h.condition("all").Message)
	status := h.get("web").Status
	require.Equal(t, []int32{3, 3, 3}, []int32{status.DesiredClusters, status.SelectedClusters, status.ReadyClusters})

	s.set(cluster(web[1], "eu", func(c *scheduler.Cluster) { c.Healthy = false }))
	h.Holds("one is not ready", func() bool { return h.get("web").Status.ReadyClusters == 2 })
	require.Equal(t, web, h.chosen("web"), "an unhealthy cluster without a taint stays")

	s.remove(web[1])
	h.Holds("a cluster is replaced", func() bool {
		now := h.chosen("web")
		return len(now) == 3 && !slices.Contains(now, web[1]) && slices.Contains(now, web[0]) && slices.Contains(now, web[2])
	})
	s.set(cluster("asia-1", "asia"))
	h.Holds("PickAll selects the new cluster", func() bool { return slices.Contains(h.chosen("all"), "asia-1") })

	h.change("web", func(p *v1alpha1.Placement) { p.Spec.Policy = inRegion(pick(2), "us") })
	h.scheduled(v1alpha1.ReasonUnschedulable, "web")
	require.Equal(t, []string{"us-1"}, h.chosen("web"))
	require.Contains(t, h.condition("web").Message, "1 of 151 clusters chosen, but 2 are desired; 150 do not match")
	s.set(cluster("us-2", "us"))
	h.scheduled(v1alpha1.ReasonScheduled, "web")
	require.ElementsMatch(t, []string{"us-1", "us-2"}, h.chosen("web"))
}

// TestRestart checks that a restart without relevant changes writes nothing, even if clusters were added meanwhile that
// no placement can choose.
func TestRestart(t *testing.T) { testkit.Virtual(t, testRestart) }

func testRestart(t *testing.T) {
	h, s := newHub(t), newSource(many(150, "eu")...)
	first := h.start(placement.Options{Clusters: s})
	h.create("all", v1alpha1.PlacementPolicy{})
	h.create("few", pick(7))
	h.create("too-many", inRegion(pick(3), "us"))
	h.scheduled(v1alpha1.ReasonScheduled, "all", "few")
	h.scheduled(v1alpha1.ReasonUnschedulable, "too-many")
	first.stop()
	// This cluster is not chosen, but is part of the numbers in messages.
	s.set(cluster("later", "eu", func(c *scheduler.Cluster) { c.Joined = false }))
	before, status := h.slices(), h.get("few").ResourceVersion
	require.Len(t, before, 3)

	decider := newCounting(t)
	second := h.start(placement.Options{Clusters: s, Decider: decider})
	h.Holds("all placements are decided", func() bool { return decider.total() >= 3 })
	quiet(t, func() int64 { return int64(decider.total()) })
	require.Zero(t, second.transport.writes.Load())
	require.Equal(t, versions(before), versions(h.slices()))
	require.Equal(t, status, h.get("few").ResourceVersion)
	require.Equal(t, map[string]int{"all": 1, "few": 1, "too-many": 1}, decider.takeCounts(), "each is decided once")
}

// TestReschedule checks that the annotation causes one decision without regard to the current clusters, and that this
// decision keeps a cluster if the others are equal.
func TestReschedule(t *testing.T) { testkit.Virtual(t, testReschedule) }

func testReschedule(t *testing.T) {
	h, s := newHub(t), newSource(cluster("b", "eu"), cluster("c", "eu"))
	h.create("web", pick(1))
	h.start(placement.Options{Clusters: s})
	h.scheduled(v1alpha1.ReasonScheduled, "web")
	require.Equal(t, []string{"b"}, h.chosen("web"))
	s.set(cluster("a", "eu"))
	for _, value := range []string{"equal", "again"} {
		h.change("web", func(p *v1alpha1.Placement) {
			p.Annotations = map[string]string{v1alpha1.RescheduleAnnotation: value}
		})
		h.Holds("the rescheduling is recorded", func() bool { return h.get("web").Status.Rescheduled == value })
		require.Equal(t, []string{"b"}, h.chosen("web"), "a is not better than b, which has only this placement")
	}
	busy := func(clusters ...string) v1alpha1.PlacementPolicy {
		return v1alpha1.PlacementPolicy{Type: v1alpha1.PickFixed, ClusterNames: clusters}
	}
	h.create("busy", busy("b", "c"))
	h.scheduled(v1alpha1.ReasonScheduled, "busy")
	reschedule := func(value string) {
		h.change("web", func(p *v1alpha1.Placement) {
			p.Annotations = map[string]string{v1alpha1.RescheduleAnnotation: value}
		})
	}
	reschedule("1")
	h.Holds("the placement moves", func() bool { return slices.Equal(h.chosen("web"), []string{"a"}) })
	h.Holds("the rescheduling is recorded", func() bool { return h.get("web").Status.Rescheduled == "1" })
	s.set(cluster("0", "eu"))
	h.change("busy", func(p *v1alpha1.Placement) { p.Spec.Policy = busy("a", "b", "c") })
	h.scheduled(v1alpha1.ReasonScheduled, "busy")
	h.change("web", func(p *v1alpha1.Placement) { p.Spec.DecisionGroups = []v1alpha1.DecisionGroup{{Name: "all"}} })
	h.Holds("the placement is decided again", func() bool { return h.get("web").Status.ObservedGeneration == 2 })
	require.Equal(t, []string{"a"}, h.chosen("web"), "the annotation applies once")
	h.change("web", func(p *v1alpha1.Placement) { p.Annotations = nil })
	h.Holds("the rescheduling is recorded", func() bool { return h.get("web").Status.Rescheduled == "" })
	require.Equal(t, []string{"a"}, h.chosen("web"), "removing the annotation must not move the placement")
	h.change("web", func(p *v1alpha1.Placement) {
		p.Spec.Policy = inRegion(pick(1), "x y") // an invalid label value
		p.Annotations = map[string]string{v1alpha1.RescheduleAnnotation: "2"}
	})
	h.scheduled(v1alpha1.ReasonInvalidPolicy, "web")
	require.Empty(t, h.get("web").Status.Rescheduled, "a failed decision is not a rescheduling")
	require.Equal(t, []string{"a"}, h.chosen("web"), "an invalid policy must not remove clusters")
	require.EqualValues(t, 1, h.get("web").Status.ReadyClusters)
	h.change("web", func(p *v1alpha1.Placement) { p.Spec.Policy = pick(1) })
	h.Holds("the placement is rescheduled with the valid policy", func() bool {
		return slices.Equal(h.chosen("web"), []string{"0"})
	})
}

func TestDecisionGroups_Parts(t *testing.T) { testkit.Virtual(t, testDecisionGroupsParts) }

// testDecisionGroupsParts divides groups into parts by number, restarts the controller, and replaces a cluster.
func testDecisionGroupsParts(t *testing.T) {
	h, s := newHub(t), newSource(cluster("a", "eu"), cluster("b", "eu"), cluster("c", "eu"))
	h.create("web", v1alpha1.PlacementPolicy{Type: v1alpha1.PickAll})
	h.change("web", func(p *v1alpha1.Placement) { p.Spec.ClustersPerDecisionGroup = new(intstr.FromInt32(2)) })
	parts := func() map[string]int32 {
		out := map[string]int32{}
		for _, slice := range h.slices() {
			for _, d := range slice.Decisions {
				out[d.ClusterName] = d.GroupPart
			}
		}
		return out
	}
	r := h.start(placement.Options{Clusters: s})
	h.Holds("the third cluster is in the second part", func() bool {
		return maps.Equal(parts(), map[string]int32{"a": 0, "b": 0, "c": 1})
	})
	r.stop()
	h.start(placement.Options{Clusters: s})
	s.set(cluster("b", "eu", func(c *scheduler.Cluster) { c.Leaving = true }))
	h.Holds("the placement leaves the cluster", func() bool {
		return maps.Equal(parts(), map[string]int32{"a": 0, "c": 1})
	})
	s.set(cluster("0", "eu"))
	h.Holds("the new cluster fills the first part, and the others keep their parts", func() bool {
		return maps.Equal(parts(), map[string]int32{"0": 0, "a": 0, "c": 1})
	})
	h.change("web", func(p *v1alpha1.Placement) { p.Spec.ClustersPerDecisionGroup = nil })
	h.Holds("the group is not divided any more", func() bool {
		return maps.Equal(parts(), map[string]int32{"0": 0, "a": 0, "c": 0})
	})
}

// TestTolerationSeconds checks that a NoExecute taint moves a placement when its toleration ends, without any other
// event.
func TestTolerationSeconds(t *testing.T) { testkit.Virtual(t, testTolerationSeconds) }

func testTolerationSeconds(t *testing.T) {
	h, s := newHub(t), newSource(cluster("a", "eu"))
	policy := pick(1)
	policy.Tolerations = []v1alpha1.Toleration{{Key: "lost", Operator: corev1.TolerationOpExists,
		TolerationSeconds: new(int64(2))}}
	h.create("patient", policy)
	h.create("hasty", pick(1))
	clock := clocktesting.NewFakeClock(time.Now())
	h.start(placement.Options{Clusters: s, Clock: clock})
	h.scheduled(v1alpha1.ReasonScheduled, "patient", "hasty")
	s.set(cluster("b", "eu"))
	added := clock.Now()
	s.set(cluster("a", "eu", func(c *scheduler.Cluster) {
		c.Healthy = false
		c.Taints = []corev1.Taint{{Key: "lost", Effect: corev1.TaintEffectNoExecute, TimeAdded: new(metav1.NewTime(added))}}
	}))
	h.Holds("the placement without a toleration moves", func() bool {
		return slices.Equal(h.chosen("hasty"), []string{"b"})
	})
	require.Equal(t, []string{"a"}, h.chosen("patient"))
	clock.Step(3 * time.Second) // the time in a Kubernetes object has whole seconds
	h.Holds("the placement moves when the toleration ends", func() bool {
		return slices.Equal(h.chosen("patient"), []string{"b"})
	})
}

// TestTolerationSeconds_TaintWithoutTime checks that a toleration also ends for a taint without timeAdded, such as
// one that a user added.
func TestTolerationSeconds_TaintWithoutTime(t *testing.T) {
	testkit.Virtual(t, testTolerationSecondsTaintWithoutTime)
}

func testTolerationSecondsTaintWithoutTime(t *testing.T) {
	h, s := newHub(t), newSource(cluster("a", "eu"))
	policy := pick(1)
	policy.Tolerations = []v1alpha1.Toleration{{Key: "repair", Operator: corev1.TolerationOpExists,
		TolerationSeconds: new(int64(60))}}
	h.create("patient", policy)
	h.create("hasty", pick(1))
	clock := clocktesting.NewFakeClock(time.Now())
	h.start(placement.Options{Clusters: s, Clock: clock})
	h.scheduled(v1alpha1.ReasonScheduled, "patient", "hasty")
	s.set(cluster("b", "eu"))
	tainted := func(labels ...string) {
		s.set(cluster("a", "eu", func(c *scheduler.Cluster) {
			c.Taints = []corev1.Taint{{Key: "repair", Effect: corev1.TaintEffectNoExecute}}
			for _, label := range labels {
				c.Labels[label] = ""
			}
		}))
	}
	tainted()
	h.Holds("the placement without a toleration moves", func() bool {
		return slices.Equal(h.chosen("hasty"), []string{"b"})
	})
	clock.Step(40 * time.Second)
	tainted("changed")
	require.Equal(t, []string{"a"}, h.chosen("patient"))
	clock.Step(21 * time.Second)
	h.Holds("another change of the cluster does not restart the toleration", func() bool {
		return slices.Equal(h.chosen("patient"), []string{"b"})
	})
}

// TestFailover checks that with a failover policy a healthy cluster stays until its replacement is ready, and that the
// placement returns when the policy allows it.
func TestFailover(t *testing.T) { testkit.Virtual(t, testFailover) }

func testFailover(t *testing.T) {
	h, s := newHub(t), newSource(cluster("a", "eu"), cluster("b", "us"))
	var ready atomic.Bool
	web := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "web"},
		Spec: v1alpha1.PlacementSpec{
			Policy: pick(1), Failover: &v1alpha1.FailoverPolicy{Recovery: v1alpha1.Return, MaxEvictions: new(int32(10))},
		}}
	h.Create(web)
	h.start(placement.Options{Clusters: s, Ready: placement.ReadyFunc(func(p types.NamespacedName, cluster string) bool {
		return p.Name == "web" && (cluster == "a" || ready.Load())
	})})
	h.scheduled(v1alpha1.ReasonScheduled, "web")
	require.Equal(t, []string{"a"}, h.chosen("web"))
	s.set(cluster("a", "eu", func(c *scheduler.Cluster) {
		c.Taints = []corev1.Taint{{Key: "away", Effect: corev1.TaintEffectNoExecute}}
	}))
	h.Holds("both clusters are published", func() bool { return len(h.chosen("web")) == 2 })
	require.Equal(t, []v1alpha1.ClusterDecision{
		{ClusterName: "a", Reason: failover.WaitsForReplacement}, {ClusterName: "b", Reason: v1alpha1.ReasonScheduled,
			Replaces: "a"},
	}, h.slices()[0].Decisions)
	ready.Store(true)
	h.Holds("a is left when b is ready", func() bool { return slices.Equal(h.chosen("web"), []string{"b"}) })
	s.set(cluster("a", "eu"))
	h.Holds("the placement returns to a", func() bool { return slices.Equal(h.chosen("web"), []string{"a"}) })
}

// TestFailover_FailedPolicyChange checks that a change of the policy takes effect immediately and is not treated as
// failover, even if the first decision failed and another process makes the next one.
func TestFailover_FailedPolicyChange(t *testing.T) {
	testkit.Virtual(t, testFailoverFailedPolicyChange)
}

func testFailoverFailedPolicyChange(t *testing.T) {
	h, s := newHub(t), newSource(cluster("a", "eu"), cluster("b", "us"))
	require.NoError(t, h.Client.Create(t.Context(), &v1alpha1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "error"},
		Spec:       v1alpha1.PlacementSpec{Policy: inRegion(pick(1), "eu"), Failover: &v1alpha1.FailoverPolicy{}},
	}))
	decider := &failingDecider{Decider: newCounting(t)}
	options := placement.Options{Clusters: s, Decider: decider, Ready: placement.ReadyFunc(func(_ types.NamespacedName,
		cluster string) bool {
		return cluster == "a"
	})}
	first := h.start(options)
	h.scheduled(v1alpha1.ReasonScheduled, "error")
	decider.set(true)
	h.change("error", func(p *v1alpha1.Placement) { p.Spec.Policy = inRegion(pick(1), "us") })
	h.scheduled(v1alpha1.ReasonDecideFailed, "error")
	first.stop()
	decider.set(false)
	h.start(options)
	h.scheduled(v1alpha1.ReasonScheduled, "error")
	require.Equal(t, []string{"b"}, h.chosen("error"), "a does not wait for b to be ready")
}
