package topologyspread

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// limitedPlugin is the plugin with a limited number of steps.
type limitedPlugin struct {
	plugin
	steps int
}

func (h limitedPlugin) Select(
	ctx context.Context, state *scheduler.CycleState, request *scheduler.Request, candidates *scheduler.Candidates,
) *scheduler.Status {
	constraints, err := h.compiled(request)
	if err != nil {
		return scheduler.Fail(err)
	}
	s := gather(state, candidates, constraints)
	s.rank()
	s.err = ctx.Err
	s.steps = maxSteps - h.steps
	s.keep(s.solve())
	return nil
}

// TestSelect_LimitedSteps checks that a search that ends early at any step satisfies the constraints, and that no
// further cluster could be added.
func TestSelect_LimitedSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := limitedPlugin{steps: rapid.IntRange(0, 2000).Draw(t, "steps")}
		s, err := scheduler.New(scheduler.Options{
			Registry: scheduler.Registry{Name: func(scheduler.Args, scheduler.Handle) (scheduler.Plugin, error) {
				return h,
					nil
			}},
			Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: Name}}}},
		})
		require.NoError(t, err)
		wanted := rapid.Int32Range(1, 20).Draw(t, "wanted")
		spec := v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: &wanted}
		keys, skews := []string{"zone", "tier"}[:rapid.IntRange(1, 2).Draw(t, "keys")], map[string]int{}
		for _, key := range keys {
			skews[key] = rapid.IntRange(1, 3).Draw(t, "skew")
			spec.TopologySpread = append(spec.TopologySpread, v1alpha1.TopologySpreadConstraint{
				TopologyKey: key, MaxSkew: int32(skews[key]), WhenUnsatisfiable: v1alpha1.DoNotSchedule,
			})
		}
		policy, err := scheduler.NewPolicy(&spec)
		require.NoError(t, err)
		cache, value := &scheduler.Cache{}, rapid.IntRange(1, 4)
		counts := map[string]map[string]int{"zone": {}, "tier": {}}
		var all []*scheduler.Cluster
		for i := range rapid.IntRange(1, 30).Draw(t, "clusters") {
			c := &scheduler.Cluster{Name: fmt.Sprint("c", i), Labels: map[string]string{}}
			for _, key := range keys {
				c.Labels[key] = fmt.Sprint(value.Draw(t, key))
				counts[key][c.Labels[key]] = 0
			}
			cache.Update(c)
			all = append(all, c)
		}
		result, err := s.Schedule(t.Context(), cache.Snapshot(), &scheduler.Request{Policy: policy})
		require.NoError(t, err)
		chosen := map[string]bool{}
		count := func(c *scheduler.Cluster, change int) {
			for _, key := range keys {
				counts[key][c.Labels[key]] += change
			}
		}
		satisfied := func() bool {
			for key, skew := range skews {
				most, fewest := 0, 1000
				for _, n := range counts[key] {
					most, fewest = max(most, n), min(fewest, n)
				}
				if most-fewest > skew {
					return false
				}
			}
			return true
		}
		for _, choice := range result.Chosen {
			count(choice.Cluster, +1)
			chosen[choice.Cluster.Name] = true
		}
		require.True(t, satisfied(), "%v", counts)
		for _, c := range all {
			if chosen[c.Name] || len(chosen) == int(wanted) {
				continue
			}
			count(c, +1)
			require.False(t, satisfied(), "%s could be added to %v", c.Name, chosen)
			count(c, -1)
		}
	})
}
