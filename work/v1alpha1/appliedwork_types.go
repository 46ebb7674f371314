package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// WorkReference identifies a Work on a hub.
type WorkReference struct {
	// Hub is the name of the hub in the agent's options, as in the label work.muster.dev/hub.
	Hub string `json:"hub"`
	// Namespace of the Work on the hub.
	Namespace string `json:"namespace"`
	// Name of the Work.
	Name string `json:"name"`
	// UID of the Work. A Work that is created again under the name has another UID, and adopts the inventory.
	UID types.UID `json:"uid"`
	// Generation of the Work when this AppliedWork was written last. A Work with the UID and a lower generation comes from
	// a restored hub.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// HubRestored is the last epoch of the hub that followed a restore, when this AppliedWork was written last.
	// Objects that a Work lacks when it is reconciled for the first time after a restore are orphaned.
	// +optional
	HubRestored int64 `json:"hubRestored,omitempty"`
}

// AppliedWorkSpec identifies the Work of an inventory, and defines how its objects are deleted without the Work.
type AppliedWorkSpec struct {
	// Work is the Work that applied the objects.
	Work WorkReference `json:"work"`

	// FieldOwner is the field manager of the objects.
	FieldOwner string `json:"fieldOwner"`

	// Delete is the last known spec.delete of the Work.
	// +optional
	Delete DeletePolicy `json:"delete,omitempty"`

	// Executor is the ServiceAccount that applied the objects.
	// +optional
	Executor *Executor `json:"executor,omitempty"`
}

// AppliedResource is an object that the Work has applied, or is about to apply.
type AppliedResource struct {
	// ResourceIdentifier is the object.
	ResourceIdentifier `json:",inline"`

	// UID is the UID of the object. Empty: the first apply is not known to have succeeded.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// RanHash is the hash of the manifest of a Job with ttlSecondsAfterFinished that was created. If the Job does not
	// exist any more, it is not created again for the same manifest. Empty for all other objects.
	// +optional
	RanHash string `json:"ranHash,omitempty"`

	// Delete overrides spec.delete for this object.
	// +optional
	Delete DeleteAction `json:"delete,omitempty"`

	// Wave is the wave of the object. Objects are deleted from the highest wave to the lowest.
	// +optional
	Wave int32 `json:"wave,omitempty"`

	// OrphanedTime is when the agent observed that no Work contains the object any more, although no user requested its
	// deletion. The object stays unchanged until a Work contains it again, or it is released. Unset: the object is not
	// orphaned.
	// +optional
	OrphanedTime *metav1.Time `json:"orphanedTime,omitempty"`

	// Released is true if a user requested the deletion of the orphaned object with the annotation
	// work.muster.dev/release.
	// +optional
	Released bool `json:"released,omitempty"`
}

// DeletionRequest is an observed deletion of a Work that a user requested.
type DeletionRequest struct {
	// WorkUID is the UID of the Work that was deleted.
	WorkUID types.UID `json:"workUID"`
	// ObservedTime is when the agent observed the deletion.
	ObservedTime metav1.Time `json:"observedTime"`
}

// AppliedWorkStatus is the inventory.
type AppliedWorkStatus struct {
	// Resources are the objects of the inventory. An object is added before the first write to it.
	// +listType=atomic
	// +optional
	Resources []AppliedResource `json:"resources,omitempty"`

	// DeletionRequest is set before the first object is deleted because of the deletion of the Work. The agent then
	// continues to delete objects even if the Work disappears.
	// +optional
	DeletionRequest *DeletionRequest `json:"deletionRequest,omitempty"`

	// Conditions of the AppliedWork: Orphaned.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AppliedWork is the inventory of one Work, on the member. The deletion of an AppliedWork deletes no objects: while the
// Work exists the agent creates it again from the Work and from the marks on the objects.
//
// Objects whose Work is missing on the hub without a request to delete it are orphaned: they stay as they are, and a
// Work with the same namespace and name adopts them. To delete them, set the annotation work.muster.dev/release to the
// UID of the AppliedWork.
//
// It has no status subresource, so that an inventory is written by the request that creates it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=muster
// +kubebuilder:printcolumn:name="Hub",type=string,JSONPath=`.spec.work.hub`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.work.namespace`
// +kubebuilder:printcolumn:name="Work",type=string,JSONPath=`.spec.work.name`
// +kubebuilder:printcolumn:name="Orphaned",type=string,JSONPath=`.status.conditions[?(@.type=="Orphaned")].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Orphaned")].message`
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
