package placement_test

import (
	"context"
	"fmt"

	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// shops is a ClusterSource with the clusters of a product.
type shops []string

func (s shops) Run(ctx context.Context, fleet placement.Fleet) error {
	for _, name := range s {
		fleet.Set(&scheduler.Cluster{Name: name, Labels: map[string]string{"kind": "shop"}, Joined: true,
			Healthy: name != "rome"})
	}
	fleet.Synced()
	<-ctx.Done() // a real source reports changes until then
	return nil
}

// ExampleExplain is a dry run: it reports the clusters that a Placement would have, and why it would not have others.
func ExampleExplain() {
	wanted := &v1alpha1.Placement{Spec: v1alpha1.PlacementSpec{
		Policy: v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(3))},
	}}
	o := placement.Options{Clusters: shops{"oslo", "paris", "rome"}}
	// The client is nil: neither the Placement nor the clusters are objects of a hub.
	diagnosis, err := placement.Explain(context.Background(), nil, o, wanted)
	if err != nil {
		panic(err)
	}
	fmt.Println(diagnosis)
	// Output:
	// 2 of 3 clusters chosen, but 3 are desired; 1 is not known to be healthy
}
