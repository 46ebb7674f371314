package replicas

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

const (
	fleet    = 5_000
	workload = 1_000_000
)

// fleetOf returns clusters, ordered by name, whose total capacity is about twice the workload. The current replicas are
// divided equally among them.
func fleetOf(current int32) []Target {
	random := rand.New(rand.NewPCG(1, 2))
	clusters := make([]Target, fleet)
	for i := range clusters {
		clusters[i] = Target{
			Name:     fmt.Sprintf("member-cluster-%06d", i),
			Weight:   1 + random.Int64N(1000),
			Capacity: random.Int32N(4 * workload / fleet),
			Current:  current / fleet,
		}
	}
	return clusters
}

// BenchmarkDivide divides 1,000,000 replicas among 5,000 clusters. The floor is a plain loop over the clusters in the
// same run that writes each share into a new slice, without correcting the sum. Any implementation requires this loop.
func BenchmarkDivide(b *testing.B) {
	shuffled := fleetOf(0)
	rand.New(rand.NewPCG(3, 4)).Shuffle(fleet, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	even := fleetOf(0)
	for i := range even {
		even[i].Weight, even[i].Capacity = 1, Unbounded
	}
	tight := fleetOf(0)
	for i := range tight {
		tight[i].Weight = 1 + int64(tight[i].Capacity)*int64(tight[i].Capacity)
	}
	for _, bench := range []struct {
		name string
		r    Request
	}{
		{"static", Request{Strategy: StaticWeight, Clusters: fleetOf(0)}},
		{"static, 1000 replicas", Request{Strategy: StaticWeight, Clusters: fleetOf(0), Replicas: workload / 1000}},
		{"static, even", Request{Strategy: StaticWeight, Clusters: even, Replicas: workload + fleet/2}},
		{"static, many full", Request{Strategy: StaticWeight, Clusters: tight}},
		{"static, shuffled, key", Request{Strategy: StaticWeight, Clusters: shuffled, Key: "workload"}},
		{"dynamic", Request{Strategy: DynamicWeight, Clusters: fleetOf(0)}},
		{"dynamic, grows", Request{Strategy: DynamicWeight, Clusters: fleetOf(workload / 2)}},
		{"dynamic, shrinks", Request{Strategy: DynamicWeight, Clusters: fleetOf(workload * 3)}},
		{"aggregated", Request{Strategy: Aggregated, Clusters: fleetOf(0)}},
		{"duplicated", Request{Strategy: Duplicated, Clusters: fleetOf(0)}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := bench.r
			if r.Replicas == 0 {
				r.Replicas = workload
			}
			began := time.Now()
			for range b.N {
				plain(r)
			}
			floor := time.Since(began)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if _, err := Divide(r); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/fleet, "ns/cluster")
			b.ReportMetric(float64(floor.Nanoseconds())/float64(b.N), "floor-ns/op")
			b.ReportMetric(float64(b.Elapsed())/float64(floor), "x-floor")
		})
	}
}

func plain(r Request) []Share {
	total := 0.0
	for i := range r.Clusters {
		total += float64(r.Clusters[i].Weight)
	}
	shares := make([]Share, len(r.Clusters))
	for i := range r.Clusters {
		c := &r.Clusters[i]
		shares[i] = Share{c.Name, min(int32(float64(r.Replicas)*float64(c.Weight)/total+0.5), c.Capacity)}
	}
	return shares
}
