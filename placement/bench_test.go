package placement_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// BenchmarkRestart starts a manager where the decisions of 200 placements on 100 clusters each exist. The floor is the
// minimum for any controller: list the Placements and the PlacementDecisions, and write nothing.
//
//	go test -run '^$' -bench Restart -benchtime 3x ./placement
func BenchmarkRestart(b *testing.B) {
	const placements = 200
	h, s := newHubOnPlane(b), newSource(many(100, "eu")...)
	for i := range placements {
		h.create(fmt.Sprintf("p-%03d", i), inRegion(v1alpha1.PlacementPolicy{}, "eu"))
	}
	first := h.start(placement.Options{Clusters: s})
	h.Holds("all placements are decided", func() bool {
		var list v1alpha1.PlacementList
		require.NoError(b, h.Client.List(b.Context(), &list, client.InNamespace(h.Namespace)))
		n := 0
		for i := range list.Items {
			if len(list.Items[i].Status.Conditions) > 0 {
				n++
			}
		}
		return n == placements
	})
	first.stop()
	var floor, spent time.Duration
	var requests, writes int64
	var allocated uint64
	for b.Loop() {
		started := time.Now()
		require.NoError(b, h.Client.List(b.Context(), &v1alpha1.PlacementList{}, client.InNamespace(h.Namespace)))
		require.NoError(b, h.Client.List(b.Context(), &v1alpha1.PlacementDecisionList{}, client.InNamespace(h.Namespace)))
		floor += time.Since(started)

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		started = time.Now()
		decider := newCounting(b)
		r := h.start(placement.Options{Clusters: s, Decider: decider})
		for decider.total() < placements {
			<-time.After(time.Millisecond)
		}
		spent += time.Since(started)
		runtime.ReadMemStats(&after)
		allocated += after.TotalAlloc - before.TotalAlloc
		quiet(b, func() int64 { return int64(decider.total()) })
		requests, writes = r.transport.all.Load(), r.transport.writes.Load()
		require.Equal(b, placements, decider.total())
		r.stop()
	}
	b.ReportMetric(float64(spent.Milliseconds())/float64(b.N), "ms/restart")
	b.ReportMetric(float64(floor.Milliseconds())/float64(b.N), "floor-ms/restart")
	b.ReportMetric(float64(allocated)/float64(b.N)/(1<<20), "MiB/restart")
	b.ReportMetric(float64(requests), "requests/restart")
	b.ReportMetric(float64(writes), "writes/restart")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMessage measures the computation of the message, in comparison with the decision itself. The difference is
// the reason why the message is cached.
func BenchmarkMessage(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		var fleet scheduler.Cache
		for i := range n {
			fleet.Update(cluster(fmt.Sprintf("c-%05d", i), fmt.Sprintf("r-%d", i%10)))
		}
		policy, err := scheduler.NewPolicy(new(inRegion(pick(10), "r-3")))
		require.NoError(b, err)
		request, decider := &scheduler.Request{Policy: policy}, newCounting(b)
		result, err := decider.Decider.Schedule(b.Context(), fleet.Snapshot(), request)
		require.NoError(b, err)
		b.Run(fmt.Sprintf("clusters=%d/decide", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decider.Decider.Schedule(b.Context(), fleet.Snapshot(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("clusters=%d/explain", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := result.Diagnose(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
