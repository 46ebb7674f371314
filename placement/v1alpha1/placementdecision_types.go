package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels of a PlacementDecision.
const (
	// PlacementLabel has the name of the Placement that a PlacementDecision is of, by [LabelValue].
	PlacementLabel = GroupName + "/placement"
	// DecisionIndexLabel has the index of a PlacementDecision among those of its Placement.
	DecisionIndexLabel = GroupName + "/decision-index"
)

// MaxDecisions is how many clusters one PlacementDecision has at most.
const MaxDecisions = 100

// ClusterDecision is a cluster that was chosen.
type ClusterDecision struct {
	// clusterName is the name of the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName"`

	// group is the decision group that the cluster is in, if its Placement has any.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Group string `json:"group,omitempty"`

	// groupPart is the part of the decision group that the cluster is in, counted from 0. It is 0 unless the
	// clustersPerDecisionGroup of the Placement divides groups.
	// +kubebuilder:validation:Minimum=0
	// +optional
	GroupPart int32 `json:"groupPart,omitempty"`

	// reason says why the cluster was chosen, "Scheduled"; or why it stays though it is to be left: "WaitsForReplacement"
	// or "WaitsForTurn".
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Reason string `json:"reason,omitempty"`

	// replaces is the cluster whose place this one has taken by failover, if its Placement has a policy for that.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Replaces string `json:"replaces,omitempty"`

	// binding is the name of the ClusterSetBinding by which the cluster was chosen. Empty: the hub does not restrict
	// namespaces, or the cluster was chosen before it did.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Binding string `json:"binding,omitempty"`
}

// PlacementDecision is a slice of the clusters that a Placement has chosen. It has at most 100, and a cluster keeps its
// slice and its place in it for as long as it stays chosen.
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

	// decisions are the clusters.
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
