// Package v1alpha1 holds the API objects of membership, all on the hub:
//
//   - [MemberCluster] is one cluster of the fleet, as its administrators see it. Cluster-scoped.
//   - [Membership] is the same cluster as its agent sees it: one object named "self" in the namespace
//     of the member. The hub writes its spec and the agent its status, and neither the other's.
//   - [JoinToken] lets clusters ask to join. The hub makes a Secret of it that an agent takes as is.
//   - [JoinRequest] is a cluster at the door: the one object that a bootstrap credential may create.
//
// The package depends on nothing but apimachinery and k8s.io/api; its CustomResourceDefinitions are in
// package crds beside it.
//
// +kubebuilder:object:generate=true
// +groupName=membership.muster.dev
package v1alpha1
