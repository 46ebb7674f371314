package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacementSpec says which clusters are wanted.
type PlacementSpec struct {
	// Policy is what the clusters are chosen by. Empty: all clusters that placements may be on.
	// +kubebuilder:default={type: PickAll}
	// +optional
	Policy PlacementPolicy `json:"policy,omitempty"`
}

// ConditionScheduled of a Placement is True when as many clusters are chosen as its policy asks for.
const ConditionScheduled = "Scheduled"

// PlacementStatus is what has become of a placement.
type PlacementStatus struct {
	// ObservedGeneration is the generation of the placement that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// SelectedClusters is how many clusters are chosen.
	// +optional
	SelectedClusters int32 `json:"selectedClusters"`

	// DesiredClusters is how many clusters the policy asks for: numberOfClusters with PickN, the length of
	// clusterNames with PickFixed, and with PickAll as many as there are to choose.
	// +optional
	DesiredClusters int32 `json:"desiredClusters"`

	// Conditions: Scheduled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Placement says where: it chooses clusters of the fleet by a policy.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pl,categories=muster
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.policy.type`
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selectedClusters`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredClusters`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Placement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec PlacementSpec `json:"spec,omitempty"`
	// +optional
	Status PlacementStatus `json:"status,omitempty"`
}

// PlacementList is a list of Placements.
//
// +kubebuilder:object:root=true
type PlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Placement `json:"items"`
}
