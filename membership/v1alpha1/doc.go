// Package v1alpha1 contains the API objects of membership, all on the hub:
//
//   - [MemberCluster] represents one cluster of the fleet. Administrators manage it. Cluster-scoped.
//   - [Membership] represents the same cluster for its agents. It has the name "self" and is in the namespace of the
//     member. The hub writes its spec, and the agents write its status.
//   - [JoinToken] allows clusters to create JoinRequests. The hub stores the bootstrap credential of an agent in a
//     Secret of the JoinToken.
//   - [JoinRequest] is the request of a cluster to join. JoinRequests are the only objects that a bootstrap credential
//     may create.
//
// The package depends only on apimachinery and k8s.io/api. Its CustomResourceDefinitions are in package crds.
//
// +kubebuilder:object:generate=true
// +groupName=membership.muster.dev
package v1alpha1
