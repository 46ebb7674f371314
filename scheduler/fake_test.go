package scheduler_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// everything is a plugin with all extension points. Each point calls a function, and does nothing if the function is
// nil.
type everything struct {
	name       string
	preFilter  func(*scheduler.CycleState, *scheduler.Request) *scheduler.Status
	filter     func(*scheduler.Cluster) *scheduler.Status
	postFilter func(scheduler.Set) *scheduler.Status
	preScore   func() *scheduler.Status
	score      func(*scheduler.Cluster) (float64, *scheduler.Status)
	normalize  func(scheduler.Set, []float64) *scheduler.Status
	selects    func(*scheduler.Candidates) *scheduler.Status
	reserve    func(*scheduler.Cluster) *scheduler.Status
	unreserve  func(*scheduler.Cluster)
	hint       func(scheduler.Event) bool
	called     func(point string)
}

func (e *everything) call(point string) {
	if e.called != nil {
		e.called(e.name + " " + point)
	}
}

func (e *everything) Name() string { return e.name }

func (e *everything) PreFilter(_ context.Context, state *scheduler.CycleState,
	request *scheduler.Request) *scheduler.Status {
	e.call("PreFilter")
	if e.preFilter == nil {
		return nil
	}
	return e.preFilter(state, request)
}

func (e *everything) Filter(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	cluster *scheduler.Cluster) *scheduler.Status {
	e.call("Filter " + cluster.Name)
	if e.filter == nil {
		return nil
	}
	return e.filter(cluster)
}

func (e *everything) PostFilter(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	feasible scheduler.Set) *scheduler.Status {
	e.call("PostFilter")
	if e.postFilter == nil {
		return nil
	}
	return e.postFilter(feasible)
}

func (e *everything) PreScore(context.Context, *scheduler.CycleState, *scheduler.Request,
	scheduler.Set) *scheduler.Status {
	e.call("PreScore")
	if e.preScore == nil {
		return nil
	}
	return e.preScore()
}

func (e *everything) Score(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	cluster *scheduler.Cluster) (float64, *scheduler.Status) {
	e.call("Score " + cluster.Name)
	if e.score == nil {
		return 0, nil
	}
	return e.score(cluster)
}

func (e *everything) NormalizeScore(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	feasible scheduler.Set, scores []float64) *scheduler.Status {
	e.call("NormalizeScore")
	if e.normalize == nil {
		return nil
	}
	return e.normalize(feasible, scores)
}

func (e *everything) Selects(*scheduler.Request) bool { return e.selects != nil }

func (e *everything) Select(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	candidates *scheduler.Candidates) *scheduler.Status {
	e.call("Select")
	return e.selects(candidates)
}

func (e *everything) Reserve(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	cluster *scheduler.Cluster) *scheduler.Status {
	e.call("Reserve " + cluster.Name)
	if e.reserve == nil {
		return nil
	}
	return e.reserve(cluster)
}

func (e *everything) Unreserve(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	cluster *scheduler.Cluster) {
	e.call("Unreserve " + cluster.Name)
	if e.unreserve != nil {
		e.unreserve(cluster)
	}
}

func (e *everything) Hint(_ *scheduler.Request, event scheduler.Event) bool {
	return e.hint == nil || e.hint(event)
}

// schedulerOf returns a scheduler whose only profile has these plugins.
func schedulerOf(t testing.TB, plugins ...scheduler.Plugin) *scheduler.Scheduler {
	t.Helper()
	return schedulerWith(t, scheduler.Profile{}, plugins...)
}

func schedulerWith(t testing.TB, profile scheduler.Profile, plugins ...scheduler.Plugin) *scheduler.Scheduler {
	t.Helper()
	registry := scheduler.Registry{}
	for _, plugin := range plugins {
		require.NoError(t, registry.Register(plugin.Name(), func(scheduler.Args, scheduler.Handle) (scheduler.Plugin, error) {
			return plugin, nil
		}))
		profile.Plugins = append(profile.Plugins, scheduler.PluginConfig{Name: plugin.Name()})
	}
	s, err := scheduler.New(scheduler.Options{Registry: registry, Profiles: []scheduler.Profile{profile}})
	require.NoError(t, err)
	return s
}

// fleet returns a snapshot of clusters with these names.
func fleet(names ...string) *scheduler.Snapshot {
	var cache scheduler.Cache
	for _, name := range names {
		cache.Update(&scheduler.Cluster{Name: name})
	}
	return cache.Snapshot()
}

func pick(t testing.TB, n int32) *scheduler.Request {
	t.Helper()
	return request(t, v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: &n})
}

func pickAll(t testing.TB) *scheduler.Request {
	t.Helper()
	return request(t, v1alpha1.PlacementPolicy{})
}

func request(t testing.TB, spec v1alpha1.PlacementPolicy) *scheduler.Request {
	t.Helper()
	policy, err := scheduler.NewPolicy(&spec)
	require.NoError(t, err)
	return &scheduler.Request{Name: t.Name(), Policy: policy}
}

func chosen(result scheduler.Result) []string {
	var out []string
	for _, choice := range result.Chosen {
		out = append(out, choice.Cluster.Name)
	}
	return out
}

// quiet is a testing.TB for assertions that cannot fail within a property.
type quiet struct{ testing.TB }

func (quiet) Helper() {}
