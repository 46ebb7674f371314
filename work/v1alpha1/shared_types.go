package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names that the agent puts on what it touches.
const (
	// Finalizer keeps a Work until the member has no object of the Work any more.
	Finalizer = GroupName + "/cleanup"
	// AppliedLabel has the value "true" on every object that a Work applied. Agents watch objects with this label.
	AppliedLabel = GroupName + "/applied"
	// DisabledAnnotation on an object of the member prevents changes by Works. The member's administrator sets it to
	// "Apply", "Delete" or "Apply,Delete". The Work reports it. Other values have no effect.
	DisabledAnnotation = GroupName + "/disabled"
	// HubLabel on an AppliedWork contains the name of the hub of its Work, so that one member can serve several hubs.
	HubLabel = GroupName + "/hub"
	// GeneratedByAnnotation is on a Work that a controller generates, and names the object that it is generated from, such
	// as "WorkSet shop/web". The deletion of such a Work is a request only with [DeletionRequestedByAnnotation]: otherwise
	// the agent keeps the objects, and the Work that the controller creates again adopts them.
	GeneratedByAnnotation = GroupName + "/generated-by"
	// DeletionRequestedByAnnotation is set on a Work, before it is deleted, by the controller that deletes it. Its value
	// is the UID of the object on whose behalf the Work is deleted.
	DeletionRequestedByAnnotation = GroupName + "/deletion-requested-by"
	// ReleaseAnnotation on an AppliedWork asks the agent to delete the orphaned objects of its inventory. Its value must
	// be the UID of the AppliedWork; any other value has no effect.
	ReleaseAnnotation = GroupName + "/release"
)

// ResourceIdentifier identifies an object on a member. The limits also admit what a manifest names and no API server
// accepts, so that one invalid manifest does not prevent the report about the others.
type ResourceIdentifier struct {
	// Group of the object's API, empty for the core one.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Group string `json:"group,omitempty"`
	// Version of the object's API.
	// +kubebuilder:validation:MaxLength=1024
	Version string `json:"version"`
	// Kind of the object.
	// +kubebuilder:validation:MaxLength=1024
	Kind string `json:"kind"`
	// Resource is the plural name of the kind; empty while the member does not know the kind.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Resource string `json:"resource,omitempty"`
	// Namespace of the object, empty where it is cluster-scoped.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	// +kubebuilder:validation:MaxLength=4096
	Name string `json:"name"`
}

// GroupVersionKind of the object.
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
	// OrphanObject keeps the object unchanged, without an owner.
	OrphanObject DeleteAction = "Orphan"
)

// Executor is the ServiceAccount on the member with whose permissions a Work is applied.
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
