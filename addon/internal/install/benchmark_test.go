package install

import (
	"fmt"
	"testing"
)

// BenchmarkDecide decides about 5,000 members, of which two placements have selected overlapping halves, with
// everything in place. The floor is to look up each member once.
func BenchmarkDecide(b *testing.B) {
	const n = 5000
	o := Observed{Strategy: strategy("edge", "rest"), Placements: placements("decided edge:", "decided rest:")}
	for i := range n {
		name := fmt.Sprintf("cluster-%04d", i)
		o.Members = append(o.Members, Member{Name: name, Joined: true, Reachable: true})
		o.Placements[1].Clusters = append(o.Placements[1].Clusters, Cluster{Name: name})
		installed := "fleet/rest"
		if i%2 == 0 {
			o.Placements[0].Clusters = append(o.Placements[0].Clusters, Cluster{Name: name})
			installed = "fleet/edge"
		}
		o.MemberAddons = append(o.MemberAddons, MemberAddon{Member: name, InstalledBy: installed})
	}
	report := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/member") }
	b.Run("5000 members", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if plan := Decide(o); len(plan.Decisions) != n || plan.Decisions[0].Action != Keep {
				b.Fatal(len(plan.Decisions))
			}
		}
		report(b)
	})
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			memberAddons := make(map[string]*MemberAddon, n)
			for i := range o.MemberAddons {
				memberAddons[o.MemberAddons[i].Member] = &o.MemberAddons[i]
			}
			for i := range o.Members {
				if memberAddons[o.Members[i].Name] == nil {
					b.Fatal(i)
				}
			}
		}
		report(b)
	})
}
