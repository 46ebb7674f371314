package failover_test

import (
	"fmt"

	"github.com/muster-sdk/muster/placement/internal/failover"
)

// ExamplePlan leaves a cluster, which stays until its replacement is ready.
func ExamplePlan() {
	o := failover.Observed{
		Published: []failover.Cluster{{Name: "east", Healthy: true, Ready: true}},
		Chosen:    []string{"west"}, Wanted: 1,
	}
	for _, d := range failover.Plan(o).Publish {
		fmt.Println(d.Cluster, d.Reason)
	}
	o.Published = append(o.Published, failover.Cluster{Name: "west", Healthy: true, Ready: true})
	fmt.Println("evict", failover.Plan(o).Evict)
	// Output:
	// west Scheduled
	// east WaitsForReplacement
	// evict [east]
}
