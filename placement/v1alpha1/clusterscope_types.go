package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterScopeNamespace is the namespace on the hub that contains the PlacementDecisions, PlacementEvictions and
// WorkSetRevisions of cluster-scoped objects. The controllers create the namespace when they need it.
const ClusterScopeNamespace = "muster-cluster-scope"

const (
	// ClusterPlacementLabel is a label of a PlacementDecision of a ClusterPlacement. Its value is the name of the
	// ClusterPlacement, converted by [LabelValue]. Such a PlacementDecision does not have [PlacementLabel].
	ClusterPlacementLabel = GroupName + "/cluster-placement"
	// ClusterWorkSetLabel is a label of a WorkSetRevision of a ClusterWorkSet. Its value is the name of the
	// ClusterWorkSet, converted by [LabelValue]. Such a WorkSetRevision does not have [WorkSetLabel]. The Works of a
	// ClusterWorkSet have [WorkSetLabel], and an empty [WorkSetNamespaceLabel].
	ClusterWorkSetLabel = GroupName + "/cluster-workset"
)

// A cluster-scoped kind must have the same fields as its namespaced kind, in the same order, because the controllers
// convert pointers between the two types.

// ClusterPlacement is a cluster-scoped Placement for platform teams. It can select every cluster of the fleet without a
// ClusterSetBinding. ClusterWorkSets refer to ClusterPlacements. The permission to create a ClusterPlacement is the
// permission to select every cluster.
//
// The PlacementDecisions of a ClusterPlacement, and the PlacementEvictions for it, are in the namespace
// muster-cluster-scope.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cpl,categories=muster
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.policy.type`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredClusters`
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selectedClusters`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyClusters`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterPlacement struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the ClusterPlacement.
	// +kubebuilder:default={}
	// +optional
	Spec PlacementSpec `json:"spec,omitempty"`
	// status is the observed state of the ClusterPlacement.
	// +optional
	Status PlacementStatus `json:"status,omitempty"`
}

// ClusterPlacementList is a list of ClusterPlacements.
//
// +kubebuilder:object:root=true
type ClusterPlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterPlacement `json:"items"`
}

// ClusterWorkSet is a cluster-scoped WorkSet for platform teams. It distributes objects to the clusters of
// ClusterPlacements. It can select cluster-scoped objects of the hub, and objects in every namespace, except for those
// that belong to Kubernetes or muster. The permission to create a ClusterWorkSet is the permission to run anything on
// every cluster with the permissions of its agent, and to read every object that the controller of the hub can read.
//
// The revisions of a ClusterWorkSet are in the namespace muster-cluster-scope.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cws,categories=muster
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.counts.total`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.counts.updated`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.counts.available`
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.status.rollout.phase`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterWorkSet struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the ClusterWorkSet.
	// +kubebuilder:validation:XValidation:rule="(has(self.work.apply.fieldOwner) ? self.work.apply.fieldOwner : '') == (has(oldSelf.work.apply.fieldOwner) ? oldSelf.work.apply.fieldOwner : '')",message="work.apply.fieldOwner cannot change, because the fields of the former owner would remain: delete the WorkSet with work.delete.action Orphan and create it again with work.apply.takeover Always",fieldPath=".work.apply.fieldOwner"
	// +required
	Spec WorkSetSpec `json:"spec"`
	// status is the observed state of the ClusterWorkSet.
	// +optional
	Status WorkSetStatus `json:"status,omitzero"`
}

// ClusterWorkSetList is a list of ClusterWorkSets.
//
// +kubebuilder:object:root=true
type ClusterWorkSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterWorkSet `json:"items"`
}
