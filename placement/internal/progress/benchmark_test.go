package progress

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// BenchmarkStatus computes one status of 5,000 clusters in random order, with two Works each that report four values,
// in the middle of a rollout. The floor is to access each Work and each value once.
func BenchmarkStatus(b *testing.B) {
	const n = 5000
	o := Observed{Now: noon, Revision: "web-2", Rollout: v1alpha1.RolloutStatus{Revision: "web-2",
		Phase: v1alpha1.PhaseProgressing}}
	for i := range n {
		c := Cluster{Name: fmt.Sprintf("cluster-%04d", i), Chosen: true, Reachable: i%100 > 0, Current: true,
			Revision: "web-2"}
		for j := range 2 {
			work := workOf(condition("Applied", metav1.ConditionTrue, "Applied", 0),
				condition("Available", metav1.ConditionTrue, "Ready", 0))
			manifest := workv1alpha1.ManifestStatus{ResourceIdentifier: deployment(fmt.Sprintf("web-%d", j))}
			for _, name := range []string{"availableReplicas", "readyReplicas", "replicas", "updatedReplicas"} {
				manifest.Feedback = append(manifest.Feedback,
					workv1alpha1.FeedbackValue{Name: name, Type: workv1alpha1.FeedbackNumber, Value: "3"})
			}
			work.Status.Manifests = append(work.Status.Manifests, manifest)
			c.Works = append(c.Works, Of(work))
		}
		if i%3 == 0 {
			c.Revision, c.Hold = "web-1", rollout.HoldConcurrency
		}
		o.Clusters = append(o.Clusters, c)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { o.Clusters[i], o.Clusters[j] = o.Clusters[j], o.Clusters[i] })
	o.Before = Status(o)
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/cluster")
		b.ReportMetric(float64(b.Elapsed())/float64(time.Millisecond)/float64(b.N), "ms/status")
	}
	b.Run("5000 clusters", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if status := Status(o); status.OmittedClusters == 0 {
				b.Fatal(status.Message)
			}
		}
		report(b)
	})
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			applied, length := 0, 0
			for i := range o.Clusters {
				for j := range o.Clusters[i].Works {
					w := &o.Clusters[i].Works[j]
					if w.Applied == metav1.ConditionTrue {
						applied++
					}
					for k := range w.Feedback {
						length += len(w.Feedback[k].Value) + len(w.Feedback[k].Name)
					}
				}
			}
			if applied == 0 || length == 0 {
				b.Fatal(applied)
			}
		}
		report(b)
	})
}

// BenchmarkOf measures the memory of a Work with eight values.
func BenchmarkOf(b *testing.B) {
	work := workOf(condition("Applied", metav1.ConditionTrue, "Applied", 0),
		condition("Available", metav1.ConditionTrue, "Ready", 0))
	for k := range 2 {
		manifest := workv1alpha1.ManifestStatus{ResourceIdentifier: deployment(fmt.Sprintf("web-%d", k))}
		for _, name := range []string{"replicas", "readyReplicas", "availableReplicas", "updatedReplicas"} {
			manifest.Feedback = append(manifest.Feedback,
				workv1alpha1.FeedbackValue{Name: name, Type: workv1alpha1.FeedbackNumber, Value: "3"})
		}
		work.Status.Manifests = append(work.Status.Manifests, manifest)
	}
	b.ReportAllocs()
	for b.Loop() {
		if Of(work).Applied != metav1.ConditionTrue {
			b.Fatal("want Applied True")
		}
	}
}
