package eviction_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-sdk/muster/placement/internal/eviction"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// ExamplePlan evicts one of three clusters of a placement. The next eviction has to wait.
func ExamplePlan() {
	for _, v := range eviction.Plan(eviction.Observed{
		Published: []eviction.Cluster{{Name: "east", Available: true}, {Name: "north", Available: true},
			{Name: "west", Available: true}},
		Expected:  3,
		Evictions: []string{"west", "east"},
		Budget:    &v1alpha1.DisruptionBudget{MaxUnavailable: new(intstr.FromInt32(1))},
	}) {
		fmt.Printf("%s %s: %q\n", v.Cluster, v.Reason, v.Message)
	}
	// Output:
	// west Evicted: ""
	// east BudgetExhausted: "2 of 3 clusters are available, and 2 must stay available (maxUnavailable: 1)."
}
