package externalscore_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/externalscore"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

const args = `{"scores": [{"name": "latency", "weight": 3}, {"name": "price"}]}`

func clusters() []*scheduler.Cluster {
	return []*scheduler.Cluster{
		schedulertest.Cluster("best", schedulertest.Score("latency", 100), schedulertest.Score("price", 100)),
		schedulertest.Cluster("cheap", schedulertest.Score("price", 100)),
		schedulertest.Cluster("none"),
		schedulertest.Cluster("odd", schedulertest.Score("latency", math.NaN()), schedulertest.Score("price", 101)),
		schedulertest.Cluster("slow", schedulertest.Score("latency", -100)),
	}
}

func TestConformance(t *testing.T) {
	schedulertest.Conformance(t, schedulertest.Plugin{
		Name: externalscore.Name, Factory: externalscore.New, Args: args, Clusters: clusters(),
	})
}

func TestExternalScore(t *testing.T) {
	s := schedulertest.Scheduler(t, externalscore.Name, externalscore.New, args)
	spec := v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(5))}
	result, err := s.Schedule(t.Context(), schedulertest.Snapshot(clusters()...), schedulertest.Request(t, spec))
	require.NoError(t, err)
	got := map[string]float64{}
	for _, choice := range result.Chosen {
		got[choice.Cluster.Name] = choice.Score
	}
	require.Equal(t, map[string]float64{"best": 100, "cheap": 62.5, "none": 50, "odd": 50, "slow": 12.5}, got)
}

func TestArgs(t *testing.T) {
	for _, test := range []struct{ reason, args, want string }{
		{"no scores", "", "scores: must have at least one score"},
		{"score without a name", `{"scores":[{"weight":1}]}`, "scores[0].name: must not be empty"},
		{"weight is too large", `{"scores":[{"name":"a"},{"name":"b","weight":101}]}`,
			"scores[1].weight: 101 is not from 1 to 100"},
		{"negative weight", `{"scores":[{"name":"a","weight":-1}]}`, "scores[0].weight: -1 is not from 1 to 100"},
		{"unknown field", `{"score":[]}`, `unknown field "score"`},
	} {
		t.Run(test.reason, func(t *testing.T) {
			_, err := externalscore.New(scheduler.Args(test.args), scheduler.Handle{})
			require.EqualError(t, err, test.want)
		})
	}
}
