package externalscore_test

import (
	"context"
	"fmt"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/externalscore"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

func Example() {
	s, err := scheduler.New(scheduler.Options{
		Registry: scheduler.Registry{externalscore.Name: externalscore.New},
		Profiles: []scheduler.Profile{
			{Plugins: []scheduler.PluginConfig{
				{Name: externalscore.Name, Args: scheduler.Args(`{"scores": [{"name": "latency"}]}`)}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{
		Type: v1alpha1.PickN, NumberOfClusters: new(int32(1)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := s.Schedule(context.Background(), schedulertest.Snapshot(
		schedulertest.Cluster("east", schedulertest.Score("latency", -20)),
		schedulertest.Cluster("west", schedulertest.Score("latency", 60)),
	), &scheduler.Request{Policy: policy})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, choice := range result.Chosen {
		fmt.Println(choice.Cluster.Name, choice.Score)
	}
	// Output: west 80
}
