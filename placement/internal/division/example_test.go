package division_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/division"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/replicas"
)

// ExampleDivision_Divide assigns two thirds of the replicas of a Deployment to Europe.
func ExampleDivision_Divide() {
	var spec v1alpha1.ReplicaDivision
	if err := yaml.UnmarshalStrict([]byte(`
strategy: StaticWeight
weights:
- clusters: {labelSelector: {matchLabels: {region: eu}}}
  weight: 2
- clusters: {names: [tokyo]}
  weight: 1
`), &spec); err != nil {
		panic(err)
	}
	divided, err := division.New(&spec)
	if err != nil {
		panic(err)
	}
	web, err := bundle.Parse([]byte(
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":10}}`))
	if err != nil {
		panic(err)
	}
	objects := []bundle.Object{web}
	result, err := divided.Divide(objects, []division.Cluster{
		{Cluster: &scheduler.Cluster{Name: "paris", Labels: map[string]string{"region": "eu"}}, Objects: objects},
		{Cluster: &scheduler.Cluster{Name: "tokyo"}, Objects: objects},
	}, nil)
	if err != nil {
		panic(err)
	}
	for _, share := range result.Clusters {
		fmt.Printf("%d: %s\n", share.Replicas, share.Objects[0].JSON)
	}
	// Output:
	// 7: {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":7}}
	// 3: {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":3}}
}

// ExampleDivision_Workloads assigns replicas by the available room, according to the requests of one replica.
func ExampleDivision_Workloads() {
	divided, err := division.New(&v1alpha1.ReplicaDivision{Strategy: v1alpha1.DivisionDynamicWeight})
	if err != nil {
		panic(err)
	}
	web, err := bundle.Parse(
		[]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},
		"spec":{"replicas":12,"template":{"spec":{"containers":[{"name":"web","resources":{"requests":{"cpu":"500m"}}}]}}}}`))
	if err != nil {
		panic(err)
	}
	objects := []bundle.Object{web}
	available := map[string]corev1.ResourceList{
		"paris": {corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("110")},
		"tokyo": {corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourcePods: resource.MustParse("110")},
	}
	clusters := []division.Cluster{
		{Cluster: &scheduler.Cluster{Name: "paris"}, Objects: objects},
		{Cluster: &scheduler.Cluster{Name: "tokyo"}, Objects: objects},
	}
	requests := map[bundle.Key]corev1.ResourceList{}
	for _, w := range divided.Workloads(objects, clusters) {
		requests[w.Key] = w.Requirements.Requests
	}
	result, err := divided.Divide(objects, clusters, func(workload bundle.Key, cluster string) int32 {
		return replicas.Fit(available[cluster], requests[workload])
	})
	if err != nil {
		panic(err)
	}
	for i, share := range result.Clusters {
		fmt.Println(clusters[i].Name, share.Replicas)
	}
	for _, u := range result.Unplaced {
		fmt.Println(u.Workload.Name, u.Replicas, "unplaced")
	}
	// Output:
	// paris 8
	// tokyo 2
	// web 2 unplaced
}
