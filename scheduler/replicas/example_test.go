package replicas_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-sdk/muster/scheduler/replicas"
)

// The weights are 2:1:1, and the capacity of south is below its share.
func ExampleDivide() {
	result, err := replicas.Divide(replicas.Request{
		Replicas: 12,
		Strategy: replicas.StaticWeight,
		Clusters: []replicas.Target{
			{Name: "east", Weight: 2, Capacity: replicas.Unbounded},
			{Name: "west", Weight: 1, Capacity: replicas.Unbounded},
			{Name: "south", Weight: 1, Capacity: 1},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, share := range result.Shares {
		fmt.Println(share.Name, share.Replicas)
	}
	// Output:
	// east 7
	// south 1
	// west 4
}

// A workload grows, loses a cluster, and is divided again with Fresh.
func ExampleDivide_steady() {
	request := replicas.Request{Replicas: 12, Strategy: replicas.DynamicWeight, Clusters: []replicas.Target{
		{Name: "east", Capacity: 20},
		{Name: "south", Capacity: 10},
		{Name: "west", Capacity: 10},
	}}
	show := func(title string) {
		result, err := replicas.Divide(request)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(title, result.Shares)
		for i, share := range result.Shares {
			request.Clusters[i].Current = share.Replicas
		}
	}
	show("at first:")
	request.Replicas = 16
	show("more:    ")
	request.Clusters = request.Clusters[:2]
	show("no west: ")
	request.Clusters = append(request.Clusters, replicas.Target{Name: "west", Capacity: 10})
	show("back:    ")
	request.Fresh = true
	show("fresh:   ")
	// Output:
	// at first: [{east 6} {south 3} {west 3}]
	// more:     [{east 8} {south 4} {west 4}]
	// no west:  [{east 11} {south 5}]
	// back:     [{east 11} {south 5} {west 0}]
	// fresh:    [{east 8} {south 4} {west 4}]
}

// The capacities are the minimum of free resources and a quota. A third estimator fails and is ignored.
func ExampleMin() {
	free := map[string]corev1.ResourceList{
		"east": {corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")},
		"west": {corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi")},
	}
	estimator := replicas.Min(map[string]replicas.Estimator{
		"free": replicas.FromAvailable(func(cluster string) (corev1.ResourceList, bool) {
			resources, known := free[cluster]
			return resources, known
		}),
		"quota": replicas.EstimatorFunc(func(_ context.Context, _ replicas.Requirements, clusters []string) ([]int32, error) {
			return []int32{replicas.Unbounded, 20}, nil
		}),
		"nodes": replicas.EstimatorFunc(func(context.Context, replicas.Requirements, []string) ([]int32, error) {
			return nil, errors.New("connection refused")
		}),
	}, replicas.MinOptions{Report: func(name string, err error) { fmt.Printf("ignored %s: %v\n", name, err) }})

	request := replicas.Request{Replicas: 12, Strategy: replicas.Aggregated}
	current := map[string]int32{"east": 2}
	names := []string{"east", "west"}
	more, err := estimator.Estimate(context.Background(), replicas.Requirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("2Gi"),
	}}, names)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, name := range names {
		request.Clusters = append(request.Clusters, replicas.Target{
			Name: name, Current: current[name], Capacity: replicas.CapacityOf(current[name], more[i]),
		})
	}
	fmt.Println(more)
	fmt.Println(replicas.Divide(request))
	// Output:
	// ignored nodes: connection refused
	// [4 20]
	// {[{east 6} {west 6}] 0} <nil>
}

func ExampleFit() {
	fmt.Println(replicas.Fit(
		corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")},
		corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("3Gi")},
	))
	// Output: 2
}
