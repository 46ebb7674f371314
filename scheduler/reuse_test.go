package scheduler_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/balance"
	"github.com/muster-sdk/muster/scheduler/plugins/clusteraffinity"
	"github.com/muster-sdk/muster/scheduler/plugins/eligibility"
	"github.com/muster-sdk/muster/scheduler/plugins/resourcefit"
	"github.com/muster-sdk/muster/scheduler/plugins/steadiness"
	"github.com/muster-sdk/muster/scheduler/plugins/tainttoleration"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

// countingFilter is a plugin that rejects clusters by a label and counts its calls.
type countingFilter struct{ filtered int }

func (*countingFilter) Name() string { return "Counted" }

func (c *countingFilter) Filter(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	cluster *scheduler.Cluster) *scheduler.Status {
	c.filtered++
	if cluster.Labels["bad"] != "" {
		return scheduler.Reject("is bad")
	}
	return nil
}

func (*countingFilter) Local(*scheduler.CycleState, *scheduler.Request) bool { return true }

// TestPrevious_ResultIsEqual checks that a decision with a previous result equals the decision without one.
func TestPrevious_ResultIsEqual(t *testing.T) {
	registry := scheduler.Registry{
		eligibility.Name: eligibility.New, clusteraffinity.Name: clusteraffinity.New(), resourcefit.Name: resourcefit.New,
		tainttoleration.Name: tainttoleration.New, steadiness.Name: steadiness.New, balance.Name: balance.New,
	}
	s, err := scheduler.New(
		scheduler.Options{Registry: registry, Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{
			{Name: eligibility.Name}, {Name: tainttoleration.Name}, {Name: clusteraffinity.Name, Weight: 3},
			{Name: resourcefit.Name},
			{Name: steadiness.Name}, {Name: balance.Name},
		}}}})
	require.NoError(t, err)
	cpu := func(n int) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(n), resource.DecimalSI)}
	}
	seconds := int64(90)
	rapid.Check(t, func(t *rapid.T) {
		specs := []v1alpha1.PlacementPolicy{
			{},
			{Type: v1alpha1.PickFixed, ClusterNames: []string{"c3", "c5"}},
			{Type: v1alpha1.PickN, NumberOfClusters: new(int32(rapid.IntRange(0, 6).Draw(t, "n")))},
			{
				Type: v1alpha1.PickN, NumberOfClusters: new(int32(rapid.IntRange(0, 6).Draw(t, "n"))), Resources: cpu(2),
				Affinity: &v1alpha1.ClusterAffinity{
					Required: []v1alpha1.ClusterSelectorTerm{matchLabels("env", "prod")},
					Preferred: []v1alpha1.PreferredTerm{{Weight: 7, Term: matchLabels("region", "eu")},
						{Weight: -3, Term: matchLabels("region", "us")}},
				},
				Tolerations: []v1alpha1.Toleration{{Key: "down", Operator: corev1.TolerationOpExists,
					Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}},
			},
		}
		spec := rapid.SampledFrom(specs).Draw(t, "policy")
		policy, err := scheduler.NewPolicy(&spec)
		require.NoError(t, err)
		// More or fewer clusters than a result stores of a ranking.
		last := rapid.SampledFrom([]int{7, 11, 39}).Draw(t, "last")
		names := rapid.Map(rapid.IntRange(0, last), func(i int) string { return fmt.Sprintf("c%d", i) })
		// A single cluster with a preferred taint, or with placements, affects the scores of all clusters.
		prefers, counts := rapid.IntRange(0, 3).Draw(t, "prefers") == 0, rapid.IntRange(0, 3).Draw(t, "counts") == 0
		effects := []corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectNoExecute,
			corev1.TaintEffectNoSchedule}
		if prefers {
			effects = append(effects, corev1.TaintEffectPreferNoSchedule)
		}
		var cache scheduler.Cache
		change := func() {
			name := names.Draw(t, "cluster")
			if rapid.IntRange(0, 5).Draw(t, "goes") == 0 {
				cache.Remove(name)
				return
			}
			c := schedulertest.Cluster(name)
			c.Healthy = rapid.IntRange(0, 4).Draw(t, "healthy") > 0
			c.Unreported = rapid.IntRange(0, 4).Draw(t, "unreported") == 0
			c.Labels = map[string]string{
				"env":    rapid.SampledFrom([]string{"prod", "prod", "dev"}).Draw(t, "env"),
				"region": rapid.SampledFrom([]string{"eu", "us", "ap"}).Draw(t, "region"),
			}
			c.Allocatable, c.Available = cpu(8), cpu(rapid.IntRange(0, 8).Draw(t, "cpu"))
			if rapid.IntRange(0, 3).Draw(t, "tainted") == 0 {
				schedulertest.Taint("down", "", rapid.SampledFrom(effects).Draw(t, "effect"), 0)(c)
			}
			if counts && rapid.IntRange(0, 9).Draw(t, "counted") == 0 {
				c.Placements = 1
			}
			cache.Update(c)
		}
		for range 2 * last {
			change()
		}
		now := schedulertest.Now
		var previous *scheduler.Result
		var bound []string
		views := map[string]*scheduler.Snapshot{}
		for range rapid.IntRange(1, 16).Draw(t, "rounds") {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				change()
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "seconds")) * time.Second)
			snapshot := cache.Snapshot()
			same := snapshot
			if without := rapid.SampledFrom([]string{"", "", "eu", "us"}).Draw(t, "without"); without != "" {
				// A fleet that never had the other clusters has the same result.
				var others scheduler.Cache
				snapshot = snapshot.Filter(func(c *scheduler.Cluster) bool { return c.Labels["region"] != without }, views[without])
				views[without] = snapshot
				for slot := range snapshot.All().All() {
					others.Update(snapshot.Cluster(slot))
				}
				same = others.Snapshot()
			}
			fresh, err := s.Schedule(context.Background(), same, &scheduler.Request{Policy: policy, Bound: bound, Now: now})
			require.NoError(t, err)
			reused, err := s.Schedule(context.Background(), snapshot, &scheduler.Request{Policy: policy, Bound: bound, Now: now,
				Previous: previous})
			require.NoError(t, err)
			if diff := cmp.Diff(fresh, reused, cmpopts.IgnoreUnexported(scheduler.Result{}), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("(-fresh +reused)\n%s", diff)
			}
			previous = &reused
			switch rapid.IntRange(0, 9).Draw(t, "binds") {
			case 0:
				bound = rapid.SliceOfNDistinct(names, 0, 6, rapid.ID[string]).Draw(t, "bound")
			case 1:
				bound = chosen(reused)
			}
		}
	})
}

// TestPrevious_FiltersOnlyChangedClusters checks that a decision with a previous result filters only the clusters that
// have changed.
func TestPrevious_FiltersOnlyChangedClusters(t *testing.T) {
	plugin := &countingFilter{}
	s := schedulerOf(t, plugin)
	var cache scheduler.Cache
	for i := range 1000 {
		cache.Update(&scheduler.Cluster{Name: fmt.Sprintf("c%03d", i)})
	}
	r := pick(t, 3)
	first, err := s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	require.Equal(t, 1000, plugin.filtered)

	plugin.filtered = 0
	cache.Update(&scheduler.Cluster{Name: "c500", Labels: map[string]string{"bad": "yes"}})
	r.Previous = &first
	second, err := s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	require.Equal(t, 2, plugin.filtered, "the former and the present state of the changed cluster")
	require.Equal(t, 999, second.Feasible)
	require.Equal(t, []string{"Counted"}, second.RejectedBy)
	diagnosis, err := second.Diagnose(t.Context())
	require.NoError(t, err)
	require.Equal(t, "3 of 1000 clusters chosen; 996 more are feasible, 1 is bad", diagnosis.String(),
		"the diagnosis is about the snapshot of the result")

	r.Previous, r.Bound = &second, []string{"c400"}
	bound, err := s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	require.Equal(t, []string{"c400", "c000", "c001"}, chosen(bound),
		"the request with another bound cluster is decided again")
	for _, name := range []string{"c000", "c400"} {
		plugin.filtered, r.Previous = 0, &bound
		cache.Update(&scheduler.Cluster{Name: name, Labels: map[string]string{"tier": "1"}})
		bound, err = s.Schedule(t.Context(), cache.Snapshot(), r)
		require.NoError(t, err)
		require.Equal(t, []string{"c400", "c000", "c001"}, chosen(bound), "the bound cluster stays first")
		require.Equal(t, 2, plugin.filtered)
	}

	r.Bound, r.Previous = nil, &second
	second, err = s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	plugin.filtered = 0
	cache.Update(&scheduler.Cluster{Name: "c001", Labels: map[string]string{"bad": "yes"}})
	r.Previous = &second
	third, err := s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	require.Equal(t, []string{"c000", "c002", "c003"}, chosen(third))
	require.Equal(t, 2, plugin.filtered, "a chosen cluster is rejected, and the next one is known")

	plugin.filtered = 0
	changed := &scheduler.Cluster{Name: "c002", Labels: map[string]string{"tier": "1"}}
	cache.Update(changed)
	r.Previous = &third
	fourth, err := s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	require.Equal(t, []string{"c000", "c002", "c003"}, chosen(fourth))
	require.Same(t, changed, fourth.Chosen[1].Cluster, "the result has the present cluster")
	require.NotSame(t, changed, third.Chosen[1].Cluster, "the previous result is not changed")
	require.Equal(t, 2, plugin.filtered, "a chosen cluster has changed without an effect")

	last := fourth
	for i := range 16 {
		// The cluster ranks below all stored clusters, which does not limit the clusters that are not stored.
		cache.Update(&scheduler.Cluster{Name: "c999", Labels: map[string]string{"tier": fmt.Sprint(i)}})
		plugin.filtered = 0
		cache.Update(&scheduler.Cluster{Name: last.Chosen[0].Cluster.Name, Labels: map[string]string{"bad": "yes"}})
		r.Previous = &last
		next, err := s.Schedule(t.Context(), cache.Snapshot(), r)
		require.NoError(t, err)
		require.Equal(t, i == 15, plugin.filtered > 4,
			"sixteen next clusters are stored, one of which is chosen already")
		last = next
	}
	require.Equal(t, []string{"c017", "c018", "c019"}, chosen(last))

	plugin.filtered = 0
	cache.Update(&scheduler.Cluster{Name: "c002"})
	r.Previous = &last
	back, err := s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	require.Equal(t, []string{"c002", "c017", "c018"}, chosen(back))
	require.Equal(t, 2, plugin.filtered, "a cluster that ranks above the chosen ones")
}

// TestPrevious_BoundClusterRemoved checks that the previous result is not reused after the removal of a bound
// cluster: the slots of the bound clusters have changed.
func TestPrevious_BoundClusterRemoved(t *testing.T) {
	s := schedulertest.Scheduler(t, eligibility.Name, eligibility.New, "")
	var cache scheduler.Cache
	cache.Update(schedulertest.Cluster("a"))
	ill := schedulertest.Cluster("b")
	ill.Healthy = false
	cache.Update(ill)
	r := schedulertest.Request(t, v1alpha1.PlacementPolicy{}, "b")
	first, err := s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, chosen(first))
	cache.Remove("b")
	r.Previous = &first
	second, err := s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, chosen(second))
}

// TestPrevious_PickAll checks that a decision for all feasible clusters is updated from the previous result.
func TestPrevious_PickAll(t *testing.T) {
	plugin := &countingFilter{}
	s := schedulerOf(t, plugin)
	var cache scheduler.Cache
	for _, name := range []string{"a", "b", "d"} {
		cache.Update(&scheduler.Cluster{Name: name})
	}
	r := pickAll(t)
	first, err := s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	plugin.filtered = 0
	cache.Remove("a")
	cache.Update(&scheduler.Cluster{Name: "b", Labels: map[string]string{"bad": "yes"}})
	cache.Update(&scheduler.Cluster{Name: "c"})
	r.Previous = &first
	second, err := s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	require.Equal(t, []string{"c", "d"}, chosen(second))
	require.Equal(t, 4, plugin.filtered, "a before, b before and after, c after the changes")
	require.Equal(t, []string{"a", "b", "d"}, chosen(first), "the previous result is not changed")
}

// TestPrevious_UntilOfChangedCluster checks that Until is recomputed if a changed cluster affects it.
func TestPrevious_UntilOfChangedCluster(t *testing.T) {
	s := schedulertest.Scheduler(t, tainttoleration.Name, tainttoleration.New, "")
	spec := v1alpha1.PlacementPolicy{Tolerations: []v1alpha1.Toleration{{
		Key: "down", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: new(int64(90)),
	}}}
	var cache scheduler.Cache
	cache.Update(schedulertest.Cluster("a"))
	cache.Update(schedulertest.Cluster("b"))
	r := schedulertest.Request(t, spec, "a", "b")
	first, err := s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	require.Zero(t, first.Until)

	cache.Update(schedulertest.Cluster("b", schedulertest.Taint("down", "", corev1.TaintEffectNoExecute, 0)))
	r.Previous = &first
	second, err := s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, chosen(second))
	require.Equal(t, schedulertest.Now.Add(90*time.Second), second.Until)
}

// windowed is a plugin whose decisions are valid until noon.
type windowed struct{ countingFilter }

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func (*windowed) PreFilter(_ context.Context, state *scheduler.CycleState, _ *scheduler.Request) *scheduler.Status {
	state.Until(noon)
	return nil
}

func TestPrevious_KeepsUntilOfPreFilter(t *testing.T) {
	s := schedulerOf(t, &windowed{})
	var cache scheduler.Cache
	cache.Update(&scheduler.Cluster{Name: "a"})
	r := pickAll(t)
	first, err := s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	cache.Update(&scheduler.Cluster{Name: "a", Labels: map[string]string{"bad": "yes"}})
	r.Previous = &first
	second, err := s.Schedule(t.Context(), cache.Snapshot(), r)
	require.NoError(t, err)
	require.Empty(t, second.Chosen)
	require.Equal(t, noon, second.Until)
}

// scored is a local plugin with the score in a label of the cluster.
type scored struct{}

func (scored) Name() string { return "Scored" }

func (scored) Score(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	cluster *scheduler.Cluster) (float64, *scheduler.Status) {
	score, err := strconv.ParseFloat(cluster.Labels["score"], 64)
	if err != nil {
		return 0, scheduler.Fail(err)
	}
	return score, nil
}

func (scored) Local(*scheduler.CycleState, *scheduler.Request) bool { return true }

// TestPrevious_InvalidScore checks that an invalid score fails a decision with a previous one, as it does without.
func TestPrevious_InvalidScore(t *testing.T) {
	s := schedulerOf(t, scored{})
	for _, score := range []string{"200", "-1", "NaN"} {
		var cache scheduler.Cache
		for _, name := range []string{"a", "b", "c"} {
			cache.Update(&scheduler.Cluster{Name: name, Labels: map[string]string{"score": "50"}})
		}
		r := pick(t, 1)
		first, err := s.Schedule(t.Context(), cache.Snapshot(), r)
		require.NoError(t, err)
		cache.Update(&scheduler.Cluster{Name: "b", Labels: map[string]string{"score": score}})
		for _, previous := range []*scheduler.Result{nil, &first} {
			r.Previous = previous
			_, err = s.Schedule(t.Context(), cache.Snapshot(), r)
			require.EqualError(t, err, fmt.Sprintf("plugin Scored, Score of cluster b: score %s is not from 0 to 100", score))
		}
	}
}
