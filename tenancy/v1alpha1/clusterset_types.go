package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GlobalClusterSet is the name of the ClusterSet that selects every cluster. The hub creates the ClusterSet when the
// hub starts.
const GlobalClusterSet = "global"

// Finalizer is on every ClusterSet that has bindings, and on every ClusterSetBinding. A binding grants clusters only
// after it has the finalizer.
const Finalizer = GroupName + "/in-use"

// ConditionReady of a ClusterSet is True if its selector is valid and the set is not being deleted. ConditionReady of a
// ClusterSetBinding is True if the binding grants the clusters of its set.
const ConditionReady = "Ready"

// Reasons of the condition Ready.
const (
	// ReasonReady means that the set selects clusters, or the binding grants them.
	ReasonReady = "Ready"
	// ReasonInvalidSelector means that spec.selector is invalid. The set grants no new cluster until it is corrected.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonClusterSetNotFound means that the binding's set does not exist. The binding grants no new cluster.
	ReasonClusterSetNotFound = "ClusterSetNotFound"
	// ReasonInUse means that the object is being deleted and is still in use: a ClusterSet has bindings, or Placements
	// have clusters that only the ClusterSetBinding grants.
	ReasonInUse = "InUse"
)

// ClusterSetSpec describes the desired clusters of a ClusterSet.
type ClusterSetSpec struct {
	// Selector selects MemberClusters by their labels. The empty selector selects every cluster. A change takes effect
	// immediately: Placements leave the clusters that the selector does not match any more, unless another binding grants
	// them.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="the operator of each of matchExpressions must be In, NotIn, Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))",message="the values of each of matchExpressions are required with In and NotIn, and must be empty otherwise"
	Selector *metav1.LabelSelector `json:"selector"`
}

// ClusterSetStatus describes the observed state of a ClusterSet.
type ClusterSetStatus struct {
	// ObservedGeneration is the generation of the ClusterSet that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Clusters is the number of MemberClusters that the set selects.
	// +optional
	Clusters int32 `json:"clusters"`

	// ReadyClusters is the number of selected MemberClusters whose condition Healthy is True.
	// +optional
	ReadyClusters int32 `json:"readyClusters"`

	// Bindings is the number of ClusterSetBindings of the set.
	// +optional
	Bindings int32 `json:"bindings"`

	// Conditions of the set. Ready comes first.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterSet is a named group of MemberClusters. A ClusterSetBinding allows a namespace to place on its clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cset,categories=muster
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyClusters`
// +kubebuilder:printcolumn:name="Bindings",type=integer,JSONPath=`.status.bindings`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterSetSpec `json:"spec"`
	// +optional
	Status ClusterSetStatus `json:"status,omitempty"`
}

// ClusterSetList is a list of ClusterSets.
//
// +kubebuilder:object:root=true
type ClusterSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterSet `json:"items"`
}
