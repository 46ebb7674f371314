package tenancy_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/muster-sdk/muster/internal/tenancy"
)

// BenchmarkEvaluator decides about 10,000 clusters for each namespace in turn. There are 1,000 namespaces, each with a
// binding of its own set.
func BenchmarkEvaluator(b *testing.B) {
	var sets []tenancy.Set
	var bindings []tenancy.Binding
	for i := range 1000 {
		name := fmt.Sprintf("tenant-%d", i)
		selector := labels.SelectorFromSet(labels.Set{"tenant": name})
		sets = append(sets, tenancy.Set{Name: name, Selector: selector})
		bindings = append(bindings, tenancy.Binding{Namespace: name, Name: name, Set: name})
	}
	clusters := make([]labels.Set, 10000)
	for i := range clusters {
		clusters[i] = labels.Set{"tenant": fmt.Sprintf("tenant-%d", i%1000), "region": "eu"}
	}
	e := tenancy.NewEvaluator(sets, bindings)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		allowed := 0
		for _, c := range clusters {
			if e.MayPlace(sets[i%1000].Name, c).Allowed {
				allowed++
			}
		}
		if allowed != 10 {
			b.Fatalf("%d clusters are allowed, want 10", allowed)
		}
	}
}
