package celaffinity_test

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/celaffinity"
	"github.com/muster-sdk/muster/scheduler/plugins/clusteraffinity"
)

// A policy requires clusters with available CPU, or edge clusters.
func Example() {
	s, err := scheduler.New(scheduler.Options{
		Registry: scheduler.Registry{clusteraffinity.Name: clusteraffinity.New(celaffinity.Matcher(celaffinity.Options{}))},
		Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: clusteraffinity.Name}}}},
	})
	if err != nil {
		panic(err)
	}
	cpu := func(text string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(text)}
	}
	cache := &scheduler.Cache{}
	cache.Update(&scheduler.Cluster{Name: "berlin", Available: cpu("1.5")})
	cache.Update(&scheduler.Cluster{Name: "lima", Available: cpu("500m"), Labels: map[string]string{"tier": "core"}})
	cache.Update(&scheduler.Cluster{Name: "oslo", Available: cpu("500m"), Labels: map[string]string{"tier": "edge"}})
	cache.Update(&scheduler.Cluster{Name: "quito"})
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{
		Required: []v1alpha1.ClusterSelectorTerm{{CEL: []string{
			`cluster.available["cpu"] >= quantity("1") || cluster.labels["tier"] == "edge"`,
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
	// oslo Chosen
	// lima Rejected does not match cluster.available["cpu"] >= quantity("1") || cluster.labels["tier"] == "edge"
	// quito Rejected fails to evaluate cluster.available["cpu"] >= quantity("1") || cluster.labels["tier"] == "edge": no such key: cpu
}
