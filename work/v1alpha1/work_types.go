package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Limits of a Work. The API server's own limit is etcd's, 1.5 MiB for the whole object by default: manifests, options,
// status and bookkeeping have to fit into it together. With all three as long as they may be a Work has 1.38 MiB, and a
// test stores one.
const (
	// MaxManifests is the maximum number of manifests of a Work.
	MaxManifests = 1000
	// MaxManifestBytes is how long all manifests of a Work may be together, as JSON that is stored: see [StoredBytes].
	MaxManifestBytes = 768 << 10
	// MaxManifestDepth is how deep the maps and lists of a manifest may be nested.
	MaxManifestDepth = 100
	// MaxOptionBytes is how long all manifestOptions of a Work may be together, as JSON.
	MaxOptionBytes = 128 << 10
	// MaxNameLength is the maximum length of the name of an object, in bytes.
	MaxNameLength = 4096
	// MaxStatusBytes is the maximum size of the status of a Work, as JSON in bytes; see [WorkStatus.Truncated].
	MaxStatusBytes = 512 << 10
)

// WorkSpec is what the hub wants on a member.
type WorkSpec struct {
	// Manifests are the objects. Each has apiVersion, kind, metadata.name and, if its kind is namespaced, a namespace. No
	// two may be the same object. Their order does not matter.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Manifests []Manifest `json:"manifests"`

	// Apply defines how the manifests are applied.
	// +kubebuilder:default={}
	// +optional
	Apply ApplyPolicy `json:"apply,omitempty"`

	// ManifestOptions override options for the manifests that they select. If several select a manifest, the last one has
	// precedence, field by field.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +optional
	ManifestOptions []ManifestOption `json:"manifestOptions,omitempty"`

	// Waves define how each wave of manifests waits for the previous one.
	// +kubebuilder:default={}
	// +optional
	Waves WavePolicy `json:"waves,omitempty"`

	// Delete defines what happens to the objects when the Work is deleted, or no longer contains their manifests.
	// +kubebuilder:default={}
	// +optional
	Delete DeletePolicy `json:"delete,omitempty"`

	// Executor is the ServiceAccount of the member with whose permissions the objects are applied, read and deleted.
	// Unset: the agent uses its own permissions, if its policy allows that.
	// +optional
	Executor *Executor `json:"executor,omitempty"`

	// TTLSecondsAfterCompletion is how long the Work is kept after its completion: all its Jobs, and all pods that must
	// end, have succeeded. Then it is deleted with its delete policy. Unset, or without such objects: the Work is kept.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterCompletion *int32 `json:"ttlSecondsAfterCompletion,omitempty"`

	// Suspend stops all writes on the member except a clean-up. The status is still updated.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// Manifest is one object, in the form that kubectl accepts.
// +kubebuilder:validation:XEmbeddedResource
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="has(self.metadata) && has(self.metadata.name) && size(self.metadata.name) > 0",message="metadata.name is required: an object without a fixed name cannot be applied twice",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.generateName) || size(self.metadata.generateName) == 0",message="metadata.generateName cannot be used: it would make another object each time; set metadata.name",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('work.muster.dev/')",message="a Work cannot carry objects of work.muster.dev: apply them to the cluster that they are for",reason=FieldValueForbidden
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// ApplyMode defines how an object is applied.
// +kubebuilder:validation:Enum=ServerSideApply;CreateOnly;Observe;ReportDiff
type ApplyMode string

const (
	// ServerSideApply creates the object, and keeps the fields of the manifest in their desired state.
	ServerSideApply ApplyMode = "ServerSideApply"
	// CreateOnly creates the object if it does not exist, and never changes it. An object that existed before is not
	// changed, and not deleted with the Work.
	CreateOnly ApplyMode = "CreateOnly"
	// Observe only reports the readiness and the feedback of the object. The manifest needs only apiVersion, kind and
	// names.
	Observe ApplyMode = "Observe"
	// ReportDiff reports the differences between the object and the manifest, in addition to what Observe reports.
	ReportDiff ApplyMode = "ReportDiff"
)

// Takeover defines what happens if an object exists that no Work has applied.
// +kubebuilder:validation:Enum=Never;IfNoDiff;Always
type Takeover string

const (
	// TakeoverNever does not change the object, and reports that it exists.
	TakeoverNever Takeover = "Never"
	// TakeoverIfNoDiff takes over the object if all fields of the manifest have the same values.
	TakeoverIfNoDiff Takeover = "IfNoDiff"
	// TakeoverAlways takes over the object. The Work owns it from then on: the object is deleted with the Work.
	TakeoverAlways Takeover = "Always"
)

// DriftPolicy defines what happens if a user on the member changes an applied object.
// +kubebuilder:validation:Enum=Correct;Report;Ignore
type DriftPolicy string

const (
	// DriftCorrect restores the object to its manifest immediately.
	DriftCorrect DriftPolicy = "Correct"
	// DriftReport keeps the change and reports it. A change of the manifest is applied, unless another manager has set its
	// fields: then the whole object is not changed.
	DriftReport DriftPolicy = "Report"
	// DriftIgnore leaves edits as they are until the manifest changes. A changed manifest is applied, and replaces the
	// edits of its fields. An object that was deleted is created again.
	DriftIgnore DriftPolicy = "Ignore"
)

// AdditionPolicy defines what happens to additions of other clients to an object: fields, keys of maps and items of
// lists that the manifest does not have, such as a key of a ConfigMap or a container of a Deployment.
//
// Defaults, changes by admission webhooks, status, changes by components of Kubernetes, by another Work or through a
// subresource such as scale, and fields in ignoredFields are not additions. Of the metadata, only labels and
// annotations are checked.
// +kubebuilder:validation:Enum=Keep;Report;Remove
type AdditionPolicy string

const (
	// AdditionsKeep accepts additions.
	AdditionsKeep AdditionPolicy = "Keep"
	// AdditionsReport leaves additions on the object and reports them: condition Applied is False with the reason Drifted.
	AdditionsReport AdditionPolicy = "Report"
	// AdditionsRemove removes additions. A client that adds the same field again and again is reported as Contested.
	AdditionsRemove AdditionPolicy = "Remove"
)

// ApplyPolicy says how manifests are applied.
type ApplyPolicy struct {
	// Mode is what is done to the objects.
	// +kubebuilder:default=ServerSideApply
	// +optional
	Mode ApplyMode `json:"mode,omitempty"`

	// Takeover says what happens to objects that are there already and belong to no Work. Objects of another Work are
	// shared where both want the same of them, and are a conflict where they do not; this has no say in that.
	// +kubebuilder:default=Never
	// +optional
	Takeover Takeover `json:"takeover,omitempty"`

	// Drift says what happens to edits made on the member.
	// +kubebuilder:default=Correct
	// +optional
	Drift DriftPolicy `json:"drift,omitempty"`

	// Additions says what happens to what others add to an object. Empty: Keep.
	// +optional
	Additions AdditionPolicy `json:"additions,omitempty"`

	// KeepConflicts leaves alone what another field manager owns, and reports a conflict. False: the fields of the
	// manifest are taken from everybody but other Works, as with kubectl apply --server-side --force-conflicts. With true
	// an edit by hand is such a conflict, and is not corrected.
	// +optional
	KeepConflicts bool `json:"keepConflicts,omitempty"`

	// Recreate says what happens when a manifest changes a field that cannot be changed, such as the data of an
	// immutable Secret, the roleRef of a binding, the template of a Job or the volumeClaimTemplates of a StatefulSet.
	// Empty: Never.
	// +optional
	Recreate RecreatePolicy `json:"recreate,omitempty"`

	// FieldOwner is the name of the field manager. Empty: one of this Work alone, which begins with "muster-work-". It
	// cannot change, since the old owner's fields would stay.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^([!-~]([ -~]*[!-~])?)?$`
	// +optional
	FieldOwner string `json:"fieldOwner,omitempty"`
}

// RecreatePolicy says whether an object is deleted and created again.
//
// +kubebuilder:validation:Enum=Never;IfImmutable
type RecreatePolicy string

const (
	// RecreateNever reports the manifest as rejected and leaves the object as it is.
	RecreateNever RecreatePolicy = "Never"
	// RecreateIfImmutable deletes the object, with all that belongs to it, and creates it from the manifest when it is
	// gone. What the object holds is lost. Objects that another Work or owner has as well are not deleted.
	RecreateIfImmutable RecreatePolicy = "IfImmutable"
)

// ManifestOption treats the manifests that it selects unlike the others.
type ManifestOption struct {
	// Select says which manifests are meant.
	Select ManifestSelector `json:"select"`

	// Mode, instead of spec.apply.mode.
	// +optional
	Mode ApplyMode `json:"mode,omitempty"`

	// Takeover, instead of spec.apply.takeover.
	// +optional
	Takeover Takeover `json:"takeover,omitempty"`

	// Drift, instead of spec.apply.drift.
	// +optional
	Drift DriftPolicy `json:"drift,omitempty"`

	// Additions, instead of spec.apply.additions.
	// +optional
	Additions AdditionPolicy `json:"additions,omitempty"`

	// Recreate, instead of spec.apply.recreate.
	// +optional
	Recreate RecreatePolicy `json:"recreate,omitempty"`

	// Delete, instead of spec.delete.action.
	// +optional
	Delete DeleteAction `json:"delete,omitempty"`

	// IgnoredFields are set when the object is created and are then left to others, such as the replicas of a
	// Deployment that is scaled automatically. They are written as conflicts and differences are: .spec.replicas,
	// .metadata.annotations["example.com/note"], .spec.template.spec.containers[name="web"].image, .spec.list[0]. [*]
	// stands for all items of a list or all fields of a map, as in .spec.template.spec.containers[*].image.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=512
	// +optional
	IgnoredFields []string `json:"ignoredFields,omitempty"`

	// Readiness says when the object is ready. Unset: what the kind is known to mean by it.
	// +optional
	Readiness *ReadinessRule `json:"readiness,omitempty"`

	// Feedback says which values of the object the status shall have.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Feedback []FeedbackRule `json:"feedback,omitempty"`

	// FeedbackWellKnown adds the values that are well known for the kind, such as the replicas of a Deployment. A
	// rule in feedback goes before a well-known value of the same name. Where one option has said true, a later one cannot
	// take it back.
	// +optional
	FeedbackWellKnown bool `json:"feedbackWellKnown,omitempty"`

	// Wave moves the manifest into another wave, from -100 to 100; lower ones come first. Unset: by its kind, from 0 for
	// namespaces and definitions of custom resources to 50 for webhooks.
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	// +optional
	Wave *int32 `json:"wave,omitempty"`
}

// ManifestSelector selects manifests by what it names. A field that is not set selects any.
//
// +kubebuilder:validation:MinProperties=1
type ManifestSelector struct {
	// Group is the API group of the manifests; "" is the core group.
	// +optional
	Group *string `json:"group,omitempty"`
	// Kind of the manifests.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Kind string `json:"kind,omitempty"`
	// Namespace of the manifests.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the manifests.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Name string `json:"name,omitempty"`
}

// ReadinessRule is a rule for the readiness of an object.
type ReadinessRule struct {
	// CEL is an expression over object that is true when the object is ready, such as
	// object.status.phase == "Running". While it is false, or fails, the object is progressing.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	CEL string `json:"cel"`
}

// FeedbackRule reports one value of an object.
type FeedbackRule struct {
	// Name is the name of the reported value: letters, digits, '-', '_' or '.', with a letter or digit at either end.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// JSONPath of the value, such as .status.loadBalancer.ingress[0].ip. It must not reach into the data of a Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	JSONPath string `json:"jsonPath"`
}

// WavePolicy defines how a wave waits for the previous one. The next wave always waits until namespaces and definitions
// of custom resources can be used.
type WavePolicy struct {
	// WaitForReadiness makes each wave wait until all objects of the previous one are ready.
	// +optional
	WaitForReadiness bool `json:"waitForReadiness,omitempty"`

	// TimeoutSeconds is how long a wave may take to become ready before the Work is reported as degraded. The next wave is
	// applied when the wave becomes ready later.
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// DeletePolicy defines how objects are deleted.
type DeletePolicy struct {
	// Action defines what happens to the objects. An object with another owner, such as another Work, always stays.
	// +kubebuilder:default=Delete
	// +optional
	Action DeleteAction `json:"action,omitempty"`

	// Propagation defines when the dependents of a deleted object are deleted: Foreground deletes them before the object,
	// Background after it.
	// +kubebuilder:default=Foreground
	// +kubebuilder:validation:Enum=Foreground;Background
	// +optional
	Propagation metav1.DeletionPropagation `json:"propagation,omitempty"`
}

// Work contains the desired objects of one member. It is in the member's namespace.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=muster
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Work struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="(has(self.apply.fieldOwner) ? self.apply.fieldOwner : '') == (has(oldSelf.apply.fieldOwner) ? oldSelf.apply.fieldOwner : '')",message="apply.fieldOwner cannot change, since the fields of the old owner would stay: delete the Work with delete.action Orphan and make it anew with apply.takeover Always",fieldPath=".apply.fieldOwner"
	Spec WorkSpec `json:"spec"`
	// +optional
	Status WorkStatus `json:"status,omitempty"`
}

// WorkList is a list of Works.
//
// +kubebuilder:object:root=true
type WorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Work `json:"items"`
}
