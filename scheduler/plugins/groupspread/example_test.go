package groupspread_test

import (
	"context"
	"fmt"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/groupspread"
)

// A policy chooses clusters of exactly two providers.
func Example() {
	s, err := scheduler.New(scheduler.Options{
		Registry: scheduler.Registry{groupspread.Name: groupspread.New},
		Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: groupspread.Name}}}},
	})
	if err != nil {
		panic(err)
	}
	cache := &scheduler.Cache{}
	for name, provider := range map[string]string{"a": "aws", "b": "aws", "c": "aws", "d": "gcp", "e": "azure"} {
		cache.Update(&scheduler.Cluster{Name: name, Labels: map[string]string{"provider": provider}})
	}
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{
		Type: v1alpha1.PickN, NumberOfClusters: new(int32(3)),
		GroupSpread: []v1alpha1.GroupSpreadConstraint{{Label: "provider", MinGroups: 2, MaxGroups: 2}},
	})
	if err != nil {
		panic(err)
	}
	result, err := s.Schedule(context.Background(), cache.Snapshot(), &scheduler.Request{Name: "shop", Policy: policy})
	if err != nil {
		panic(err)
	}
	for _, choice := range result.Chosen {
		fmt.Println(choice.Cluster.Name, choice.Cluster.Labels["provider"])
	}
	diagnosis, err := result.Diagnose(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(diagnosis)

	// Output:
	// a aws
	// b aws
	// d gcp
	// 3 of 5 clusters chosen; 1 is in provider aws, which has its share, 1 is in provider azure, which was not chosen
}
