package health

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkAssess evaluates one member with two Works, and the status of an Addon on 5,000 members. The floor is to
// read each member once.
func BenchmarkAssess(b *testing.B) {
	o := assigned(workWith(healthy), workWith(progressing))
	o.Before = Assess(o).Conditions
	b.ReportAllocs()
	for b.Loop() {
		if len(Assess(o).Conditions) != 7 {
			b.Fatal("want six conditions and Ready")
		}
	}
}

func BenchmarkStatus(b *testing.B) {
	const n = 5000
	o := AddonObserved{Now: noon}
	for i := range n {
		o.Members = append(o.Members,
			Member{Name: fmt.Sprintf("cluster-%04d", i), Updated: true, Available: metav1.ConditionTrue,
				Degraded: metav1.ConditionFalse})
	}
	report := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/member") }
	b.Run("5000 members", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if Status(o).Counts.Available != n {
				b.Fatal("want all members to be available")
			}
		}
		report(b)
	})
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			available := 0
			for i := range o.Members {
				if o.Members[i].Available == metav1.ConditionTrue {
					available++
				}
			}
			if available != n {
				b.Fatalf("available: want %d, got %d", n, available)
			}
		}
		report(b)
	})
}
