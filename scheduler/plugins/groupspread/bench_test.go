package groupspread_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// BenchmarkSchedule chooses 30 clusters, or all, from some of 30 groups. "none" is the cost of the framework. Each
// result is also reported as a multiple of a plain loop that adds up the scores of each group.
func BenchmarkSchedule(b *testing.B) {
	s := newScheduler(b)
	clusters := make([]*scheduler.Cluster, 10000)
	for i := range clusters {
		h := uint32(i) * 2654435761
		clusters[i] = cluster(fmt.Sprintf("cluster-%05d", i), float64(h>>8%100), fmt.Sprint("provider=", h>>16%30))
	}
	for _, bench := range []struct {
		name   string
		policy v1alpha1.PlacementPolicy
	}{
		{"none", pick(30)},
		{"least", pick(30, groups("provider", 25, 0))},
		{"most", pick(30, groups("provider", 0, 3))},
		{"all", all(groups("provider", 0, 3))},
	} {
		b.Run(bench.name, func(b *testing.B) {
			policy, err := scheduler.NewPolicy(&bench.policy)
			require.NoError(b, err)
			request, snapshot, floor := &scheduler.Request{Policy: policy}, snapshot(clusters), plainLoop(b, clusters)
			b.ReportAllocs()
			for b.Loop() {
				result, err := s.Schedule(context.Background(), snapshot, request)
				if err != nil || len(result.Chosen) < 30 {
					b.Fatal(err, len(result.Chosen))
				}
			}
			b.ReportMetric(floor, "floor-ns")
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/floor, "×floor")
		})
	}
}

// plainLoop returns the floor: the ns of a loop over the clusters that adds up the scores of each group.
func plainLoop(b *testing.B, fleet []*scheduler.Cluster) float64 {
	rounds, sum := 0, 0.0
	start := time.Now()
	for time.Since(start) < 50*time.Millisecond {
		sums := map[string]float64{}
		for _, c := range fleet {
			if c.Joined && !c.Leaving && c.Healthy {
				sums[c.Labels["provider"]] += c.Scores["given"]
			}
		}
		sum += sums["1"]
		rounds++
	}
	require.NotZero(b, sum)
	return float64(time.Since(start)) / float64(rounds)
}
