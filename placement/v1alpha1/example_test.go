package v1alpha1_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Three clusters in Europe that run a recent Kubernetes, one from each region, and the cheapest of those.
func ExamplePlacementPolicy() {
	policy := v1alpha1.PlacementPolicy{
		Type:             v1alpha1.PickN,
		NumberOfClusters: new(int32(3)),
		Affinity: &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{{
			Properties: []v1alpha1.PropertyRequirement{
				{Name: "example.com/continent", Operator: v1alpha1.PropertyEq, Values: []string{"eu"}},
				{Name: "example.com/kubernetes", Operator: v1alpha1.PropertyGe, Values: []string{"v1.31.0"}},
			},
		}}},
		TopologySpread: []v1alpha1.TopologySpreadConstraint{{TopologyKey: "topology.kubernetes.io/region"}},
		Sorters:        []v1alpha1.PropertySorter{{Name: "example.com/cost", Order: v1alpha1.Ascending}},
	}
	out, err := yaml.Marshal(policy)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(out))
	// Output:
	// affinity:
	//   required:
	//   - properties:
	//     - name: example.com/continent
	//       operator: Eq
	//       values:
	//       - eu
	//     - name: example.com/kubernetes
	//       operator: Ge
	//       values:
	//       - v1.31.0
	// numberOfClusters: 3
	// sorters:
	// - name: example.com/cost
	//   order: Ascending
	// topologySpread:
	// - topologyKey: topology.kubernetes.io/region
	// type: PickN
}

// A policy that does not come from an API server is checked here.
func ExamplePlacementPolicy_Validate() {
	policy := v1alpha1.PlacementPolicy{
		Type:    v1alpha1.PickN,
		Sorters: []v1alpha1.PropertySorter{{Name: "available/cpu", Weight: 200}},
	}
	for _, err := range policy.Validate(field.NewPath("spec", "policy")) {
		fmt.Println(err)
	}
	// Output:
	// spec.policy.numberOfClusters: Required value: numberOfClusters is required with type PickN; use type PickAll for as many as there are
	// spec.policy.sorters[0].weight: Invalid value: 200: weight must be from 1 to 100; leave it out for 1, and set order to turn the order around
}
