package agent_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// BenchmarkWork measures what a small Work of one ConfigMap costs, from its creation until it is ready, as one of a
// hundred that come at once. The floor is the writes that every agent with an inventory and reports must make for it:
// the finalizer and the status on the hub, and the inventory, the object and its UID on the member; by as many
// writers as the agent has workers.
func BenchmarkWork(b *testing.B) {
	const works = 100
	w := newWorld(b)
	w.start()
	var took, floor time.Duration
	var requests int
	round := 0
	for b.Loop() {
		round++
		var all []*v1alpha1.Work
		for i := range works {
			name := fmt.Sprintf("a%d-%d", round, i)
			work := w.spec(name, "{"+manifests(configMap(name, "{k: v}"))+"}")
			all = append(all, work)
		}
		w.quiet()
		began := time.Now()
		for _, work := range all {
			require.NoError(b, w.hub.Create(context.Background(), work))
		}
		for _, work := range all {
			w.ready(work)
		}
		took += time.Since(began)
		hub, member := w.quiet()
		requests += len(hub) + len(member)
		for _, work := range all {
			w.delete(work)
		}
		for _, work := range all {
			w.gone(work)
		}
		floor += w.bare(works)
	}
	b.ReportMetric(took.Seconds()*1000/float64(round*works), "ms/work")
	b.ReportMetric(floor.Seconds()*1000/float64(round*works), "floor-ms/work")
	b.ReportMetric(float64(requests)/float64(round*works), "requests/work")
}

var bares atomic.Int32

// bare makes the writes of some Works, and returns the time that took.
func (w *world) bare(works int) time.Duration {
	w.t.Helper()
	ctx, prefix := context.Background(), fmt.Sprintf("bare%d-", bares.Add(1))
	namespace := w.create(w.hub, "{apiVersion: v1, kind: Namespace, metadata: {name: "+prefix+"NS}}").GetName()
	began := time.Now()
	for i := range works {
		work := w.spec(prefix+fmt.Sprint(i), "{"+manifests(configMap("x", "{k: v}"))+"}")
		work.Namespace = namespace // where no agent looks
		require.NoError(w.t, w.hub.Create(ctx, work))
	}
	var group errgroup.Group
	group.SetLimit(8)
	for i := range works {
		group.Go(func() error {
			name := prefix + fmt.Sprint(i)
			work := &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			if err := w.hub.Patch(ctx, work, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["example.com/bare"]}}`))); err != nil {
				return err
			}
			applied := &v1alpha1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: name}}
			applied.Spec.FieldOwner = "bare"
			if err := w.member.Create(ctx, applied); err != nil {
				return err
			}
			object := w.manifest(configMap(name, "{k: v}"))
			if err := w.member.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("bare")); err != nil {
				return err
			}
			applied.Status.Resources = []v1alpha1.AppliedResource{{UID: object.GetUID()}}
			if err := w.member.Update(ctx, applied); err != nil {
				return err
			}
			return w.hub.Status().Patch(ctx, work, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"ready":"1/1"}}`)))
		})
	}
	require.NoError(w.t, group.Wait())
	took := time.Since(began)
	for i := range works {
		name := prefix + fmt.Sprint(i)
		require.NoError(w.t, w.member.Delete(ctx, &v1alpha1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		require.NoError(w.t, w.member.Delete(ctx, w.manifest(configMap(name, "{}"))))
	}
	return took
}
