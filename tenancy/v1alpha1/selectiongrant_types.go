package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SelectionGrantSpec describes the objects of the hub that a SelectionGrant allows, and the namespaces that may select
// them.
type SelectionGrantSpec struct {
	// Namespaces are the namespaces whose WorkSets may select the objects. An entry that ends with "*" applies to every
	// namespace with this prefix, and "*" to every namespace.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?|([a-z0-9][-a-z0-9]*)?\*)$`
	// +required
	Namespaces []string `json:"namespaces"`

	// Objects are the objects that the WorkSets may select.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +required
	Objects []SelectableObjects `json:"objects"`
}

// SelectableObjects identifies objects of one kind in one namespace, or cluster-scoped objects of one kind.
type SelectableObjects struct {
	// Group is the API group of the objects. The empty group is the core group.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// Kind is the kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// Namespace is the namespace of the objects. Empty: the objects are cluster-scoped.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Names are the names of the objects. If the list is not empty, a WorkSet must select an object by its name. Empty:
	// all objects of the kind, including objects that are created later.
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Names []string `json:"names,omitempty"`
}

// SelectionGrant allows WorkSets to select objects of the hub outside of their own namespace. Only administrators of
// the hub should be able to create SelectionGrants: a user with this permission can read every object that the
// controller of WorkSets can read. Without a SelectionGrant, a WorkSet may select the objects in its namespace, and
// this Namespace by name. The controller also needs the permissions to list and watch the kinds.
//
// When a SelectionGrant is deleted or changed, the clusters keep the objects that WorkSets selected with it. The
// WorkSets report that they may not select these objects any more.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=selgrant,categories=muster
// +kubebuilder:printcolumn:name="Namespaces",type=string,JSONPath=`.spec.namespaces`
// +kubebuilder:printcolumn:name="Kinds",type=string,JSONPath=`.spec.objects[*].kind`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SelectionGrant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SelectionGrantSpec `json:"spec"`
}

// SelectionGrantList is a list of SelectionGrants.
//
// +kubebuilder:object:root=true
type SelectionGrantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SelectionGrant `json:"items"`
}
