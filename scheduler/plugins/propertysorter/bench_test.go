package propertysorter_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/clusteraffinity"
	"github.com/muster-sdk/muster/scheduler/plugins/eligibility"
	"github.com/muster-sdk/muster/scheduler/plugins/propertysorter"
)

// benchFleet returns a fleet of n clusters, half of them in production.
func benchFleet(n int) []*scheduler.Cluster {
	fleet := make([]*scheduler.Cluster, n)
	for i := range fleet {
		h := uint32(i) * 2654435761
		fleet[i] = &scheduler.Cluster{
			Name: fmt.Sprintf("cluster-%05d", i), Joined: true, Healthy: true,
			Labels: map[string]string{"env": []string{"prod", "dev"}[h>>8&1]},
			Available: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(h>>7%640000),
				resource.DecimalSI)},
		}
	}
	return fleet
}

// w2 requests the ten production clusters with the most available CPU. Without a sorter, it requests any ten.
func w2(tb testing.TB, sorters ...v1alpha1.PropertySorter) *scheduler.Request {
	p, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{
		Type: v1alpha1.PickN, NumberOfClusters: new(int32(10)), Sorters: sorters,
		Affinity: &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
		}}},
	})
	require.NoError(tb, err)
	return &scheduler.Request{Name: "W2", Policy: p}
}

func benchScheduler(tb testing.TB) *scheduler.Scheduler {
	s, err := scheduler.New(scheduler.Options{
		Registry: scheduler.Registry{eligibility.Name: eligibility.New, clusteraffinity.Name: clusteraffinity.New(),
			propertysorter.Name: propertysorter.New},
		Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: eligibility.Name},
			{Name: clusteraffinity.Name}, {Name: propertysorter.Name}}}},
	})
	require.NoError(tb, err)
	return s
}

// BenchmarkSchedule measures W2 with and without the sorter. The difference is the cost of the plugin.
func BenchmarkSchedule(b *testing.B) {
	s := benchScheduler(b)
	requests := []struct {
		name    string
		request *scheduler.Request
	}{{"W2", w2(b, v1alpha1.PropertySorter{Name: "available/cpu"})}, {"unsorted", w2(b)}}
	for _, n := range []int{100, 1000, 10000} {
		fleet := benchFleet(n)
		snapshot := snapshotOf(fleet...)
		for _, r := range requests {
			b.Run(fmt.Sprintf("%s/%d", r.name, n), func(b *testing.B) {
				floor := plainLoop(fleet)
				b.ReportAllocs()
				for b.Loop() {
					result, err := s.Schedule(context.Background(), snapshot, r.request)
					if err != nil || len(result.Chosen) != 10 {
						b.Fatal(err, len(result.Chosen))
					}
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/floor, "×floor")
			})
		}
	}
}

// plainLoop returns the floor: the ns of a loop over the clusters that evaluates the same conditions and quantities,
// and keeps the maximum.
func plainLoop(fleet []*scheduler.Cluster) float64 {
	required := labels.SelectorFromSet(labels.Set{"env": "prod"})
	rounds, greatest := 0, int64(0)
	start := time.Now()
	for time.Since(start) < 50*time.Millisecond {
		for _, c := range fleet {
			if !c.Joined || c.Leaving || !c.Healthy || !required.Matches(labels.Set(c.Labels)) {
				continue
			}
			available := c.Available[corev1.ResourceCPU]
			greatest = max(greatest, available.MilliValue())
		}
		rounds++
	}
	if greatest == 0 {
		return 0
	}
	return float64(time.Since(start)) / float64(rounds)
}

// TestAllocations checks that the allocations of a decision do not depend on the number of clusters.
func TestAllocations(t *testing.T) {
	s := benchScheduler(t)
	allocations := map[int]float64{}
	for _, n := range []int{100, 10000} {
		snapshot, request := snapshotOf(benchFleet(n)...), w2(t, v1alpha1.PropertySorter{Name: "available/cpu"})
		// The least of many: a collection, or the race detector, may empty a pool of memory at any time.
		least := math.Inf(1)
		for range 20 {
			least = min(least, testing.AllocsPerRun(1, func() {
				if _, err := s.Schedule(context.Background(), snapshot, request); err != nil {
					t.Error(err)
				}
			}))
		}
		allocations[n] = least
	}
	require.InDelta(t, allocations[100], allocations[10000], 2)
	require.Less(t, allocations[10000], 60.0)
}
