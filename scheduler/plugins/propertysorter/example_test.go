package propertysorter_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/propertysorter"
)

// A policy prefers cheap clusters, and among these clusters with much available CPU.
func Example() {
	s, err := scheduler.New(scheduler.Options{
		Registry: scheduler.Registry{propertysorter.Name: propertysorter.New},
		Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: propertysorter.Name}}}},
	})
	if err != nil {
		panic(err)
	}
	cache := &scheduler.Cache{}
	for name, of := range map[string]struct{ cost, cpu string }{"berlin": {"0.30", "8"}, "lima": {"0.10", "500m"},
		"oslo": {"", "16"}} {
		c := &scheduler.Cluster{Name: name, Available: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(of.cpu)}}
		if of.cost != "" {
			c.Properties = map[string]string{"example.com/cost": of.cost}
		}
		cache.Update(c)
	}
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{
		Type: v1alpha1.PickN, NumberOfClusters: new(int32(3)),
		Sorters: []v1alpha1.PropertySorter{
			{Name: "example.com/cost", Order: v1alpha1.Ascending, Weight: 3},
			{Name: "available/cpu", Order: v1alpha1.Descending, Weight: 1},
		},
	})
	if err != nil {
		panic(err)
	}
	result, err := s.Schedule(context.Background(), cache.Snapshot(), &scheduler.Request{Policy: policy})
	if err != nil {
		panic(err)
	}
	for _, choice := range result.Chosen {
		fmt.Printf("%s %.1f\n", choice.Cluster.Name, choice.Score)
	}
	// Output:
	// lima 75.0
	// oslo 25.0
	// berlin 12.1
}
