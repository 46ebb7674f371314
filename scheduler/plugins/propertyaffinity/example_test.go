package propertyaffinity_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/clusteraffinity"
	"github.com/muster-sdk/muster/scheduler/plugins/propertyaffinity"
)

// A policy requires clusters with four GPUs and a minimum version of Kubernetes.
func Example() {
	s, err := scheduler.New(scheduler.Options{
		Registry: scheduler.Registry{clusteraffinity.Name: clusteraffinity.New(propertyaffinity.Matcher())},
		Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: clusteraffinity.Name}}}},
	})
	if err != nil {
		panic(err)
	}
	cache := &scheduler.Cache{}
	for name, properties := range map[string]map[string]string{
		"berlin": {"gpu": "8", "version": "v1.31.10"},
		"lima":   {"gpu": "2", "version": "v1.31.10"},
		"oslo":   {"gpu": "many", "version": "v1.32.0"},
		"quito":  {"gpu": "8", "version": "v1.31.9"},
		"rome":   {"version": "v1.31.10"},
	} {
		cache.Update(&scheduler.Cluster{Name: name, Properties: properties})
	}
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{
		Required: []v1alpha1.ClusterSelectorTerm{{Properties: []v1alpha1.PropertyRequirement{
			{Name: "gpu", Operator: v1alpha1.PropertyGe, Values: []string{"4"}},
			{Name: "version", Operator: v1alpha1.PropertyGe, Values: []string{"v1.31.10"}},
		}}},
	}})
	if err != nil {
		panic(err)
	}
	result, err := s.Schedule(context.Background(), cache.Snapshot(), &scheduler.Request{Policy: policy})
	if err != nil {
		panic(err)
	}
	diagnosis, err := result.Diagnose(context.Background())
	if err != nil {
		panic(err)
	}
	for _, cluster := range diagnosis.Clusters {
		fmt.Println(strings.TrimSpace(fmt.Sprintln(cluster.Name, cluster.Outcome, cluster.Reason)))
	}
	// Output:
	// berlin Chosen
	// lima Rejected does not match gpu >= 4
	// oslo Rejected has property gpu with value "many", which is no quantity
	// quito Rejected does not match version >= v1.31.10
	// rome Rejected has no property gpu
}
