// Package v1alpha1 holds the API objects of placement, on the hub:
//
//   - [Placement] says which clusters of the fleet are wanted, and how many of them were chosen. Namespaced.
//   - [PlacementPolicy] is the wish itself, a plain value that a scheduler takes. A product may put it into
//     objects of its own, or use it without any object.
//   - [RolloutStrategy] says how a change reaches clusters, and [RolloutStatus] how far it is. They too are plain
//     values; package rollout decides by them.
//
// The API server checks a policy by the rules of the CustomResourceDefinition. [PlacementPolicy.Validate] has the
// same rules for a policy that comes from elsewhere, and those that are beyond the API server.
//
// The package depends on nothing but apimachinery and k8s.io/api; its CustomResourceDefinitions are in
// package crds beside it.
//
// +kubebuilder:object:generate=true
// +groupName=placement.muster.dev
package v1alpha1
