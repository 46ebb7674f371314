package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Limits of a Work. The API server's own limit is etcd's, 1.5 MiB for the whole object by default: manifests, options,
// status and bookkeeping have to fit into it together. With all three as long as they may be a Work has 1.38 MiB, and a
// test stores one.
const (
	// MaxManifests is how many manifests a Work may have.
	MaxManifests = 1000
	// MaxManifestBytes is how long all manifests of a Work may be together, as JSON that is stored: see [StoredBytes].
	MaxManifestBytes = 768 << 10
	// MaxManifestDepth is how deep the maps and lists of a manifest may be nested.
	MaxManifestDepth = 100
	// MaxOptionBytes is how long all manifestOptions of a Work may be together, as JSON.
	MaxOptionBytes = 128 << 10
	// MaxStatusBytes is how long the status of a Work may get, as JSON; see [WorkStatus.Truncated].
	MaxStatusBytes = 512 << 10
)

// WorkSpec is what the hub wants on a member.
type WorkSpec struct {
	// Manifests are the objects. Each has apiVersion, kind and metadata.name, a namespace where its kind is
	// namespaced, and no two are the same object. Their order does not matter.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Manifests []Manifest `json:"manifests"`

	// Apply says how the manifests are applied.
	// +kubebuilder:default={}
	// +optional
	Apply ApplyPolicy `json:"apply,omitempty"`

	// ManifestOptions say how some of the manifests are to be treated unlike the others. Where several select a
	// manifest, the later one wins, field by field.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +optional
	ManifestOptions []ManifestOption `json:"manifestOptions,omitempty"`

	// Waves say how one wave of manifests waits for the one before.
	// +kubebuilder:default={}
	// +optional
	Waves WavePolicy `json:"waves,omitempty"`

	// Delete says what becomes of the objects when the Work is deleted, or no longer has their manifests.
	// +kubebuilder:default={}
	// +optional
	Delete DeletePolicy `json:"delete,omitempty"`

	// Executor applies, reads and deletes the objects in the name of this ServiceAccount of the member, which can do
	// no more than it may. Unset: the agent's own permissions count, where the agent allows that.
	// +optional
	Executor *Executor `json:"executor,omitempty"`

	// TTLSecondsAfterCompletion deletes the Work, as its delete policy says, this long after it has completed: all its
	// Jobs, and pods that are to end, have succeeded. Unset, or without such objects: it is kept.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterCompletion *int32 `json:"ttlSecondsAfterCompletion,omitempty"`

	// Suspend stops all writes on the member but a clean-up, while the status is still kept up to date.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// Manifest is one object, as one would write it for kubectl.
//
// +kubebuilder:validation:XEmbeddedResource
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="has(self.metadata) && has(self.metadata.name) && size(self.metadata.name) > 0",message="metadata.name is required: an object without a fixed name cannot be applied twice",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.generateName) || size(self.metadata.generateName) == 0",message="metadata.generateName cannot be used: it would make another object each time; set metadata.name",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('work.muster.dev/')",message="a Work cannot carry objects of work.muster.dev: apply them to the cluster that they are for",reason=FieldValueForbidden
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// ApplyMode says what is done to bring an object to what its manifest says.
//
// +kubebuilder:validation:Enum=ServerSideApply;CreateOnly;Observe;ReportDiff
type ApplyMode string

const (
	// ServerSideApply creates the object, and keeps the fields of the manifest as they are there.
	ServerSideApply ApplyMode = "ServerSideApply"
	// CreateOnly creates the object where it is missing, and never changes it. One that is there already is left alone,
	// and is not deleted with the Work.
	CreateOnly ApplyMode = "CreateOnly"
	// Observe only reports on the object: its readiness and its feedback. The manifest needs no more than names.
	Observe ApplyMode = "Observe"
	// ReportDiff only reports what differs between object and manifest, beside what Observe does.
	ReportDiff ApplyMode = "ReportDiff"
)

// Takeover says what happens when an object is there that no Work has applied.
//
// +kubebuilder:validation:Enum=Never;IfNoDiff;Always
type Takeover string

const (
	// TakeoverNever leaves the object alone and reports that it is in the way.
	TakeoverNever Takeover = "Never"
	// TakeoverIfNoDiff takes the object over if it has every field as the manifest says.
	TakeoverIfNoDiff Takeover = "IfNoDiff"
	// TakeoverAlways takes the object over. From then on the Work owns it: it is deleted with it.
	TakeoverAlways Takeover = "Always"
)

// DriftPolicy says what happens when a user on the member edits an applied object.
//
// +kubebuilder:validation:Enum=Correct;Report;Ignore
type DriftPolicy string

const (
	// DriftCorrect brings the object back to its manifest at once.
	DriftCorrect DriftPolicy = "Correct"
	// DriftReport leaves the edit and reports it. A change of the manifest is applied, unless another
	// manager has set its fields: then the whole object stays as it is.
	DriftReport DriftPolicy = "Report"
	// DriftIgnore leaves edits as they are until the manifest changes. A changed manifest is applied, and replaces the
	// edits of its fields. An object that was deleted is created again.
	DriftIgnore DriftPolicy = "Ignore"
)

// AdditionPolicy says what happens to what others add to an object: fields, keys of maps and items of lists that the
// manifest does not have, such as a key of a ConfigMap or a container of a Deployment.
//
// What defaults and admission webhooks add is none, nor is status, nor what Kubernetes' own components, another Work or
// a subresource such as scale have set, nor the fields in ignoredFields. Of the metadata, only labels and annotations
// are checked.
//
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
	// Group of the manifests' API; "" is the core one.
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

// FeedbackRule takes one value from an object.
type FeedbackRule struct {
	// Name that the value is reported under: letters, digits, '-', '_' or '.', with a letter or digit at either end.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// JSONPath of the value, such as .status.loadBalancer.ingress[0].ip. It must not reach into the data of a Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	JSONPath string `json:"jsonPath"`
}

// WavePolicy says how one wave waits for the one before. Namespaces and definitions of custom resources are always
// waited for, until they can be used.
type WavePolicy struct {
	// WaitForReadiness has each wave wait until all objects of the one before are ready.
	// +optional
	WaitForReadiness bool `json:"waitForReadiness,omitempty"`

	// TimeoutSeconds is how long a wave may take to be ready until the Work is reported as degraded. It goes on when
	// the wave is ready after all.
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// DeletePolicy says how objects are taken back.
type DeletePolicy struct {
	// Action is what becomes of the objects. An object that others own as well, such as another Work, always stays
	// with them.
	// +kubebuilder:default=Delete
	// +optional
	Action DeleteAction `json:"action,omitempty"`

	// Propagation is what happens to the dependents of an object that is deleted: Foreground deletes them before it,
	// Background after it.
	// +kubebuilder:default=Foreground
	// +kubebuilder:validation:Enum=Foreground;Background
	// +optional
	Propagation metav1.DeletionPropagation `json:"propagation,omitempty"`
}

// Work is what the hub wants on one member. It lives in the member's namespace.
//
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
