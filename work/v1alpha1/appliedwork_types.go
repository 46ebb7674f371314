package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// WorkReference names a Work on a hub.
type WorkReference struct {
	// Hub is the name that the agent gives the hub, as in the label work.muster.dev/hub.
	Hub string `json:"hub"`
	// Namespace of the Work on the hub.
	Namespace string `json:"namespace"`
	// Name of the Work.
	Name string `json:"name"`
	// UID of the Work: one that was deleted and made anew is another one, which takes the inventory over.
	UID types.UID `json:"uid"`
}

// AppliedWorkSpec says what Work an inventory is of, and how to take its objects back without it.
type AppliedWorkSpec struct {
	// Work that applied the objects.
	Work WorkReference `json:"work"`

	// FieldOwner is the field manager of the objects.
	FieldOwner string `json:"fieldOwner"`

	// Delete is what the Work said last of how its objects are taken back.
	// +optional
	Delete DeletePolicy `json:"delete,omitempty"`

	// Executor in whose name the objects were applied.
	// +optional
	Executor *Executor `json:"executor,omitempty"`
}

// AppliedResource is an object that the Work has applied, or was about to.
type AppliedResource struct {
	// ResourceIdentifier is the object.
	ResourceIdentifier `json:",inline"`

	// UID of the object; empty from before it was applied for the first time until that is known to have succeeded.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// RanHash is the hash of the manifest of a Job with ttlSecondsAfterFinished that was created. A Job that is gone
	// is not created again for the same manifest. Empty for all other objects.
	// +optional
	RanHash string `json:"ranHash,omitempty"`

	// Delete is what becomes of this object, where that is not what the spec says of all.
	// +optional
	Delete DeleteAction `json:"delete,omitempty"`

	// Wave of the object: they are taken back from the highest to the lowest.
	// +optional
	Wave int32 `json:"wave,omitempty"`
}

// AppliedWorkStatus is the inventory.
type AppliedWorkStatus struct {
	// Resources are the objects, written before the first of them is: an object that is not in here was
	// never touched.
	// +listType=atomic
	// +optional
	Resources []AppliedResource `json:"resources,omitempty"`
}

// AppliedWork is the inventory of one Work, on the member. It owns the objects: delete it to delete them,
// which the agent heals while the hub still wants them.
//
// It has no status subresource, so that an inventory is written by the request that creates it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=muster
// +kubebuilder:printcolumn:name="Hub",type=string,JSONPath=`.spec.work.hub`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.work.namespace`
// +kubebuilder:printcolumn:name="Work",type=string,JSONPath=`.spec.work.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AppliedWork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AppliedWorkSpec `json:"spec"`
	// +optional
	Status AppliedWorkStatus `json:"status,omitempty"`
}

// AppliedWorkList is a list of AppliedWorks.
//
// +kubebuilder:object:root=true
type AppliedWorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AppliedWork `json:"items"`
}
