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
	// UID of the Work. A Work that is created again with the same name has another UID, and adopts the inventory.
	UID types.UID `json:"uid"`
	// Generation is the generation of the Work at the last write of this AppliedWork. If a Work with the same UID has a
	// lower generation, the hub was restored to an earlier state.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// HubRestored is the epoch that the hub began after its last restore, as known at the last write of this AppliedWork.
	// Zero: no restore was observed. When the agent first reconciles the Work after a restore, it orphans the objects that
	// the Work does not contain.
	// +optional
	HubRestored int64 `json:"hubRestored,omitempty"`
}

// AppliedWorkSpec identifies the Work of an inventory, and defines how the objects are deleted if the Work does not
// exist any more.
type AppliedWorkSpec struct {
	// Work is the Work that applied the objects.
	Work WorkReference `json:"work"`

	// FieldOwner is the name of the field manager that applied the objects.
	FieldOwner string `json:"fieldOwner"`

	// Delete is the last known spec.delete of the Work.
	// +optional
	Delete DeletePolicy `json:"delete,omitempty"`

	// Executor is the ServiceAccount that applied the objects.
	// +optional
	Executor *Executor `json:"executor,omitempty"`
}

// AppliedResource is an object that the agent has applied, or is about to apply, for the Work.
type AppliedResource struct {
	// ResourceIdentifier identifies the object.
	ResourceIdentifier `json:",inline"`

	// UID is the UID of the object. Empty: the first apply has not succeeded, or its result is unknown.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// RanHash is the hash of the manifest from which a Job with ttlSecondsAfterFinished was created. If the Job does not
	// exist any more, the agent does not create it again from the same manifest. Empty for all other objects.
	// +optional
	RanHash string `json:"ranHash,omitempty"`

	// Delete overrides spec.delete.action for this object. Empty: spec.delete.action applies.
	// +optional
	Delete DeleteAction `json:"delete,omitempty"`

	// Wave is the wave of the object. Objects are deleted from the highest wave to the lowest.
	// +optional
	Wave int32 `json:"wave,omitempty"`

	// OrphanedTime is the time at which the agent observed that no Work contains the object any more, although no user
	// requested its deletion. The object stays unchanged until a Work contains it again, or it is released. Unset: the
	// object is not orphaned.
	// +optional
	OrphanedTime *metav1.Time `json:"orphanedTime,omitempty"`

	// Released is true if a user requested the deletion of the orphaned object with the annotation
	// work.muster.dev/release on the AppliedWork.
	// +optional
	Released bool `json:"released,omitempty"`
}

// DeletionRequest records that the agent observed the deletion of a Work, and that a user requested this deletion.
type DeletionRequest struct {
	// WorkUID is the UID of the Work that was deleted.
	WorkUID types.UID `json:"workUID"`
	// ObservedTime is the time at which the agent observed the deletion.
	ObservedTime metav1.Time `json:"observedTime"`
}

// AppliedWorkStatus contains the inventory of a Work.
type AppliedWorkStatus struct {
	// Resources are the objects of the inventory. The agent adds an object before its first write to the object.
	// +listType=atomic
	// +optional
	Resources []AppliedResource `json:"resources,omitempty"`

	// DeletionRequest is set before the first object is deleted because of the deletion of the Work. The agent then
	// continues to delete objects even if the Work disappears.
	// +optional
	DeletionRequest *DeletionRequest `json:"deletionRequest,omitempty"`

	// Conditions of the AppliedWork: Orphaned, which exists only while the inventory has orphaned objects.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AppliedWork is the inventory of one Work on the member. The deletion of an AppliedWork deletes no objects. While the
// Work exists, the agent creates the AppliedWork again from the Work and from its marks on the objects.
//
// If a Work does not exist on the hub and no request to delete it was observed, its objects are orphaned. Orphaned
// objects stay unchanged, and a Work with the same namespace and name adopts them. To delete them, set the annotation
// work.muster.dev/release to the UID of the AppliedWork.
//
// AppliedWork has no status subresource: the request that creates it also writes the inventory.
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
