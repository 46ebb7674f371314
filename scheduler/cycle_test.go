package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// TestCycle_OrderOfExtensionPoints checks that a cycle calls each plugin at each of its extension points in the order
// of the profile.
func TestCycle_OrderOfExtensionPoints(t *testing.T) {
	var got []string
	called := func(point string) { got = append(got, point) }
	p := &everything{
		name: "P", called: called,
		filter: func(c *scheduler.Cluster) *scheduler.Status {
			if c.Name == "c" {
				return scheduler.Reject("is c")
			}
			return nil
		},
		selects: func(*scheduler.Candidates) *scheduler.Status { return nil },
	}
	q := &everything{name: "Q", called: called}
	result, err := schedulerOf(t, p, q).Schedule(t.Context(), fleet("a", "b", "c"), pick(t, 3))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, chosen(result))
	want := []string{
		"P PreFilter", "Q PreFilter",
		"P Filter a", "P Filter b", "P Filter c", "Q Filter a", "Q Filter b",
		"P PostFilter", "Q PostFilter",
		"P PreScore", "P Score a", "P Score b", "P NormalizeScore",
		"Q PreScore", "Q Score a", "Q Score b", "Q NormalizeScore",
		"P Select",
		"P Reserve a", "Q Reserve a", "P Reserve b", "Q Reserve b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	got = nil
	result.Unreserve(t.Context())
	require.Equal(t, []string{"Q Unreserve b", "P Unreserve b", "Q Unreserve a", "P Unreserve a"}, got,
		"Unreserve runs in reverse order")
}

func TestCycle_Skip(t *testing.T) {
	var got []string
	p := &everything{
		name:      "P",
		called:    func(point string) { got = append(got, point) },
		preFilter: func(*scheduler.CycleState, *scheduler.Request) *scheduler.Status { return scheduler.NothingToDo() },
		preScore:  scheduler.NothingToDo,
	}
	q := &everything{name: "Q", called: p.called}
	_, err := schedulerOf(t, p, q).Schedule(t.Context(), fleet("a"), pick(t, 1))
	require.NoError(t, err)
	require.Equal(t, []string{
		"P PreFilter", "Q PreFilter", "Q Filter a", "P PreScore", "Q PreScore", "Q Score a", "Q NormalizeScore",
		"P Reserve a", "Q Reserve a",
	}, got, "other plugins do not skip")
}

// scores returns a plugin that gives these scores.
func scores(name string, of map[string]float64) *everything {
	return &everything{name: name, score: func(c *scheduler.Cluster) (float64, *scheduler.Status) {
		return of[c.Name], nil
	}}
}

func TestCycle_Scores(t *testing.T) {
	registry := scheduler.Registry{}
	for _, p := range []*everything{
		scores("Half", map[string]float64{"a": 50, "b": 50, "c": 10}),
		scores("Last", map[string]float64{"a": 0, "b": 10, "c": 100}),
	} {
		require.NoError(t,
			registry.Register(p.name, func(scheduler.Args, scheduler.Handle) (scheduler.Plugin, error) { return p, nil }))
	}
	s, err := scheduler.New(scheduler.Options{Registry: registry, Profiles: []scheduler.Profile{
		{Plugins: []scheduler.PluginConfig{{Name: "Half", Weight: 2}, {Name: "Last"}}},
		{Name: "half", Plugins: []scheduler.PluginConfig{{Name: "Half"}}},
	}})
	require.NoError(t, err)
	for _, test := range []struct {
		reason string
		spec   v1alpha1.PlacementPolicy
		bound  []string
		want   []scheduler.PluginScore // the names of clusters and their total scores
	}{
		{
			reason: "weighted sum of all scores",
			want:   []scheduler.PluginScore{{Plugin: "c", Score: 120}, {Plugin: "b", Score: 110}, {Plugin: "a", Score: 100}},
		},
		{
			reason: "weight of the policy replaces the weight of the profile",
			spec:   v1alpha1.PlacementPolicy{Prioritizers: []v1alpha1.Prioritizer{{Plugin: "Last", Weight: 0}}},
			want:   []scheduler.PluginScore{{Plugin: "a", Score: 100}, {Plugin: "b", Score: 100}, {Plugin: "c", Score: 20}},
		},
		{
			reason: "equal scores: bound clusters first, then by name",
			spec:   v1alpha1.PlacementPolicy{Profile: "half"},
			bound:  []string{"b", "gone"},
			want:   []scheduler.PluginScore{{Plugin: "b", Score: 50}, {Plugin: "a", Score: 50}, {Plugin: "c", Score: 10}},
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			test.spec.Type, test.spec.NumberOfClusters = v1alpha1.PickN, new(int32(3))
			r := request(t, test.spec)
			r.Bound = test.bound
			result, err := s.Schedule(t.Context(), fleet("c", "b", "a"), r)
			require.NoError(t, err)
			var got []scheduler.PluginScore
			for _, choice := range result.Chosen {
				got = append(got, scheduler.PluginScore{Plugin: choice.Cluster.Name, Score: choice.Score})
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestCycle_NumberOfClusters(t *testing.T) {
	s := schedulerOf(t, &everything{name: "P", filter: func(c *scheduler.Cluster) *scheduler.Status {
		if c.Name == "bad" {
			return scheduler.Reject("is bad")
		}
		return nil
	}})
	for _, test := range []struct {
		reason  string
		spec    v1alpha1.PlacementPolicy
		want    []string
		missing int
	}{
		{"all feasible clusters, by name", v1alpha1.PlacementPolicy{}, []string{"a", "b", "c"}, 0},
		{"desired number of clusters", v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(2))},
			[]string{"a", "b"}, 0},
		{"fewer feasible clusters than desired",
			v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(5))},
			[]string{"a", "b", "c"}, 2},
		{"zero clusters", v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(0))}, nil, 0},
		{"named clusters that are feasible", v1alpha1.PlacementPolicy{Type: v1alpha1.PickFixed,
			ClusterNames: []string{"c", "a", "bad", "gone"}}, []string{"a", "c"}, 2},
	} {
		t.Run(test.reason, func(t *testing.T) {
			result, err := s.Schedule(t.Context(), fleet("c", "bad", "b", "a"), request(t, test.spec))
			require.NoError(t, err)
			require.Equal(t, test.want, chosen(result))
			require.Equal(t, test.missing, result.Missing())
			require.Equal(t, 4, result.Total)
		})
	}
}

// TestCycle_PluginFails checks that the failure of a plugin returns an error that names the plugin, and that the next
// cycle succeeds.
func TestCycle_PluginFails(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		reason string
		plugin *everything
		want   string
	}{
		{
			reason: "error of PreFilter",
			plugin: &everything{preFilter: func(*scheduler.CycleState, *scheduler.Request) *scheduler.Status {
				return scheduler.Fail(broken)
			}},
			want: "plugin Bad, PreFilter: broken",
		},
		{
			reason: "error of Filter",
			plugin: &everything{filter: func(*scheduler.Cluster) *scheduler.Status { return scheduler.Fail(broken) }},
			want:   "plugin Bad, Filter of cluster a: broken",
		},
		{
			reason: "Skip from Filter",
			plugin: &everything{filter: func(*scheduler.Cluster) *scheduler.Status { return scheduler.NothingToDo() }},
			want:   "plugin Bad, Filter of cluster a: returned a status that is invalid at this extension point: is skipped",
		},
		{
			reason: "error of PostFilter",
			plugin: &everything{postFilter: func(scheduler.Set) *scheduler.Status { return scheduler.Fail(broken) }},
			want:   "plugin Bad, PostFilter: broken",
		},
		{
			reason: "error of Score",
			plugin: &everything{score: func(*scheduler.Cluster) (float64, *scheduler.Status) {
				return 0, scheduler.Fail(broken)
			}},
			want: "plugin Bad, Score of cluster a: broken",
		},
		{
			reason: "score NaN",
			plugin: scores("", map[string]float64{"a": math.NaN()}),
			want:   "plugin Bad, Score of cluster a: score NaN is not from 0 to 100",
		},
		{
			reason: "score above the maximum",
			plugin: scores("", map[string]float64{"a": 100.5}),
			want:   "plugin Bad, Score of cluster a: score 100.5 is not from 0 to 100",
		},
		{
			reason: "negative score",
			plugin: scores("", map[string]float64{"a": -1}),
			want:   "plugin Bad, Score of cluster a: score -1 is not from 0 to 100",
		},
		{
			reason: "error of NormalizeScore",
			plugin: &everything{normalize: func(scheduler.Set, []float64) *scheduler.Status { return scheduler.Fail(broken) }},
			want:   "plugin Bad, NormalizeScore: broken",
		},
		{
			reason: "error of Select",
			plugin: &everything{selects: func(*scheduler.Candidates) *scheduler.Status { return scheduler.Fail(broken) }},
			want:   "plugin Bad, Select: broken",
		},
		{
			reason: "error of Reserve",
			plugin: &everything{reserve: func(*scheduler.Cluster) *scheduler.Status { return scheduler.Fail(broken) }},
			want:   "plugin Bad, Reserve: broken",
		},
		{
			reason: "panic of Filter",
			plugin: &everything{filter: func(*scheduler.Cluster) *scheduler.Status { panic("out of cheese") }},
			want:   "plugin Bad, Filter of cluster a: panicked: out of cheese",
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			test.plugin.name = "Bad"
			s := schedulerWith(t, scheduler.Profile{}, &everything{name: "Good"}, test.plugin)
			result, err := s.Schedule(t.Context(), fleet("a", "b"), pick(t, 3))
			require.EqualError(t, err, test.want)
			var failure *scheduler.PluginError
			require.ErrorAs(t, err, &failure)
			require.Equal(t, "Bad", failure.Plugin)
			require.Empty(t, result)

			*test.plugin = everything{name: "Bad"}
			result, err = s.Schedule(t.Context(), fleet("a", "b"), pick(t, 3))
			require.NoError(t, err, "the next cycle succeeds")
			require.Equal(t, []string{"a", "b"}, chosen(result))
		})
	}
}

// TestCycle_PluginTimeout checks that a plugin that does not return causes an error for its own request only.
func TestCycle_PluginTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		var calls atomic.Int32
		slow := &everything{name: "Slow", filter: func(*scheduler.Cluster) *scheduler.Status {
			if calls.Add(1) == 1 {
				<-forever
			}
			return nil
		}}
		s := schedulerWith(t, scheduler.Profile{Timeout: time.Second}, slow)
		start := time.Now()
		_, err := s.Schedule(t.Context(), fleet("a"), pick(t, 1))
		require.EqualError(t, err, "plugin Slow, Filter: did not return: context deadline exceeded")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))

		result, err := s.Schedule(t.Context(), fleet("a"), pick(t, 1))
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, chosen(result))
		close(forever)
	})
}

func TestCycle_ContextCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := schedulerOf(t, &everything{name: "P", filter: func(*scheduler.Cluster) *scheduler.Status {
		cancel()
		return nil
	}}, &everything{name: "Q"})
	_, err := s.Schedule(ctx, fleet("a"), pick(t, 1))
	require.ErrorIs(t, err, context.Canceled)
}

// TestCycle_RequestRejected checks that the rejection of a request as a whole is a result and not an error.
func TestCycle_RequestRejected(t *testing.T) {
	reject := func() *scheduler.Status { return scheduler.Reject("wants no more") }
	for _, test := range []struct {
		reason   string
		plugin   everything
		feasible int
	}{
		{"PreFilter rejects",
			everything{preFilter: func(*scheduler.CycleState, *scheduler.Request) *scheduler.Status { return reject() }}, 0},
		{"Select rejects", everything{selects: func(*scheduler.Candidates) *scheduler.Status { return reject() }}, 2},
		{"Reserve rejects", everything{reserve: func(*scheduler.Cluster) *scheduler.Status { return reject() }}, 2},
	} {
		t.Run(test.reason, func(t *testing.T) {
			test.plugin.name = "No"
			result, err := schedulerOf(t, &test.plugin).Schedule(t.Context(), fleet("a", "b"), pick(t, 2))
			require.NoError(t, err)
			require.Empty(t, result.Chosen)
			require.Equal(t, test.feasible, result.Feasible)
			require.Equal(t, 2, result.Missing())
			require.Equal(t, []string{"No"}, result.RejectedBy)
		})
	}
}

// TestCycle_ReserveIsAtomic checks that all reservations are undone in reverse order if one of them fails.
func TestCycle_ReserveIsAtomic(t *testing.T) {
	var reserved []string
	add := func(c *scheduler.Cluster) *scheduler.Status { reserved = append(reserved, c.Name); return nil }
	remove := func(c *scheduler.Cluster) {
		reserved = slices.DeleteFunc(reserved, func(name string) bool { return name == c.Name })
	}
	first := &everything{name: "First", reserve: add, unreserve: remove}
	second := &everything{name: "Second", reserve: func(c *scheduler.Cluster) *scheduler.Status {
		if c.Name == "b" {
			return scheduler.Reject("is full")
		}
		return nil
	}}
	result, err := schedulerOf(t, first, second).Schedule(t.Context(), fleet("a", "b", "c"), pickAll(t))
	require.NoError(t, err)
	require.Empty(t, result.Chosen)
	require.Empty(t, reserved)
}

func TestCycle_PostFilterHints(t *testing.T) {
	p := &everything{name: "Room", postFilter: func(feasible scheduler.Set) *scheduler.Status {
		return scheduler.Rejectf("could make room for %d more", 3-feasible.Len())
	}}
	result, err := schedulerOf(t, p).Schedule(t.Context(), fleet("a"), pick(t, 3))
	require.NoError(t, err)
	require.Equal(t, []string{"Room: could make room for 2 more"}, result.Hints)
}

func TestCycle_UntilIsTheEarliestTime(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	until := func(name string, at time.Time) *everything {
		return &everything{name: name, preFilter: func(s *scheduler.CycleState, _ *scheduler.Request) *scheduler.Status {
			s.Until(at)
			return nil
		}}
	}
	s := schedulerOf(t, until("P", noon.Add(time.Hour)), until("Q", noon), until("R", noon.Add(time.Minute)))
	result, err := s.Schedule(t.Context(), fleet("a"), pickAll(t))
	require.NoError(t, err)
	require.Equal(t, noon, result.Until, "the earliest time of all plugins")
}

func TestCycle_StateIsNotShared(t *testing.T) {
	type key struct{}
	p := &everything{name: "P", preFilter: func(s *scheduler.CycleState, r *scheduler.Request) *scheduler.Status {
		if s.Read(key{}) != nil {
			return scheduler.Fail(errors.New("the state of another cycle is visible"))
		}
		s.Write(key{}, r.Name)
		if s.Bound().Len() != len(r.Bound) {
			return scheduler.Fail(fmt.Errorf("%d clusters are bound", s.Bound().Len()))
		}
		return nil
	}}
	s := schedulerOf(t, p)
	bound := pick(t, 1)
	bound.Bound = []string{"b"}
	for _, r := range []*scheduler.Request{pick(t, 1), bound, pick(t, 1)} {
		_, err := s.Schedule(t.Context(), fleet("a", "b"), r)
		require.NoError(t, err)
	}
}

func TestMayHelp_Hints(t *testing.T) {
	yes := &everything{name: "Yes"}
	no := &everything{name: "No", hint: func(scheduler.Event) bool { return false }}
	s := schedulerOf(t, yes, no)
	for _, test := range []struct {
		reason   string
		rejected []string
		want     bool
	}{
		{"no plugin has rejected a cluster", nil, true},
		{"the rejecting plugin has no hint", []string{"No"}, false},
		{"one of two rejecting plugins has a hint", []string{"No", "Yes"}, true},
		{"a rejecting plugin is no longer in the profile", []string{"No", "Gone"}, true},
	} {
		require.Equal(t, test.want, s.MayHelp(pickAll(t), test.rejected, scheduler.Event{}), test.reason)
	}
}

// TestCycle_Determinism checks that the result depends only on the fleet and the request, and not on the order or the
// history of the clusters.
func TestCycle_Determinism(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 80).Draw(t, "clusters")
		of := make(map[string]float64, n)
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("c%02d", i)
			of[names[i]] = float64(rapid.IntRange(0, 3).Draw(t, "score"))
		}
		bound := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, "bound")
		wanted := rapid.IntRange(-1, n).Draw(t, "wanted")

		// The expected result, computed by the simplest algorithm.
		want := slices.Clone(names)
		spec := v1alpha1.PlacementPolicy{Rebalance: rapid.SampledFrom([]v1alpha1.RebalancePolicy{"", v1alpha1.RebalanceNever,
			v1alpha1.RebalanceAlways}).Draw(t, "rebalance")}
		if wanted >= 0 {
			spec.Type, spec.NumberOfClusters = v1alpha1.PickN, new(int32(wanted))
			slices.SortStableFunc(want, func(a, b string) int {
				key := func(name string) float64 {
					switch {
					case slices.Contains(bound, name) && spec.Rebalance == v1alpha1.RebalanceAlways:
						return -of[name] - 0.5
					case slices.Contains(bound, name):
						return -of[name] - 1000
					}
					return -of[name]
				}
				switch d := key(a) - key(b); {
				case d < 0:
					return -1
				case d > 0:
					return 1
				default:
					return 0
				}
			})
			want = want[:wanted]
		}
		policy, err := scheduler.NewPolicy(&spec)
		require.NoError(t, err)
		s := schedulerOf(quiet{}, scores("S", of))
		var cache scheduler.Cache
		for i, name := range rapid.Permutation(names).Draw(t, "order") {
			if i%5 == 0 { // the removed cluster leaves a free slot
				cache.Update(&scheduler.Cluster{Name: "gap" + name})
			}
			cache.Update(&scheduler.Cluster{Name: name, Healthy: true})
			if i%3 == 0 {
				cache.Snapshot()
			}
		}
		for _, name := range names {
			cache.Remove("gap" + name)
		}
		result, err := s.Schedule(context.Background(), cache.Snapshot(), &scheduler.Request{Policy: policy, Bound: bound})
		require.NoError(t, err)
		if diff := cmp.Diff(want, chosen(result)); diff != "" && len(want)+len(result.Chosen) > 0 {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	})
}

func TestCycle_Concurrent(t *testing.T) {
	s := schedulerOf(t, scores("S", map[string]float64{"b": 1}))
	snapshot := fleet("a", "b", "c")
	r := pick(t, 1)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				result, err := s.Schedule(t.Context(), snapshot, r)
				if err != nil || len(result.Chosen) != 1 || result.Chosen[0].Cluster.Name != "b" {
					t.Errorf("%v %v", chosen(result), err)
					return
				}
			}
		})
	}
	group.Wait()
}
