package resourcefit_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/resourcefit"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

func clusters() []*scheduler.Cluster {
	return []*scheduler.Cluster{
		schedulertest.Cluster("full", schedulertest.Resource("cpu", "10", "1"),
			schedulertest.Resource("memory", "10Gi", "8Gi")),
		schedulertest.Cluster("half", schedulertest.Resource("cpu", "10", "5"),
			schedulertest.Resource("memory", "10Gi", "8Gi")),
		schedulertest.Cluster("idle", schedulertest.Resource("cpu", "10", "10"),
			schedulertest.Resource("memory", "10Gi", "10Gi")),
		schedulertest.Cluster("odd", schedulertest.Resource("cpu", "0", "4")), // more than the allocatable amount
		schedulertest.Cluster("unknown"),
	}
}

func requesting(n int32, cpu string) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{
		Type: v1alpha1.PickN, NumberOfClusters: &n,
		Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}
}

func TestConformance(t *testing.T) {
	for _, args := range []string{"",
		`{"strategy": "MostAllocated", "resources": [{"name": "cpu", "weight": 2}, {"name": "memory"}]}`} {
		schedulertest.Conformance(t, schedulertest.Plugin{
			Name: resourcefit.Name, Factory: resourcefit.New, Args: args,
			Policies: []v1alpha1.PlacementPolicy{requesting(2, "2"), requesting(2, "0"), requesting(2, "5000m")},
			Clusters: clusters(),
		})
	}
}

func TestResourceFit(t *testing.T) {
	for _, test := range []struct {
		reason  string
		args    string
		cpu     string
		bound   []string
		want    map[string]float64
		message string
	}{
		{
			reason: "clusters with more available resources first", cpu: "2",
			want:    map[string]float64{"idle": 80, "half": 30, "odd": 0},
			message: "3 of 5 clusters chosen, but 5 are desired; 2 have less than 2 of cpu available",
		},
		{
			reason: "exactly the requested amount is available", cpu: "5000m",
			want:    map[string]float64{"idle": 50, "half": 0},
			message: "2 of 5 clusters chosen, but 5 are desired; 3 have less than 5 of cpu available",
		},
		{
			reason: "strategy MostAllocated", cpu: "2", args: `{"strategy":"MostAllocated"}`,
			want:    map[string]float64{"odd": 100, "half": 70, "idle": 20},
			message: "3 of 5 clusters chosen, but 5 are desired; 2 have less than 2 of cpu available",
		},
		{
			reason: "bound cluster needs no additional resources", cpu: "2", bound: []string{"full"},
			want:    map[string]float64{"idle": 80, "half": 30, "full": 10, "odd": 0},
			message: "4 of 5 clusters chosen, but 5 are desired; 1 has less than 2 of cpu available",
		},
		{
			reason: "resources and weights of the arguments", cpu: "2",
			args:    `{"resources":[{"name":"cpu","weight":3},{"name":"memory"}]}`,
			want:    map[string]float64{"idle": 85, "half": 42.5, "odd": 0},
			message: "3 of 5 clusters chosen, but 5 are desired; 2 have less than 2 of cpu available",
		},
		{
			reason: "request of zero", cpu: "0",
			want:    map[string]float64{"full": 0, "half": 0, "idle": 0, "odd": 0, "unknown": 0},
			message: "5 of 5 clusters chosen",
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := schedulertest.Scheduler(t, resourcefit.Name, resourcefit.New, test.args)
			result, err := s.Schedule(t.Context(), schedulertest.Snapshot(clusters()...),
				schedulertest.Request(t, requesting(5, test.cpu), test.bound...))
			require.NoError(t, err)
			got := map[string]float64{}
			for _, choice := range result.Chosen {
				got[choice.Cluster.Name] = choice.Score
			}
			require.InDeltaMapValues(t, test.want, got, 1e-9)
			diagnosis, err := result.Diagnose(t.Context())
			require.NoError(t, err)
			require.Equal(t, test.message, diagnosis.String())
		})
	}
}

func TestArgs(t *testing.T) {
	for _, test := range []struct{ reason, args, want string }{
		{"unknown strategy", `{"strategy":"Best"}`,
			`strategy: "Best" is neither LeastAllocated nor MostAllocated`},
		{"resource without a name", `{"resources":[{"weight":1}]}`, "resources[0].name: must not be empty"},
		{"weight is too large", `{"resources":[{"name":"cpu","weight":101}]}`,
			"resources[0].weight: 101 is not from 1 to 100"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			_, err := resourcefit.New(scheduler.Args(test.args), scheduler.Handle{})
			require.EqualError(t, err, test.want)
		})
	}
}
