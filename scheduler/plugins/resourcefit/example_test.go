package resourcefit_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/resourcefit"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

func Example() {
	s, err := scheduler.New(scheduler.Options{
		Registry: scheduler.Registry{resourcefit.Name: resourcefit.New},
		Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: resourcefit.Name}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{
		Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := s.Schedule(context.Background(), schedulertest.Snapshot(
		schedulertest.Cluster("east", schedulertest.Resource("cpu", "64", "2")),
		schedulertest.Cluster("west", schedulertest.Resource("cpu", "64", "48")),
	), &scheduler.Request{Policy: policy})
	if err != nil {
		fmt.Println(err)
		return
	}
	diagnosis, err := result.Diagnose(context.Background())
	fmt.Println(diagnosis, err)
	// Output: 1 of 2 clusters chosen; 1 has less than 4 of cpu available <nil>
}
