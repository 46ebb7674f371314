package apiavailability_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/apiavailability"
)

func Example() {
	s, err := scheduler.New(scheduler.Options{
		Registry: scheduler.Registry{apiavailability.Name: apiavailability.New},
		Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: apiavailability.Name}}}},
	})
	if err != nil {
		panic(err)
	}
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	cache := &scheduler.Cache{}
	cache.Update(&scheduler.Cluster{Name: "berlin", APIs: map[schema.GroupVersionKind]bool{deployment: true}})
	cache.Update(&scheduler.Cluster{Name: "lima", APIs: map[schema.GroupVersionKind]bool{}})
	cache.Update(&scheduler.Cluster{Name: "oslo"}) // not known
	policy, err := scheduler.NewPolicy(
		&v1alpha1.PlacementPolicy{RequiredAPIs: []metav1.GroupVersionKind{metav1.GroupVersionKind(deployment)}})
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
	fmt.Println(diagnosis)
	// Output:
	// 2 of 3 clusters chosen; 1 does not serve apps/v1 Deployment
}
