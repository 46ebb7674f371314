// Package v1alpha1 contains the API objects of tenancy. On the hub:
//
//   - [ClusterSet] selects MemberClusters by label. Cluster-scoped.
//   - [ClusterSetBinding] allows its namespace to place on the clusters of a set. Namespaced.
//   - [SelectionGrant] allows WorkSets to select objects outside of their own namespace. Cluster-scoped.
//
// Placements of a namespace without a ClusterSetBinding select no clusters.
//
// On a member:
//
//   - [MemberPolicy] limits the objects that the agent applies and reads for its hubs. Cluster-scoped.
//
// A user needs the RBAC verb bind on a ClusterSet to create a ClusterSetBinding of the set. A ValidatingAdmissionPolicy
// enforces this; package crds installs it with the CustomResourceDefinitions. The following role allows its users to
// bind the set "europe". They also need the permission to create ClusterSetBindings in the namespace:
//
//	apiVersion: rbac.authorization.k8s.io/v1
//	kind: ClusterRole
//	metadata:
//	  name: bind-europe
//	rules:
//	- apiGroups: [tenancy.muster.dev]
//	  resources: [clustersets]
//	  resourceNames: [europe]
//	  verbs: [bind]
//
// The package depends only on apimachinery.
//
// +kubebuilder:object:generate=true
// +groupName=tenancy.muster.dev
package v1alpha1
