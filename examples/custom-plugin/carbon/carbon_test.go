package carbon_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/examples/custom-plugin/carbon"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

const args = `{"property": "intensity", "limit": 400}`

func grams(value string) schedulertest.Option { return schedulertest.Property("intensity", value) }

func TestConformance(t *testing.T) {
	schedulertest.Conformance(t, schedulertest.Plugin{
		Name: carbon.Name, Factory: carbon.New, Args: args,
		Clusters: []*scheduler.Cluster{
			schedulertest.Cluster("a", grams("28")), schedulertest.Cluster("b", grams("710")), schedulertest.Cluster("c",
				grams("174.5")),
			schedulertest.Cluster("d", grams("unknown")), schedulertest.Cluster("e"), schedulertest.Cluster("f", grams("-1")),
		},
	})
}

func TestCarbonIntensity(t *testing.T) {
	s := schedulertest.Scheduler(t, carbon.Name, carbon.New, args)
	want := func(n int32) v1alpha1.PlacementPolicy {
		return v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: &n}
	}
	for _, test := range []struct {
		reason  string
		values  map[string]string // by cluster
		scores  map[string]float64
		message string
	}{
		{
			"scores are proportional between the lowest intensity and the limit",
			map[string]string{"a": "400", "b": "0", "c": "100"}, map[string]float64{"a": 0, "b": 100, "c": 75},
			"3 of 3 clusters chosen",
		},
		{
			"clusters above the limit are rejected and do not affect scores",
			map[string]string{"a": "400.5", "b": "200", "c": "1k"},
			map[string]float64{"b": 100},
			"1 of 3 clusters chosen, but 3 are desired; 2 exceed 400 g of CO2 per kWh",
		},
		{
			"a cluster with a property that is not a number is rejected", map[string]string{"a": "low", "b": "200"},
			map[string]float64{"b": 100},
			`1 of 2 clusters chosen, but 2 are desired; 1 has property intensity with value "low", which is no quantity`,
		},
		{
			"a cluster with a negative intensity is rejected", map[string]string{"a": "-5", "b": "200"},
			map[string]float64{"b": 100},
			`1 of 2 clusters chosen, but 2 are desired; 1 has property intensity with value "-5", which is negative`,
		},
		{
			"a cluster without the property is rejected", map[string]string{"a": "none", "b": "200"},
			map[string]float64{"b": 100},
			"1 of 2 clusters chosen, but 2 are desired; 1 has no property intensity",
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			var fleet []*scheduler.Cluster
			for name, value := range test.values {
				cluster := schedulertest.Cluster(name)
				if value != "none" {
					grams(value)(cluster)
				}
				fleet = append(fleet, cluster)
			}
			result, err := s.Schedule(t.Context(), schedulertest.Snapshot(fleet...),
				schedulertest.Request(t, want(int32(len(fleet)))))
			require.NoError(t, err)
			scores := map[string]float64{}
			for _, choice := range result.Chosen {
				scores[choice.Cluster.Name] = choice.Score
			}
			if diff := cmp.Diff(test.scores, scores); diff != "" {
				t.Errorf("scores (-want +got):\n%s", diff)
			}
			diagnosis, err := result.Diagnose(t.Context())
			require.NoError(t, err)
			require.Equal(t, test.message, diagnosis.String())
		})
	}
}

// TestHint checks hints that would be useless. The conformance test finds missing hints.
func TestHint(t *testing.T) {
	plugin, err := carbon.New(scheduler.Args(args), scheduler.Handle{})
	require.NoError(t, err)
	clean, dirty := schedulertest.Cluster("a", grams("100")), schedulertest.Cluster("a", grams("500"))
	for _, test := range []struct {
		reason string
		event  scheduler.Event
		want   bool
	}{
		{"the cluster falls below the limit", scheduler.Event{Old: dirty, New: clean}, true},
		{"a new cluster within the limit", scheduler.Event{New: clean}, true},
		{"a new cluster above the limit", scheduler.Event{New: dirty}, false},
		{"a lower intensity that is still above the limit", scheduler.Event{Old: dirty, New: schedulertest.Cluster("a",
			grams("450"))}, false},
		{"a lower intensity of a cluster within the limit", scheduler.Event{Old: clean,
			New: schedulertest.Cluster("a", grams("50"))}, false},
		{"the cluster is deleted", scheduler.Event{Old: clean}, false},
	} {
		require.Equal(t, test.want, plugin.(scheduler.HintPlugin).Hint(nil, test.event), test.reason)
	}
}

func TestArgs(t *testing.T) {
	for _, test := range []struct{ reason, args, want string }{
		{"no arguments", "", "property: must not be empty"},
		{"an empty property", `{"property": "", "limit": 400}`, "property: must not be empty"},
		{"no limit", `{"property": "intensity"}`, "limit: 0 is not above 0"},
		{"a negative limit", `{"property": "intensity", "limit": -1.5}`, "limit: -1.5 is not above 0"},
		{"a limit in quotes", `{"property": "intensity", "limit": "400"}`,
			"cannot unmarshal string into Go struct field Args.limit of type float64"},
		{"an unknown field", `{"property": "intensity", "limits": 400}`, `unknown field "limits"`},
	} {
		t.Run(test.reason, func(t *testing.T) {
			_, err := carbon.New(scheduler.Args(test.args), scheduler.Handle{})
			require.ErrorContains(t, err, test.want)
		})
	}
}
