package selection_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/muster-sdk/muster/internal/testkit"
)

// BenchmarkThousandConfigMaps selects 1,000 ConfigMaps of 1 KB each for 50 owners, and changes one. The floor of the
// time is one list by the same kind of client. The floor of the memory is the distributed text.
//
//	go test -run '^$' -bench . -benchtime 5x ./placement/internal/selection
func BenchmarkThousandConfigMaps(b *testing.B) {
	const owners = 50
	objects := testkit.Size(1000)
	h := newHubOnPlane(b)
	for i := range objects {
		c := h.configMap(fmt.Sprintf("c-%04d", i), map[string]string{"app": "web"})
		c.Data["text"] = strings.Repeat("x", 1000)
		h.Create(c)
	}
	client, err := dynamic.NewForConfig(h.server.Config())
	require.NoError(b, err)
	var floor, first, others, notified time.Duration
	var memory, text uint64
	round := 0
	for b.Loop() {
		started := time.Now()
		_, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(
			h.Namespace).List(b.Context(), metav1.ListOptions{})
		require.NoError(b, err)
		floor += time.Since(started)

		before := heap()
		r := h.start()
		started = time.Now()
		got := r.selectFor("owner-0", all("ConfigMap"))
		first += time.Since(started)
		require.Len(b, got.Objects, objects)
		text = 0
		for i := range got.Objects {
			text += uint64(len(got.Objects[i].JSON))
		}
		got.Objects = nil
		started = time.Now()
		for i := 1; i < owners; i++ {
			require.Len(b, r.selectFor(fmt.Sprintf("owner-%d", i), all("ConfigMap")).Objects, objects)
		}
		others += time.Since(started)
		memory += heap() - before
		require.Equal(b, 1, r.transport.watches())

		round++
		started = time.Now()
		changed := h.configMap(fmt.Sprintf("c-%04d", objects/2), nil)
		change(h, changed, func(c *corev1.ConfigMap) { c.Data["round"] = fmt.Sprint(round, b.N) })
		for i := range owners {
			for r.changedCalls(fmt.Sprintf("owner-%d", i)) == 0 {
				runtime.Gosched()
			}
		}
		notified += time.Since(started)
		r.stop()
	}
	n := time.Duration(round)
	b.ReportMetric(float64((floor / n).Milliseconds()), "floor-list-ms")
	b.ReportMetric(float64((first / n).Milliseconds()), "first-select-ms")
	b.ReportMetric(float64((others / n / (owners - 1)).Microseconds()), "next-select-µs")
	b.ReportMetric(float64((notified / n).Milliseconds()), "change-to-all-ms")
	b.ReportMetric(float64(text)/float64(objects), "floor-B/object")
	b.ReportMetric(float64(memory)/float64(n)/float64(objects), "held-B/object")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkWatches measures the cost of 200 owners that each select another object by name.
func BenchmarkWatches(b *testing.B) {
	const owners = 200
	h := newHubOnPlane(b)
	for i := range owners {
		h.Create(h.configMap(fmt.Sprintf("c-%03d", i), nil))
	}
	var memory uint64
	var spent time.Duration
	var goroutines int
	round := 0
	for b.Loop() {
		r := h.start()
		r.selectFor("warm", named("Secret", "none"))
		before, running := heap(), runtime.NumGoroutine()
		started := time.Now()
		for i := range owners {
			require.Empty(b, r.selectFor(fmt.Sprintf("owner-%d", i), named("ConfigMap", fmt.Sprintf("c-%03d", i))).Problems)
		}
		spent += time.Since(started)
		memory += heap() - before
		goroutines += runtime.NumGoroutine() - running
		round++
		r.stop()
	}
	b.ReportMetric(float64(memory)/float64(round*owners)/1024, "KiB/watch")
	b.ReportMetric(float64(goroutines)/float64(round*owners), "goroutines/watch")
	b.ReportMetric(float64(spent.Microseconds())/float64(round*owners), "µs/watch")
	b.ReportMetric(0, "ns/op")
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
