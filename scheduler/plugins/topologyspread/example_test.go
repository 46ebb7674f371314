package topologyspread_test

import (
	"context"
	"fmt"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/topologyspread"
)

// A policy chooses four clusters and spreads them over the zones as evenly as possible.
func Example() {
	s, err := scheduler.New(scheduler.Options{
		Registry: scheduler.Registry{topologyspread.Name: topologyspread.New},
		Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: topologyspread.Name}}}},
	})
	if err != nil {
		panic(err)
	}
	cache := &scheduler.Cache{}
	for name, zone := range map[string]string{"a": "eu-1", "b": "eu-1", "c": "eu-1", "d": "eu-2", "e": "eu-2"} {
		cache.Update(&scheduler.Cluster{Name: name, Labels: map[string]string{"zone": zone}})
	}
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{
		Type: v1alpha1.PickN, NumberOfClusters: new(int32(4)),
		TopologySpread: []v1alpha1.TopologySpreadConstraint{{
			TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: v1alpha1.DoNotSchedule,
		}},
	})
	if err != nil {
		panic(err)
	}
	result, err := s.Schedule(context.Background(), cache.Snapshot(), &scheduler.Request{Name: "shop", Policy: policy})
	if err != nil {
		panic(err)
	}
	for _, choice := range result.Chosen {
		fmt.Println(choice.Cluster.Name, choice.Cluster.Labels["zone"])
	}
	diagnosis, err := result.Diagnose(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(diagnosis)

	// Output:
	// a eu-1
	// b eu-1
	// d eu-2
	// e eu-2
	// 4 of 5 clusters chosen; 1 is in zone eu-1, which has its share
}
