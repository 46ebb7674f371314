// Package v1alpha1 contains the placement API, whose objects are on the hub:
//
//   - [Placement] selects clusters of the fleet by a policy. [PlacementDecision] lists the selected clusters, and
//     [PlacementEviction] removes one of them. [ClusterPlacement] is the cluster-scoped Placement.
//   - [WorkSet] distributes objects to the clusters of Placements, and [WorkSetRevision] stores its revisions.
//     [ClusterWorkSet] is the cluster-scoped WorkSet.
//   - [PlacementPolicy] is the policy of a Placement as a plain value, and the input of a scheduler. Other APIs can
//     embed it, and Go programs can use it without an object.
//   - [RolloutStrategy] defines how a change reaches clusters, and [RolloutStatus] reports the progress. Both are plain
//     values. Package rollout makes the decisions.
//
// The API server validates a policy by the rules of the CustomResourceDefinition. [PlacementPolicy.Validate] checks the
// same rules for a policy from another source, and additional rules that the API server cannot check.
//
// The package imports only apimachinery, k8s.io/api and the API package work/v1alpha1. Package placement/crds contains
// its CustomResourceDefinitions.
//
// +kubebuilder:object:generate=true
// +groupName=placement.muster.dev
package v1alpha1
