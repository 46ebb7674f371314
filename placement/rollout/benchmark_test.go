package rollout

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// BenchmarkNext evaluates a rollout of 10,000 clusters that is half done. The floor is to access each of them once.
func BenchmarkNext(b *testing.B) {
	const n = 10000
	targets := make([]Target, n)
	for i := range targets {
		targets[i] = Target{
			Name: fmt.Sprintf("cluster-%05d", i), Group: Group{Index: int32(i / 100)},
			Labels:   map[string]string{"env": fmt.Sprintf("env-%d", i/1000), "order": fmt.Sprint(n - i)},
			Revision: "r1", Since: epoch.Add(-3 * time.Hour), Health: Succeeded, HealthSince: epoch.Add(-3 * time.Hour),
		}
		if i < n/2 {
			targets[i].Revision, targets[i].Since = "r2", epoch.Add(-time.Minute)
		}
	}
	stages := v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutStages}
	for i := range 10 {
		stages.Stages = append(stages.Stages, v1alpha1.RolloutStage{
			Name: fmt.Sprintf("env-%d", i), MaxConcurrency: percent("10%"), OrderBy: "order",
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": fmt.Sprintf("env-%d", i)}},
		})
	}
	perCluster := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/cluster")
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/look")
	}
	for _, bench := range []struct {
		name     string
		strategy v1alpha1.RolloutStrategy
	}{
		{"Progressive", v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutProgressive}},
		{"100 groups", v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutProgressivePerGroup}},
		{"10 stages", stages},
	} {
		b.Run(bench.name, func(b *testing.B) {
			o := Observed{Now: epoch, Strategy: bench.strategy, Revision: "r2", Targets: targets, Status: underWay}
			b.ReportAllocs()
			for b.Loop() {
				if plan, err := Next(o); err != nil || len(plan.Update) == 0 {
					b.Fatal(err)
				}
			}
			perCluster(b)
		})
	}
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			late := 0
			for i := range targets {
				if targets[i].Revision == "r2" && epoch.Sub(targets[i].Since) > time.Hour {
					late++
				}
			}
			if late > 0 {
				b.Fatal(late)
			}
		}
		perCluster(b)
	})
}
