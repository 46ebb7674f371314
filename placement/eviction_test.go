package placement_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

func (h *hub) evict(name, placement, cluster string,
	changes ...func(*v1alpha1.PlacementEviction)) *v1alpha1.PlacementEviction {
	h.T.Helper()
	e := &v1alpha1.PlacementEviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name},
		Spec:       v1alpha1.PlacementEvictionSpec{Placement: placement, Cluster: cluster},
	}
	for _, f := range changes {
		f(e)
	}
	h.Create(e)
	return e
}

func (h *hub) eviction(name string) *v1alpha1.PlacementEviction {
	h.T.Helper()
	e := &v1alpha1.PlacementEviction{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: h.Namespace, Name: name}, e))
	return e
}

func (h *hub) evictionExists(name string) bool {
	h.T.Helper()
	err := h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: h.Namespace, Name: name}, &v1alpha1.PlacementEviction{})
	if apierrors.IsNotFound(err) {
		return false
	}
	require.NoError(h.T, err)
	return true
}

// executed waits until the condition Executed of an eviction has this status and reason, and returns it.
func (h *hub) executed(name string, status metav1.ConditionStatus, reason string) metav1.Condition {
	h.T.Helper()
	var c metav1.Condition
	h.Holds(fmt.Sprintf("%s has the status %s and the reason %s", name, status, reason), func() bool {
		found := meta.FindStatusCondition(h.eviction(name).Status.Conditions, v1alpha1.ConditionExecuted)
		if found == nil {
			return false
		}
		c = *found
		return c.Status == status && c.Reason == reason
	})
	return c
}

// evictable creates a placement with a complete spec, and waits until it is decided.
func (h *hub) evictable(name string, spec v1alpha1.PlacementSpec) {
	h.T.Helper()
	require.NoError(h.T, h.Client.Create(h.T.Context(),
		&v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name}, Spec: spec}))
	h.scheduled(v1alpha1.ReasonScheduled, name)
}

// TestEviction checks that an eviction moves one placement, excludes it from the cluster while the eviction exists, and
// reports this in its status.
func TestEviction(t *testing.T) { testkit.Virtual(t, testEviction) }

func testEviction(t *testing.T) {
	h, s, decider := newHub(t), newSource(many(3, "eu")...), newCounting(t)
	r := h.start(placement.Options{Clusters: s, Decider: decider})
	for name, policy := range map[string]v1alpha1.PlacementPolicy{"few": pick(2), "all": {}, "other": {}} {
		h.create(name, policy)
	}
	h.scheduled(v1alpha1.ReasonScheduled, "few", "all", "other")
	quiet(t, func() int64 { return int64(decider.total()) })
	decider.takeCounts()
	left := h.chosen("few")[0]
	h.evict("few-1", "few", left)
	h.evict("all-1", "all", left)
	h.executed("few-1", metav1.ConditionTrue, v1alpha1.ReasonEvicted)
	h.executed("all-1", metav1.ConditionTrue, v1alpha1.ReasonEvicted)
	require.Len(t, h.chosen("few"), 2)
	require.NotContains(t, h.chosen("few"), left, "Executed must be True after the decision is written only")
	require.NotContains(t, h.chosen("all"), left)
	require.Equal(t, "2 of 3 clusters chosen; 1 is evicted", h.condition("all").Message)
	quiet(t, func() int64 { return int64(decider.total()) })
	require.Equal(t, map[string]int{"few": 1, "all": 1}, decider.takeCounts(), "no other placement is decided again")
	h.Holds("an Event reports the eviction", func() bool {
		var list eventsv1.EventList
		require.NoError(t, h.Client.List(t.Context(), &list, client.InNamespace(h.Namespace)))
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Name == "few-1" && e.Reason == v1alpha1.ReasonEvicted
		})
	})

	writes := r.transport.writes.Load()
	s.set(cluster(left, "eu", func(c *scheduler.Cluster) { c.Labels["tier"] = "gold" }))
	quiet(t, func() int64 { return int64(decider.total()) })
	require.Equal(t, map[string]int{"other": 1}, decider.takeCounts(),
		"a change of an evicted cluster must not cause a decision")
	require.Equal(t, writes, r.transport.writes.Load())
	diagnosis, err := placement.Explain(t.Context(), h.Client, placement.Options{Clusters: s}, h.get("all"))
	require.NoError(t, err)
	require.Equal(t, "2 of 3 clusters chosen; 1 is evicted", diagnosis.String())

	r.stop()
	again := h.start(placement.Options{Clusters: s, Decider: decider})
	h.Holds("all placements are decided", func() bool { return decider.total() >= 3 })
	quiet(t, func() int64 { return int64(decider.total()) })
	require.Zero(t, again.transport.writes.Load(), "a restart writes nothing")

	require.NoError(t, h.Client.Delete(t.Context(), h.eviction("all-1")))
	h.Holds("the placement returns to the cluster", func() bool { return slices.Contains(h.chosen("all"), left) })
	require.NotContains(t, h.chosen("few"), left)
}

// TestEvictionWithinABudget checks that a budget limits the number of available clusters that are left at a time, and
// that waiting evictions are executed as soon as the budget allows.
func TestEvictionWithinABudget(t *testing.T) { testkit.Virtual(t, testEvictionWithinABudget) }

func testEvictionWithinABudget(t *testing.T) {
	h, s := newHub(t), newSource(many(5, "eu")...)
	ready := &readiness{ready: map[string]bool{}}
	h.start(placement.Options{Clusters: s, Ready: placement.ReadyFunc(ready.Ready)})
	h.evictable("web", v1alpha1.PlacementSpec{Policy: pick(3),
		DisruptionBudget: &v1alpha1.DisruptionBudget{MaxUnavailable: new(intstr.FromInt32(1))}})
	on := sorted(h.chosen("web"))
	ready.set(on[0], on[1], on[2])
	h.evict("first", "web", on[0])
	h.executed("first", metav1.ConditionTrue, v1alpha1.ReasonEvicted)
	h.evict("second", "web", on[1])
	c := h.executed("second", metav1.ConditionFalse, v1alpha1.ReasonBudgetExhausted)
	require.Equal(t, "2 of 3 clusters are available, and 2 must stay available (maxUnavailable: 1).", c.Message)
	came := slices.DeleteFunc(h.chosen("web"), func(name string) bool { return slices.Contains(on, name) })
	require.Len(t, came, 1)
	h.evict("third", "web", came[0])
	h.executed("third", metav1.ConditionTrue, v1alpha1.ReasonEvicted)
	require.Contains(t, h.chosen("web"), on[1], "a ready cluster stays")
	ready.set("eu-000", "eu-001", "eu-002", "eu-003", "eu-004")
	h.executed("second", metav1.ConditionTrue, v1alpha1.ReasonEvicted)
	require.NotContains(t, h.chosen("web"), on[1])

	// 40% of the clusters may be unavailable, including those that are evicted.
	h.evictable("all",
		v1alpha1.PlacementSpec{DisruptionBudget: &v1alpha1.DisruptionBudget{MaxUnavailable: new(intstr.FromString("40%"))}})
	for i := range 3 {
		h.evict(fmt.Sprintf("all-%d", i), "all", fmt.Sprintf("eu-00%d", i))
		if i < 2 {
			h.executed(fmt.Sprintf("all-%d", i), metav1.ConditionTrue, v1alpha1.ReasonEvicted)
		}
	}
	h.executed("all-2", metav1.ConditionFalse, v1alpha1.ReasonBudgetExhausted)
	require.NoError(t, h.Client.Delete(t.Context(), h.eviction("all-0")))
	h.executed("all-2", metav1.ConditionTrue, v1alpha1.ReasonEvicted)
	require.Equal(t, []string{"eu-000", "eu-003", "eu-004"}, sorted(h.chosen("all")))
}

type readiness struct {
	mu    sync.Mutex
	ready map[string]bool
}

func (r *readiness) set(clusters ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range clusters {
		r.ready[name] = true
	}
}

func (r *readiness) Ready(_ types.NamespacedName, cluster string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready[cluster]
}

// groupDecider is a Decider that chooses no cluster if there are too few groups.
type groupDecider struct{ placement.Decider }

func (g groupDecider) Schedule(ctx context.Context, snapshot *scheduler.Snapshot,
	request *scheduler.Request) (scheduler.Result, error) {
	result, err := g.Decider.Schedule(ctx, snapshot, request)
	regions := map[string]bool{}
	for _, choice := range result.Chosen {
		regions[choice.Cluster.Labels["region"]] = true
	}
	if groups := request.Policy.Spec().GroupSpread; len(groups) > 0 && len(regions) < int(groups[0].MinGroups) {
		result.Chosen = nil
	}
	return result, err
}

// TestEviction_LastClusterOfGroup checks that the eviction of the last cluster of a group removes no other clusters.
func TestEviction_LastClusterOfGroup(t *testing.T) {
	testkit.Virtual(t, testEvictionLastClusterOfGroup)
}

func testEvictionLastClusterOfGroup(t *testing.T) {
	h, s := newHub(t), newSource(append(many(3, "eu"), cluster("us-0", "us"))...)
	h.start(placement.Options{Clusters: s})
	h.evictable("web",
		v1alpha1.PlacementSpec{Policy: v1alpha1.PlacementPolicy{GroupSpread: []v1alpha1.GroupSpreadConstraint{
			{Label: "region", MinGroups: 2}}}})
	h.evict("group", "web", "us-0")
	h.executed("group", metav1.ConditionTrue, v1alpha1.ReasonEvicted)
	require.Equal(t, []string{"eu-000", "eu-001", "eu-002"}, sorted(h.chosen("web")))
}

// TestEviction_WouldRemoveOtherClusters checks that with a budget an eviction waits if the policy would then give up
// further clusters, and that it does not block another eviction, whichever of them is older.
func TestEviction_WouldRemoveOtherClusters(t *testing.T) {
	for _, names := range [][2]string{{"a-group", "b-one"}, {"b-group", "a-one"}} {
		t.Run(names[0]+" and "+names[1], func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) {
				h, s := newHub(t), newSource(append(many(3, "eu"), cluster("us-0", "us"))...)
				h.start(placement.Options{Clusters: s, Decider: groupDecider{newCounting(t)}})
				policy := v1alpha1.PlacementPolicy{GroupSpread: []v1alpha1.GroupSpreadConstraint{{Label: "region", MinGroups: 2}}}
				h.evictable("web", v1alpha1.PlacementSpec{Policy: policy,
					DisruptionBudget: &v1alpha1.DisruptionBudget{MaxUnavailable: new(intstr.FromInt32(1))}})
				h.evict(names[0], "web", "us-0")
				c := h.executed(names[0], metav1.ConditionFalse, v1alpha1.ReasonBudgetExhausted)
				require.Contains(t, c.Message, "the policy would remove other clusters, too")
				require.Len(t, h.chosen("web"), 4)
				h.evict(names[1], "web", "eu-000")
				h.executed(names[1], metav1.ConditionTrue, v1alpha1.ReasonEvicted)
				require.Equal(t, []string{"eu-001", "eu-002", "us-0"}, sorted(h.chosen("web")))
			})
		})
	}
}

// TestEvictionWithFailover checks that a PlacementEviction waits for a replacement if the failover policy replaces
// before it evicts, also after other changes of the placement.
func TestEvictionWithFailover(t *testing.T) { testkit.Virtual(t, testEvictionWithFailover) }

func testEvictionWithFailover(t *testing.T) {
	h, s := newHub(t), newSource(cluster("a", "eu"))
	ready := &readiness{ready: map[string]bool{"a": true}}
	h.start(placement.Options{Clusters: s, Ready: placement.ReadyFunc(ready.Ready)})
	h.evictable("web", v1alpha1.PlacementSpec{
		Policy: pick(1), Failover: &v1alpha1.FailoverPolicy{Recovery: v1alpha1.Return, MaxEvictions: new(int32(10))},
		DisruptionBudget: &v1alpha1.DisruptionBudget{MinAvailable: new(intstr.FromInt32(1))},
	})
	h.evict("a", "web", "a")
	c := h.executed("a", metav1.ConditionFalse, v1alpha1.ReasonWaitsForReplacement)
	require.Contains(t, c.Message, "No replacement for the cluster is available")
	s.set(cluster("b", "eu"))
	h.Holds("a replacement is chosen", func() bool { return len(h.chosen("web")) == 2 })
	h.change("web", func(p *v1alpha1.Placement) { p.Spec.DecisionGroups = []v1alpha1.DecisionGroup{{Name: "all"}} })
	h.Holds("the placement is decided again", func() bool { return h.get("web").Status.ObservedGeneration == 2 })
	h.Holds("a replacement is chosen", func() bool { return len(h.chosen("web")) == 2 })
	h.executed("a", metav1.ConditionFalse, v1alpha1.ReasonWaitsForReplacement)
	ready.set("b")
	h.executed("a", metav1.ConditionTrue, v1alpha1.ReasonEvicted)
	require.Equal(t, []string{"b"}, h.chosen("web"))
	s.set(cluster("a", "eu", func(c *scheduler.Cluster) { c.Labels["tier"] = "gold" }))
	require.NoError(t, h.Client.Delete(t.Context(), h.eviction("a")))
	h.Holds("the placement returns to a", func() bool { return slices.Equal(h.chosen("web"), []string{"a"}) })
}

// TestEviction_NothingToEvict checks the status of evictions that have nothing to evict, and the deletion of an
// eviction after its time to live.
func TestEviction_NothingToEvict(t *testing.T) { testkit.Virtual(t, testEvictionNothingToEvict) }

func testEvictionNothingToEvict(t *testing.T) {
	h, s, clock := newHub(t), newSource(many(2, "eu")...), clocktesting.NewFakeClock(time.Now())
	h.start(placement.Options{Clusters: s, Clock: clock})
	h.evict("early", "late", "eu-000")
	h.executed("early", metav1.ConditionFalse, v1alpha1.ReasonPlacementNotFound)
	h.evictable("late", v1alpha1.PlacementSpec{Policy: pick(1)})
	h.executed("early", metav1.ConditionTrue, v1alpha1.ReasonNotPlaced)
	require.Equal(t, []string{"eu-001"}, h.chosen("late"), "the placement avoids the evicted cluster")
	h.evict("typo", "late", "eu-0000")
	c := h.executed("typo", metav1.ConditionTrue, v1alpha1.ReasonNotPlaced)
	require.Equal(t, "The cluster is not in the fleet.", c.Message)

	h.evictable("fixed", v1alpha1.PlacementSpec{Policy: v1alpha1.PlacementPolicy{Type: v1alpha1.PickFixed,
		ClusterNames: []string{"eu-000"}}})
	h.evict("named", "fixed", "eu-000")
	c = h.executed("named", metav1.ConditionFalse, v1alpha1.ReasonPickFixed)
	require.Contains(t, c.Message, "spec.policy.clusterNames")
	h.evict("unnamed", "fixed", "eu-001")
	h.executed("unnamed", metav1.ConditionTrue, v1alpha1.ReasonNotPlaced)
	h.change("fixed", func(p *v1alpha1.Placement) { p.Spec.Policy = pick(1) })
	h.executed("named", metav1.ConditionTrue, v1alpha1.ReasonEvicted)

	h.evictable("broken", v1alpha1.PlacementSpec{Policy: pick(1)})
	h.change("broken", func(p *v1alpha1.Placement) { p.Spec.Policy = inRegion(pick(1), "x y") })
	h.scheduled(v1alpha1.ReasonInvalidPolicy, "broken")
	h.evict("undecided", "broken", "eu-000")
	h.executed("undecided", metav1.ConditionFalse, v1alpha1.ReasonNotDecided)

	h.evictable("brief", v1alpha1.PlacementSpec{})
	h.evict("brief", "brief", "eu-000", func(e *v1alpha1.PlacementEviction) {
		e.Spec.TTLSecondsAfterExecution = new(int32(60))
	})
	h.executed("brief", metav1.ConditionTrue, v1alpha1.ReasonEvicted)
	require.Equal(t, []string{"eu-001"}, h.chosen("brief"))
	require.Eventually(t, clock.HasWaiters, time.Minute, 10*time.Millisecond)
	clock.Step(59 * time.Second)
	require.True(t, h.evictionExists("brief"))
	clock.Step(2 * time.Second)
	h.Holds("the eviction is deleted", func() bool { return !h.evictionExists("brief") })
	h.Holds("the placement is on the cluster again", func() bool { return len(h.chosen("brief")) == 2 })
	require.NoError(t, h.Client.Delete(t.Context(), h.get("late")))
	synctest.Wait() // until the controller has observed the deletion
	h.evict("after", "late", "eu-001")
	h.executed("after", metav1.ConditionFalse, v1alpha1.ReasonPlacementNotFound)
	if diff := cmp.Diff(v1alpha1.ReasonNotPlaced, h.eviction("early").Status.Conditions[0].Reason); diff != "" {
		t.Errorf("the deletion of the Placement changed an executed eviction (-want +got):\n%s", diff)
	}
}
