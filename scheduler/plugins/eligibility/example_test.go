package eligibility_test

import (
	"context"
	"fmt"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/eligibility"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

func Example() {
	s, err := scheduler.New(scheduler.Options{
		Registry: scheduler.Registry{eligibility.Name: eligibility.New},
		Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: eligibility.Name}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := s.Schedule(context.Background(), schedulertest.Snapshot(
		schedulertest.Cluster("east"),
		schedulertest.Cluster("west", func(c *scheduler.Cluster) { c.Leaving = true }),
	), &scheduler.Request{Policy: policy})
	if err != nil {
		fmt.Println(err)
		return
	}
	diagnosis, err := result.Diagnose(context.Background())
	fmt.Println(diagnosis, err)
	// Output: 1 of 2 clusters chosen; 1 is leaving the fleet <nil>
}
