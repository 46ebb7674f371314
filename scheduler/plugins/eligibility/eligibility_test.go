package eligibility_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/eligibility"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

func notJoined(c *scheduler.Cluster) { c.Joined = false }
func leaving(c *scheduler.Cluster)   { c.Leaving = true }
func unhealthy(c *scheduler.Cluster) { c.Healthy = false }

func TestConformance(t *testing.T) {
	schedulertest.Conformance(t, schedulertest.Plugin{
		Name: eligibility.Name, Factory: eligibility.New,
		Policies: []v1alpha1.PlacementPolicy{
			{Type: v1alpha1.PickFixed, ClusterNames: []string{"a", "b", "c", "d", "e", "f"}}},
		Clusters: []*scheduler.Cluster{
			schedulertest.Cluster("a"), schedulertest.Cluster("b", notJoined), schedulertest.Cluster("c", leaving),
			schedulertest.Cluster("d", unhealthy), schedulertest.Cluster("e", unhealthy),
			schedulertest.Cluster("f", unhealthy, leaving),
		},
	})
}

func TestEligibility(t *testing.T) {
	snapshot := schedulertest.Snapshot(
		schedulertest.Cluster("away", notJoined), schedulertest.Cluster("going", leaving),
		schedulertest.Cluster("ill", unhealthy), schedulertest.Cluster("well"),
	)
	s := schedulertest.Scheduler(t, eligibility.Name, eligibility.New, "")
	for _, test := range []struct {
		reason  string
		bound   []string
		want    []string
		message string
	}{
		{
			"new clusters must be joined, healthy and not leaving", nil, []string{"well"},
			"1 of 4 clusters chosen; 1 has not joined the fleet, 1 is leaving the fleet, 1 is not known to be healthy",
		},
		{
			"bound clusters stay unless they are leaving",
			[]string{"away", "going", "ill"}, []string{"away", "ill", "well"}, "3 of 4 clusters chosen; 1 is leaving the fleet",
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			result, err := s.Schedule(t.Context(), snapshot, schedulertest.Request(t, v1alpha1.PlacementPolicy{}, test.bound...))
			require.NoError(t, err)
			require.Equal(t, test.want, schedulertest.Chosen(result))
			diagnosis, err := result.Diagnose(t.Context())
			require.NoError(t, err)
			require.Equal(t, test.message, diagnosis.String())
		})
	}
}

func TestArgs(t *testing.T) {
	_, err := eligibility.New(scheduler.Args(`{"a":1}`), scheduler.Handle{})
	require.ErrorContains(t, err, `unknown field "a"`)
}
