package topologyspread_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/clusteraffinity"
	"github.com/muster-sdk/muster/scheduler/plugins/eligibility"
	"github.com/muster-sdk/muster/scheduler/plugins/topologyspread"
)

// BenchmarkSchedule measures W3: 30 clusters over 30 zones, chosen from the matching half of 10,000 clusters. For
// comparison it measures a policy without the constraint, which is the cost of the framework, and policies with more
// constraints. Each result is also reported as a multiple of a plain loop that does the work of W3 without scores and
// plugins.
func BenchmarkSchedule(b *testing.B) {
	registry := scheduler.Registry{
		eligibility.Name: eligibility.New, clusteraffinity.Name: clusteraffinity.New(),
		topologyspread.Name: topologyspread.New,
	}
	s, err := scheduler.New(
		scheduler.Options{Registry: registry, Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{
			{Name: eligibility.Name}, {Name: clusteraffinity.Name}, {Name: topologyspread.Name},
		}}}})
	require.NoError(b, err)
	for _, bench := range []struct {
		name        string
		clusters    int
		pick        int32
		constraints []v1alpha1.TopologySpreadConstraint
	}{
		{"none", 10000, 30, nil},
		{"W3", 1000, 30, []v1alpha1.TopologySpreadConstraint{spread("zone", 1)}},
		{"W3", 10000, 30, []v1alpha1.TopologySpreadConstraint{spread("zone", 1)}},
		{"anyway", 10000, 30, []v1alpha1.TopologySpreadConstraint{anyway("zone", 1)}},
		{"1000", 10000, 1000, []v1alpha1.TopologySpreadConstraint{spread("zone", 5)}},
		{"nested", 10000, 30, []v1alpha1.TopologySpreadConstraint{spread("region", 1), spread("zone", 1)}},
		{"crossing", 10000, 30, []v1alpha1.TopologySpreadConstraint{spread("tier", 1), spread("zone", 1)}},
	} {
		b.Run(fmt.Sprintf("%s/%d", bench.name, bench.clusters), func(b *testing.B) {
			clusters := benchFleet(bench.clusters)
			spec := pick(bench.pick, bench.constraints...)
			spec.Affinity = &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
			}}}
			policy, err := scheduler.NewPolicy(&spec)
			require.NoError(b, err)
			request, snapshot, floor := &scheduler.Request{Policy: policy}, snapshot(clusters), plainLoop(b, clusters)
			b.ReportAllocs()
			for b.Loop() {
				result, err := s.Schedule(context.Background(), snapshot, request)
				if err != nil || len(result.Chosen) != int(bench.pick) {
					b.Fatal(err, len(result.Chosen))
				}
			}
			b.ReportMetric(floor, "floor-ns")
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/floor, "×floor")
		})
	}
}

// BenchmarkCrossing measures 10,000 clusters in 30 zones by 20 versions, with pairwise different scores. The flow then
// has to move members one by one; with equal scores it is ten times as fast.
func BenchmarkCrossing(b *testing.B) {
	s, fleet := newScheduler(b), benchFleet(10000)
	for i, c := range fleet {
		c.Scores["given"] = float64(uint32(i)*2246822519>>8) / (1 << 20)
	}
	fleet = append(fleet, cluster("the only one of its version", 0, "zone=1", "version=x"))
	snapshot := snapshot(fleet)
	for _, bench := range []struct {
		name        string
		pick        int32
		constraints []v1alpha1.TopologySpreadConstraint
	}{
		{"zone-version", 100, []v1alpha1.TopologySpreadConstraint{spread("zone", 1), spread("version", 5)}},
		{"zone-tier", 1000, []v1alpha1.TopologySpreadConstraint{spread("zone", 1), spread("tier", 1)}},
		{"anyway", 100, []v1alpha1.TopologySpreadConstraint{anyway("zone", 1), anyway("version", 1)}},
		{"skew=10", 100, []v1alpha1.TopologySpreadConstraint{spread("zone", 10), spread("version", 10)}},
		{"too-many", 100, []v1alpha1.TopologySpreadConstraint{spread("zone", 1), spread("version", 1)}},
		{"families", 100, []v1alpha1.TopologySpreadConstraint{spread("region", 1), spread("zone", 1), spread("version", 5)}},
		{"three", 100, []v1alpha1.TopologySpreadConstraint{spread("zone", 1), spread("version", 5), spread("tier", 1)}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			spec := pick(bench.pick, bench.constraints...)
			policy, err := scheduler.NewPolicy(&spec)
			require.NoError(b, err)
			request := &scheduler.Request{Policy: policy}
			b.ReportAllocs()
			chosen := 0
			for b.Loop() {
				result, err := s.Schedule(context.Background(), snapshot, request)
				if err != nil {
					b.Fatal(err)
				}
				chosen = len(result.Chosen)
			}
			b.ReportMetric(float64(chosen), "chosen")
		})
	}
}

// benchFleet returns clusters in five regions of six zones each. Half of them are in production.
func benchFleet(n int) []*scheduler.Cluster {
	fleet := make([]*scheduler.Cluster, n)
	for i := range fleet {
		h := uint32(i) * 2654435761
		zone := h >> 16 % 30
		fleet[i] = cluster(fmt.Sprintf("cluster-%05d", i), 0, "env="+[]string{"prod", "dev"}[h>>8&1],
			fmt.Sprint("region=", zone/6), fmt.Sprint("zone=", zone), fmt.Sprint("tier=", h>>20%4),
			fmt.Sprint("version=", h>>3%20))
	}
	return fleet
}

// plainLoop returns the floor: the ns of a loop over the clusters that takes the first cluster of each zone.
func plainLoop(b *testing.B, fleet []*scheduler.Cluster) float64 {
	rounds, sum := 0, 0
	start := time.Now()
	for time.Since(start) < 50*time.Millisecond {
		taken := map[string]int{}
		for _, c := range fleet {
			if c.Joined && !c.Leaving && c.Healthy && c.Labels["env"] == "prod" {
				if zone := c.Labels["zone"]; taken[zone] == 0 {
					taken[zone]++
					sum++
				}
			}
		}
		rounds++
	}
	require.NotZero(b, sum)
	return float64(time.Since(start)) / float64(rounds)
}
