package tainttoleration_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/tainttoleration"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

func Example() {
	s, err := scheduler.New(scheduler.Options{
		Registry: scheduler.Registry{tainttoleration.Name: tainttoleration.New},
		Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: tainttoleration.Name}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{
		Tolerations: []v1alpha1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := s.Schedule(context.Background(), schedulertest.Snapshot(
		schedulertest.Cluster("east", schedulertest.Taint("gpu", "", corev1.TaintEffectNoSchedule, 0)),
		schedulertest.Cluster("west", schedulertest.Taint("maintenance", "", corev1.TaintEffectNoSchedule, 0)),
	), &scheduler.Request{Policy: policy})
	if err != nil {
		fmt.Println(err)
		return
	}
	diagnosis, err := result.Diagnose(context.Background())
	fmt.Println(diagnosis, err)
	// Output: 1 of 2 clusters chosen; 1 has taint maintenance <nil>
}
