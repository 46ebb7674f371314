// Package v1alpha1 contains the API objects of tenancy, on the hub:
//
//   - [ClusterSet] selects MemberClusters by label. Cluster-scoped.
//   - [ClusterSetBinding] allows its namespace to place on the clusters of a set. Namespaced.
//
// A namespace without a ClusterSetBinding cannot place on any cluster.
//
// The RBAC verb bind on a ClusterSet controls which users may create a ClusterSetBinding of the set. A
// ValidatingAdmissionPolicy enforces it, which package crds installs with the CustomResourceDefinitions. This role
// allows its users to bind the set "europe", provided that they may also create ClusterSetBindings in the namespace:
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
