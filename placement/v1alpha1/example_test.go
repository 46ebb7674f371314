package v1alpha1_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// The policy selects three clusters in Europe that run a recent version of Kubernetes. It distributes them among the
// regions, and prefers clusters with low cost.
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

// Validate checks a policy that does not come from an API server.
func ExamplePlacementPolicy_Validate() {
	policy := v1alpha1.PlacementPolicy{
		Type:    v1alpha1.PickN,
		Sorters: []v1alpha1.PropertySorter{{Name: "available/cpu", Weight: 200}},
	}
	for _, err := range policy.Validate(field.NewPath("spec", "policy")) {
		fmt.Println(err)
	}
	// Output:
	// spec.policy.numberOfClusters: Required value: numberOfClusters is required with type PickN; use type PickAll for all clusters
	// spec.policy.sorters[0].weight: Invalid value: 200: weight must be from 1 to 100; leave it out for 1, and set order to reverse the order
}

// The WorkSet distributes the objects of the shop to the clusters of the Placement fleet: first to the clusters of the
// stage canary, and after the approval of a user to the others.
func ExampleWorkSet() {
	const text = `
apiVersion: placement.muster.dev/v1alpha1
kind: WorkSet
metadata:
  name: shop
  namespace: shop
spec:
  placements:
  - name: fleet
  resources:
  - group: apps
    kind: Deployment
    labelSelector:
      matchLabels:
        app: shop
  - kind: Service
    name: shop
  overrides:
    rules:
    - clusters:
      - labelSelector:
          matchLabels:
            size: small
      objects:
      - kind: Deployment
      mergePatch:
        spec:
          replicas: 1
  rollout:
    type: Stages
    onFailure: RollBack
    stages:
    - name: canary
      selector:
        matchLabels:
          stage: canary
      after:
        approval: true
    - name: rest
      maxConcurrency: 25%
`
	var set v1alpha1.WorkSet
	if err := yaml.UnmarshalStrict([]byte(text), &set); err != nil {
		panic(err)
	}
	fmt.Println(set.Name, "has", len(set.Spec.Rollout.Stages), "stages, and", len(set.Spec.Validate()), "mistakes")
	// Output:
	// shop has 2 stages, and 0 mistakes
}

// The minimal WorkSet distributes all ConfigMaps of its namespace to all clusters at once.
func ExampleWorkSetSpec() {
	set := v1alpha1.WorkSet{
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "shop"},
		Spec: v1alpha1.WorkSetSpec{
			Placements: []v1alpha1.PlacementReference{{Name: "fleet"}},
			Resources:  []v1alpha1.ResourceSelector{{Kind: "ConfigMap"}},
		},
	}
	out, err := yaml.Marshal(set)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(out))
	// Output:
	// metadata:
	//   name: settings
	//   namespace: shop
	// spec:
	//   placements:
	//   - name: fleet
	//   resources:
	//   - kind: ConfigMap
}

// Validate checks a WorkSet before it is written, by more rules than the API server.
func ExampleWorkSetSpec_Validate() {
	spec := v1alpha1.WorkSetSpec{
		Placements: []v1alpha1.PlacementReference{{Name: "fleet"}},
		Resources:  []v1alpha1.ResourceSelector{{Group: "apps/v1", Kind: "Deployment"}},
		Replicas: &v1alpha1.ReplicaDivision{Strategy: v1alpha1.DivisionStaticWeight,
			Weights: []v1alpha1.ClusterWeight{{Weight: 2}}},
		Rollout: v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutStages},
	}
	for _, err := range spec.Validate() {
		fmt.Println(err)
	}
	// Output:
	// spec.resources[0].group: Invalid value: "apps/v1": group must be the group of an API, such as apps, or empty for the core group
	// spec.replicas.weights[0].clusters: Invalid value: an empty selector matches every cluster: give it names, a labelSelector or cel, or remove it
	// spec.rollout.stages: Required value: stages is required with type Stages; use type Progressive for a rollout without them
}
