package balance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/balance"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

func placements(n int) schedulertest.Option {
	return func(c *scheduler.Cluster) { c.Placements = n }
}

func TestConformance(t *testing.T) {
	schedulertest.Conformance(t, schedulertest.Plugin{
		Name: balance.Name, Factory: balance.New,
		Clusters: []*scheduler.Cluster{
			schedulertest.Cluster("a"), schedulertest.Cluster("b", placements(7)), schedulertest.Cluster("c", placements(3)),
			schedulertest.Cluster("d", placements(7)),
		},
	})
}

func TestBalance(t *testing.T) {
	s := schedulertest.Scheduler(t, balance.Name, balance.New, "")
	spec := v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(3))}
	for _, test := range []struct {
		reason string
		counts [3]int
		want   map[string]float64
	}{
		{"scores in proportion to the placements", [3]int{8, 3, 0}, map[string]float64{"a": 0, "b": 62.5, "c": 100}},
		{"no placements", [3]int{}, map[string]float64{"a": 0, "b": 0, "c": 0}},
		{"equal numbers of placements", [3]int{4, 4, 4}, map[string]float64{"a": 100, "b": 100, "c": 100}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			snapshot := schedulertest.Snapshot(
				schedulertest.Cluster("a", placements(test.counts[0])), schedulertest.Cluster("b", placements(test.counts[1])),
				schedulertest.Cluster("c", placements(test.counts[2])),
			)
			result, err := s.Schedule(t.Context(), snapshot, schedulertest.Request(t, spec))
			require.NoError(t, err)
			got := map[string]float64{}
			for _, choice := range result.Chosen {
				got[choice.Cluster.Name] = choice.Score
			}
			require.Equal(t, test.want, got)
		})
	}
}
