// Package v1alpha1 contains the API objects of membership, all on the hub:
//
//   - [MemberCluster] is one cluster of the fleet, for administrators. Cluster-scoped.
//   - [Membership] is the same cluster for its agent: one object named "self" in the namespace of the member. The hub
//     writes its spec, and the agent its status.
//   - [JoinToken] allows clusters to create JoinRequests. The hub creates a Secret for it with the agent's bootstrap
//     credential.
//   - [JoinRequest] is the request of a cluster to join: the only object that a bootstrap credential may create.
//
// The package depends on apimachinery and k8s.io/api only; its CustomResourceDefinitions are in package crds.
//
// +kubebuilder:object:generate=true
// +groupName=membership.muster.dev
package v1alpha1
