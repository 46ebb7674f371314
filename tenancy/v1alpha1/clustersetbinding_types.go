package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterSetBindingSpec describes the clusters on which a namespace may place, and the limits for its WorkSets.
type ClusterSetBindingSpec struct {
	// ClusterSetName is the name of the ClusterSet on whose clusters the namespace may place. The field is immutable. The
	// user who creates the binding needs the verb bind on the ClusterSet. The set may be created later.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterSetName is immutable: create another ClusterSetBinding"
	ClusterSetName string `json:"clusterSetName"`

	// Kinds are the kinds of objects that WorkSets of the namespace may distribute to the clusters of the binding. A
	// WorkSet with an object of another kind changes nothing on these clusters. An empty list allows every kind.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Kinds []ObjectKind `json:"kinds,omitempty"`

	// ServiceAccount is the ServiceAccount on each member whose permissions the agent uses to apply the WorkSets of the
	// namespace. A WorkSet with another executor changes nothing on these clusters. Unset: each WorkSet selects its
	// executor, and the agent applies a WorkSet without an executor with its own permissions.
	// +optional
	ServiceAccount *ServiceAccount `json:"serviceAccount,omitempty"`
}

// MaxUsers is the maximum number of Placements in status.users of a ClusterSetBinding.
const MaxUsers = 20

// ClusterSetBindingStatus describes the observed state of a ClusterSetBinding.
type ClusterSetBindingStatus struct {
	// ObservedGeneration is the generation of the ClusterSetBinding that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// UserCount is the number of Placements that have selected at least one cluster that only this binding grants.
	// +optional
	UserCount int32 `json:"userCount"`

	// Users are the names of these Placements, in alphabetical order. Only the first 20 are listed.
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Users []string `json:"users,omitempty"`

	// Conditions of the binding. Ready comes first.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterSetBinding allows its namespace to place on the clusters of a ClusterSet. After the deletion of a binding, the
// Placements of the namespace leave the clusters that no other binding grants. A finalizer keeps the binding until they
// have left.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=csb,categories=muster
// +kubebuilder:printcolumn:name="Set",type=string,JSONPath=`.spec.clusterSetName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Users",type=integer,JSONPath=`.status.userCount`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterSetBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterSetBindingSpec `json:"spec"`
	// +optional
	Status ClusterSetBindingStatus `json:"status,omitempty"`
}

// ClusterSetBindingList is a list of ClusterSetBindings.
//
// +kubebuilder:object:root=true
type ClusterSetBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterSetBinding `json:"items"`
}
