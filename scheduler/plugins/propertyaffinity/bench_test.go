package propertyaffinity_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// BenchmarkRetain compares Retain with a plain loop that parses and compares the properties of all clusters. Since the
// last call, one cluster has changed in "changed", and none in "unchanged".
func BenchmarkRetain(b *testing.B) {
	r := compiled(b, v1alpha1.PropertyRequirement{Name: "gpu", Operator: ge, Values: []string{"500m"}})
	for _, n := range []int{100, 1000, 10000} {
		cache := &scheduler.Cache{}
		fleet := make([]*scheduler.Cluster, n)
		for i := range fleet {
			fleet[i] = &scheduler.Cluster{Name: fmt.Sprint("c", i),
				Properties: map[string]string{"gpu": fmt.Sprint(i%2, "000m")}}
			cache.Update(fleet[i])
		}
		snapshot := cache.Snapshot()
		left := snapshot.All().Clone()
		for _, name := range []string{"unchanged", "changed"} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				floor := plainLoop(fleet)
				b.ReportAllocs()
				for b.Loop() {
					if name == "changed" {
						b.StopTimer()
						cache.Update(&scheduler.Cluster{Name: "c1", Properties: map[string]string{"gpu": "1"}})
						snapshot = cache.Snapshot()
						b.StartTimer()
					}
					left.Insert(snapshot.All())
					r.Retain(snapshot, left)
				}
				if left.Len() != n/2 {
					b.Fatal(left.Len())
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/floor, "×floor")
			})
		}
	}
}

// plainLoop returns the floor in ns.
func plainLoop(fleet []*scheduler.Cluster) float64 {
	least, _ := v1alpha1.ParseQuantity("500m")
	rounds, matching := 0, 0
	start := time.Now()
	for time.Since(start) < 20*time.Millisecond {
		for _, c := range fleet {
			if q, err := v1alpha1.ParseQuantity(c.Properties["gpu"]); err == nil && q.Cmp(least) >= 0 {
				matching++
			}
		}
		rounds++
	}
	if matching == 0 {
		return 0
	}
	return float64(time.Since(start)) / float64(rounds)
}
