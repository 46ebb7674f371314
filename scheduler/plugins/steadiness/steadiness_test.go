package steadiness_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/steadiness"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

func TestConformance(t *testing.T) {
	schedulertest.Conformance(t, schedulertest.Plugin{
		Name: steadiness.Name, Factory: steadiness.New,
		Clusters: []*scheduler.Cluster{schedulertest.Cluster("a"), schedulertest.Cluster("b"), schedulertest.Cluster("c")},
	})
}

func TestSteadiness(t *testing.T) {
	snapshot := schedulertest.Snapshot(schedulertest.Cluster("a"), schedulertest.Cluster("b"), schedulertest.Cluster("c"))
	s := schedulertest.Scheduler(t, steadiness.Name, steadiness.New, "")
	spec := v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(2))}
	for _, test := range []struct {
		reason string
		bound  []string
		want   []scheduler.Choice
	}{
		{"bound cluster first", []string{"c", "gone"}, []scheduler.Choice{{Cluster: at(snapshot, "c"), Score: 100},
			{Cluster: at(snapshot, "a")}}},
		{"no bound cluster", nil,
			[]scheduler.Choice{{Cluster: at(snapshot, "a")}, {Cluster: at(snapshot, "b")}}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			result, err := s.Schedule(t.Context(), snapshot, schedulertest.Request(t, spec, test.bound...))
			require.NoError(t, err)
			require.Equal(t, test.want, result.Chosen)
		})
	}
}

func at(snapshot *scheduler.Snapshot, name string) *scheduler.Cluster {
	slot, _ := snapshot.Slot(name)
	return snapshot.Cluster(slot)
}
