package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels of a PlacementDecision.
const (
	// PlacementLabel contains the name of the Placement that a PlacementDecision belongs to, converted by [LabelValue].
	PlacementLabel = GroupName + "/placement"
	// DecisionIndexLabel contains the index of a PlacementDecision among those of its Placement.
	DecisionIndexLabel = GroupName + "/decision-index"
)

// MaxDecisions is the maximum number of clusters in one PlacementDecision.
const MaxDecisions = 100

// ClusterDecision is a selected cluster.
type ClusterDecision struct {
	// clusterName is the name of the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName"`

	// group is the name of the decision group of the cluster. Empty: the cluster is in no named group.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Group string `json:"group,omitempty"`

	// groupPart is the part of the decision group that the cluster is in, counted from 0. It is 0 unless the
	// clustersPerDecisionGroup of the Placement divides groups.
	// +kubebuilder:validation:Minimum=0
	// +optional
	GroupPart int32 `json:"groupPart,omitempty"`

	// reason is the reason why the cluster is listed. Scheduled: the cluster is selected. WaitsForReplacement or
	// WaitsForTurn: the placement must leave the cluster, and waits until its replacement is ready, or until spec.failover
	// allows another eviction.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Reason string `json:"reason,omitempty"`

	// replaces is the name of the cluster that this cluster replaced by failover. Empty: the cluster replaced none.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Replaces string `json:"replaces,omitempty"`

	// binding is the name of the ClusterSetBinding by which the cluster was selected. Empty: the hub does not restrict
	// namespaces, or the cluster was selected before the hub restricted them.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Binding string `json:"binding,omitempty"`
}

// PlacementDecision is a slice of the selected clusters of a Placement, with at most 100 clusters. A cluster keeps its
// slice, and its position in the slice, while it stays selected.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=pld,categories=muster
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.metadata.labels.placement\.muster\.dev/placement`
// +kubebuilder:printcolumn:name="Index",type=string,JSONPath=`.metadata.labels.placement\.muster\.dev/decision-index`
// +kubebuilder:printcolumn:name="Clusters",type=string,JSONPath=`.decisions[*].clusterName`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PlacementDecision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// decisions are the selected clusters of this slice.
	// +listType=map
	// +listMapKey=clusterName
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Decisions []ClusterDecision `json:"decisions,omitempty"`
}

// PlacementDecisionList is a list of PlacementDecisions.
//
// +kubebuilder:object:root=true
type PlacementDecisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlacementDecision `json:"items"`
}
