package workset_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
	"github.com/muster-sdk/muster/scheduler"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// The figures in doc.go are for 1000 clusters, and for 200 WorkSets on 100 clusters each:
//
//	go test -run '^$' -bench . -benchtime 1x -timeout 30m ./placement/workset -args -clusters 1000 -worksets 200
var (
	benchClusters = flag.Int("clusters", 200, "how many clusters BenchmarkDistribute distributes to")
	benchWorkSets = flag.Int("worksets", 20, "how many WorkSets of 100 clusters each BenchmarkRestart restarts with")
)

// inventory is a ClusterSource with clusters that do not change.
type inventory []*scheduler.Cluster

func (i inventory) Run(ctx context.Context, fleet placement.Fleet) error {
	for _, c := range i {
		fleet.Set(c)
	}
	fleet.Synced()
	<-ctx.Done()
	return nil
}

// inventoryOf returns healthy clusters, and creates their namespaces.
func (h *hub) inventoryOf(n int) (inventory, workset.Options) {
	h.T.Helper()
	var clusters inventory
	for i := range n {
		clusters = append(clusters, &scheduler.Cluster{
			Name: fmt.Sprintf("%s-%04d", h.Namespace, i), Labels: map[string]string{"hub": h.Namespace}, Joined: true,
			Healthy: true,
		})
	}
	require.NoError(h.T, testkit.InParallel(clusters, func(c *scheduler.Cluster) error {
		return h.Client.Create(h.T.Context(), namespace("member-"+c.Name))
	}))
	return clusters, workset.Options{Clusters: clusters, Namespace: func(cluster string) string {
		return "member-" + cluster
	}}
}

// BenchmarkDistribute distributes a new WorkSet with a new Placement to all clusters. The floor is the creation of
// equal Works with as many writers.
func BenchmarkDistribute(b *testing.B) {
	h := newHubOnPlane(b)
	clusters, options := h.inventoryOf(testkit.Size(*benchClusters))
	creates := &testkit.Created{Resource: "works"}
	h.wrap = creates.Wrap
	h.start(options)
	spread := func(name string) {
		done := creates.Expect(len(clusters))
		h.place(name)
		h.distribute(name, name, nil, configMap("web", map[string]string{"color": "blue"}), deployment("web", 3))
		<-done
	}
	// The first object of a kind takes longer, and so does the first in a namespace.
	h.bareWorks("first", clusters)
	spread("first")
	var cost testkit.Cost
	for i := range b.N {
		name := fmt.Sprintf("web-%d", i)
		started := time.Now()
		h.bareWorks(name, clusters)
		cost.Floor += time.Since(started)

		started = time.Now()
		spread(name)
		cost.Spent += time.Since(started)
	}
	cost.Report(b, b.N*len(clusters), "cluster")
}

// bareWorks creates the same Works as the controller.
func (h *hub) bareWorks(name string, clusters inventory) {
	h.T.Helper()
	require.NoError(h.T, testkit.InParallel(clusters, func(c *scheduler.Cluster) error {
		return h.Client.Create(h.T.Context(), &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "member-" + c.Name, Name: "bare." + name, Finalizers: []string{"example.com/bare"},
				Labels: map[string]string{"example.com/set": name, "example.com/namespace": h.Namespace},
				Annotations: map[string]string{"example.com/set": h.Namespace + "/" + name, "example.com/revision": name,
					"example.com/since": name},
			},
			Spec: workv1alpha1.WorkSpec{Manifests: []workv1alpha1.Manifest{configMap("web", map[string]string{"color": "blue"}),
				deployment("web", 3)}},
		})
	}))
}

// BenchmarkRestart starts the controllers when all Works exist. The floor is one list of all Works.
func BenchmarkRestart(b *testing.B) {
	h := newHubOnPlane(b)
	clusters, options := h.inventoryOf(testkit.Size(100))
	workSets := testkit.Size(*benchWorkSets)
	first := h.start(options)
	stop := h.simulateAgents()
	h.place("all")
	for i := range workSets {
		h.distribute(fmt.Sprintf("web-%d", i), "all", nil, configMap(fmt.Sprintf("web-%d", i),
			map[string]string{"color": "blue"}), deployment(fmt.Sprintf("web-%d", i), 3))
	}
	for i := range workSets {
		name := fmt.Sprintf("web-%d", i)
		require.Eventually(b, func() bool {
			return h.get(name).Status.Counts.Available == int32(len(clusters)) &&
				h.get(name).Status.Rollout.Phase == v1alpha1.PhaseSucceeded
		}, 10*time.Minute, 100*time.Millisecond, name)
	}
	stop()
	first.stop()

	var spent, floor time.Duration
	var peak, kept float64
	var writes map[string]int
	for range b.N {
		started := time.Now()
		require.NoError(b, h.Client.List(b.Context(), &workv1alpha1.WorkList{}, client.HasLabels{v1alpha1.WorkSetLabel}))
		floor += time.Since(started)

		base := heap()
		top, done := watermark()
		reconciles := gathered(b, "controller_runtime_reconcile_total", "muster-workset")
		started = time.Now()
		r := h.start(options)
		for gathered(b, "controller_runtime_reconcile_total", "muster-workset")-reconciles < float64(workSets) {
			<-time.After(time.Millisecond)
		}
		spent += time.Since(started)
		r.quiet(b)
		done()
		peak, kept = top()-base, heap()-base
		writes = r.wire.Writes()
		require.Empty(b, writes)
		r.stop()
	}
	b.ReportMetric(spent.Seconds()/float64(b.N), "s/restart")
	b.ReportMetric(floor.Seconds()/float64(b.N), "floor-s/restart")
	b.ReportMetric(peak, "peak-MiB")
	b.ReportMetric(kept, "kept-MiB")
	b.ReportMetric(kept*(1<<10)/float64(workSets*len(clusters)), "KiB/Work")
	b.ReportMetric(0, "ns/op")
}

// heap returns the heap in use after a garbage collection, in MiB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// watermark measures the heap. top returns the maximum in use until done is called.
func watermark() (top func() float64, done func()) {
	var most atomic.Uint64
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.HeapAlloc))
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	return func() float64 { return float64(most.Load()) / (1 << 20) }, func() { close(stop); running.Wait() }
}

// gathered returns the sum of a metric of a controller.
func gathered(t testing.TB, name, controller string) float64 {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	require.NoError(t, err)
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" && strings.EqualFold(label.GetValue(), controller) {
					sum += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}
