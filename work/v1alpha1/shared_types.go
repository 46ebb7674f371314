package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Finalizer, labels and annotations of Works, AppliedWorks and applied objects.
const (
	// Finalizer keeps a deleted Work until the clean-up on the member is complete.
	Finalizer = GroupName + "/cleanup"
	// AppliedLabel has the value "true" on every object that an agent applied for a Work. Agents watch objects with this
	// label.
	AppliedLabel = GroupName + "/applied"
	// DisabledAnnotation on an object of the member prevents that Works apply or delete the object. An administrator of
	// the member sets it to "Apply", "Delete" or "Apply,Delete". Other values have no effect. The status of the Work
	// reports the annotation.
	DisabledAnnotation = GroupName + "/disabled"
	// HubLabel on an AppliedWork is the name of the hub of its Work. It distinguishes the AppliedWorks of a member that
	// has several hubs.
	HubLabel = GroupName + "/hub"
	// GeneratedByAnnotation on a Work names the object from which a controller generates the Work, such as
	// "WorkSet shop/web". The agent handles the deletion of such a Work as a request to delete the objects only if the
	// Work has [DeletionRequestedByAnnotation]. Otherwise, the agent keeps the objects, and the Work that the controller
	// creates again adopts them.
	GeneratedByAnnotation = GroupName + "/generated-by"
	// DeletionRequestedByAnnotation is set on a generated Work by its controller before the controller deletes the Work.
	// Its value is the UID of the object on whose behalf the Work is deleted.
	DeletionRequestedByAnnotation = GroupName + "/deletion-requested-by"
	// ReleaseAnnotation on an AppliedWork requests that the agent deletes the orphaned objects of the inventory. Its value
	// must be the UID of the AppliedWork. Any other value has no effect.
	ReleaseAnnotation = GroupName + "/release"
)

// ResourceIdentifier identifies an object on a member. The maximum lengths are greater than those of valid names, so
// that the status can also report a manifest with invalid names.
type ResourceIdentifier struct {
	// Group of the object's API. Empty: the core group.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Group string `json:"group,omitempty"`
	// Version of the object's API.
	// +kubebuilder:validation:MaxLength=1024
	Version string `json:"version"`
	// Kind of the object.
	// +kubebuilder:validation:MaxLength=1024
	Kind string `json:"kind"`
	// Resource is the plural name of the kind. Empty: the member does not serve the kind.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Resource string `json:"resource,omitempty"`
	// Namespace of the object. Empty: the object is cluster-scoped.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	// +kubebuilder:validation:MaxLength=4096
	Name string `json:"name"`
}

// GroupVersionKind returns the group, version and kind of the object.
func (r ResourceIdentifier) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// String returns a readable form, such as "apps/Deployment shop/web" or "Namespace shop".
func (r ResourceIdentifier) String() string {
	kind, name := r.Kind, r.Name
	if r.Group != "" {
		kind = r.Group + "/" + kind
	}
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return kind + " " + name
}

// DeleteAction defines what happens to an object that a Work no longer contains.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeleteAction string

const (
	// DeleteObject deletes the object from the member.
	DeleteObject DeleteAction = "Delete"
	// OrphanObject keeps the object on the member, without an owner.
	OrphanObject DeleteAction = "Orphan"
)

// Executor identifies the ServiceAccount on the member whose permissions the agent uses to apply, read and delete the
// objects of a Work.
type Executor struct {
	// Namespace of the ServiceAccount.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace"`
	// Name of the ServiceAccount.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}
