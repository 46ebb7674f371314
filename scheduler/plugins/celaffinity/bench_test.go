package celaffinity_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/muster-sdk/muster/scheduler"
)

// BenchmarkRetain compares Retain with a plain loop that evaluates the expression for all clusters. No cluster has
// changed since the last call.
func BenchmarkRetain(b *testing.B) {
	r := compiled(b, `cluster.labels["region"] == "eu" && cluster.available["cpu"] >= quantity("500m")`)
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			cache := &scheduler.Cache{}
			fleet := make([]*scheduler.Cluster, n)
			for i := range fleet {
				fleet[i] = berlin()
				fleet[i].Name = fmt.Sprint("c", i)
				cache.Update(fleet[i])
			}
			start, matching := time.Now(), 0
			for _, c := range fleet {
				if r.Mismatch(c) == "" {
					matching++
				}
			}
			floor := float64(time.Since(start))
			snapshot := cache.Snapshot()
			left := snapshot.All().Clone()
			r.Retain(snapshot, left)
			b.ReportAllocs()
			for b.Loop() {
				left.Insert(snapshot.All())
				r.Retain(snapshot, left)
			}
			if left.Len() != matching {
				b.Fatal(left.Len())
			}
			b.ReportMetric(floor/float64(n), "ns/evaluation")
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/floor, "×floor")
		})
	}
}
