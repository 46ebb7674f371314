package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Limits of a Work. By default, etcd limits an object to 1.5 MiB, which includes manifests, options, status and
// metadata. A Work whose manifests, options and status all have their maximum size needs 1.38 MiB; a test stores one.
const (
	// MaxManifests is the maximum number of manifests of a Work.
	MaxManifests = 1000
	// MaxManifestBytes is the maximum total size of the manifests of a Work, in bytes of the stored JSON; see
	// [StoredBytes].
	MaxManifestBytes = 768 << 10
	// MaxManifestDepth is the maximum nesting depth of the maps and lists of a manifest.
	MaxManifestDepth = 100
	// MaxOptionBytes is the maximum total size of the manifestOptions of a Work, as JSON in bytes.
	MaxOptionBytes = 128 << 10
	// MaxNameLength is the maximum length of the name of an object, in bytes.
	MaxNameLength = 4096
	// MaxStatusBytes is the maximum size of the status of a Work, as JSON in bytes; see [WorkStatus.Truncated].
	MaxStatusBytes = 512 << 10
)

// WorkSpec describes the desired objects on a member, and how the agent applies and deletes them.
type WorkSpec struct {
	// Manifests are the desired objects. Each must have apiVersion, kind, metadata.name and, if its kind is namespaced,
	// metadata.namespace. Two manifests must not describe the same object. The order has no effect. At most 1000
	// manifests, with at most 768 KiB as JSON in total.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Manifests []Manifest `json:"manifests"`

	// Apply defines how the manifests are applied.
	// +kubebuilder:default={}
	// +optional
	Apply ApplyPolicy `json:"apply,omitempty"`

	// ManifestOptions override apply and delete for the manifests that they select. If several entries select a manifest,
	// the last entry has precedence, field by field. At most 200 entries, with at most 128 KiB as JSON in total.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +optional
	ManifestOptions []ManifestOption `json:"manifestOptions,omitempty"`

	// Waves define how each wave of manifests waits for the previous one.
	// +kubebuilder:default={}
	// +optional
	Waves WavePolicy `json:"waves,omitempty"`

	// Delete defines what happens to an object when the Work is deleted, or no longer contains its manifest.
	// +kubebuilder:default={}
	// +optional
	Delete DeletePolicy `json:"delete,omitempty"`

	// Executor is the ServiceAccount of the member whose permissions the agent uses to apply, read and delete the objects.
	// Unset: the agent uses its own permissions, if its policy allows that.
	// +optional
	Executor *Executor `json:"executor,omitempty"`

	// TTLSecondsAfterCompletion is the time in seconds for which the Work is kept after its completion. A Work is complete
	// when all its Jobs, and all Pods that must terminate, have succeeded. After this time, the Work is deleted, and its
	// delete policy applies. Unset, or if the Work has no such objects: the Work is kept.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterCompletion *int32 `json:"ttlSecondsAfterCompletion,omitempty"`

	// Suspend stops all writes of the agent on the member, except the clean-up after the deletion of the Work. The agent
	// still updates the status. Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// Manifest is one Kubernetes object, in the form that kubectl apply accepts.
// +kubebuilder:validation:XEmbeddedResource
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="has(self.metadata) && has(self.metadata.name) && size(self.metadata.name) > 0",message="metadata.name is required: an object without a fixed name cannot be applied twice",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.generateName) || size(self.metadata.generateName) == 0",message="metadata.generateName cannot be used, because each apply would create another object: set metadata.name",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('work.muster.dev/')",message="a Work cannot carry objects of work.muster.dev: apply them to their cluster directly",reason=FieldValueForbidden
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// ApplyMode defines how an object is applied.
// +kubebuilder:validation:Enum=ServerSideApply;CreateOnly;Observe;ReportDiff
type ApplyMode string

const (
	// ServerSideApply creates the object, and keeps the fields of the manifest in their desired state by server-side
	// apply. It is the default.
	ServerSideApply ApplyMode = "ServerSideApply"
	// CreateOnly creates the object if it does not exist, and never changes it. An object that existed before is neither
	// changed nor deleted with the Work.
	CreateOnly ApplyMode = "CreateOnly"
	// Observe only reports the readiness and the feedback of the object. The manifest needs only apiVersion, kind,
	// metadata.name and metadata.namespace.
	Observe ApplyMode = "Observe"
	// ReportDiff reports the same as Observe and the differences between the object and the manifest.
	ReportDiff ApplyMode = "ReportDiff"
)

// Takeover defines what happens if the object of a manifest exists and no Work has applied it.
// +kubebuilder:validation:Enum=Never;IfNoDiff;Always
type Takeover string

const (
	// TakeoverNever does not change the object, and reports that it exists. It is the default.
	TakeoverNever Takeover = "Never"
	// TakeoverIfNoDiff takes over the object if all fields of the manifest have the same values in the object. Otherwise,
	// the object is not changed, and the differences are reported.
	TakeoverIfNoDiff Takeover = "IfNoDiff"
	// TakeoverAlways takes over the object. The Work owns it from then on: the object is deleted with the Work.
	TakeoverAlways Takeover = "Always"
)

// DriftPolicy defines what happens if another client changes an applied object on the member.
// +kubebuilder:validation:Enum=Correct;Report;Ignore
type DriftPolicy string

const (
	// DriftCorrect restores the fields of the manifest immediately. It is the default.
	DriftCorrect DriftPolicy = "Correct"
	// DriftReport keeps the change and reports it. A changed manifest is applied, unless another field manager owns one of
	// its fields: then no field of the object is changed.
	DriftReport DriftPolicy = "Report"
	// DriftIgnore keeps the change until the manifest changes. A changed manifest is applied, and overwrites the changes
	// of its fields. A deleted object is created again.
	DriftIgnore DriftPolicy = "Ignore"
)

// AdditionPolicy defines what happens to additions that other clients make to an object. Additions are fields, keys of
// maps and items of lists that the manifest does not have, such as a key of a ConfigMap or a container of a Deployment.
//
// Not additions are: defaults, the status, fields in ignoredFields, and changes by admission webhooks, by components of
// Kubernetes, by another Work or through a subresource such as scale. Of the metadata, only labels and annotations are
// checked.
// +kubebuilder:validation:Enum=Keep;Report;Remove
type AdditionPolicy string

const (
	// AdditionsKeep keeps additions and does not report them. It is the default.
	AdditionsKeep AdditionPolicy = "Keep"
	// AdditionsReport keeps additions and reports them: the condition Applied is False with reason Drifted.
	AdditionsReport AdditionPolicy = "Report"
	// AdditionsRemove removes additions. If a client adds the same field repeatedly, the reason Contested is reported.
	AdditionsRemove AdditionPolicy = "Remove"
)

// ApplyPolicy defines how manifests are applied.
type ApplyPolicy struct {
	// Mode is ServerSideApply, CreateOnly, Observe or ReportDiff. Default: ServerSideApply.
	// +kubebuilder:default=ServerSideApply
	// +optional
	Mode ApplyMode `json:"mode,omitempty"`

	// Takeover defines what happens to objects that exist and that no Work has applied: Never, IfNoDiff or Always.
	// Default: Never. It does not apply to objects of another Work: these are shared if both Works set the same values,
	// and are otherwise reported as a conflict.
	// +kubebuilder:default=Never
	// +optional
	Takeover Takeover `json:"takeover,omitempty"`

	// Drift defines what happens to changes that other clients make on the member: Correct, Report or Ignore. Default:
	// Correct.
	// +kubebuilder:default=Correct
	// +optional
	Drift DriftPolicy `json:"drift,omitempty"`

	// Additions defines what happens to fields that other clients add to an object: Keep, Report or Remove. Empty: Keep.
	// +optional
	Additions AdditionPolicy `json:"additions,omitempty"`

	// KeepConflicts defines what happens if another field manager owns fields of the manifest. True: the object is not
	// changed, and a conflict is reported. This includes fields that a user changed, so such drift is not corrected.
	// False: the Work takes the ownership of the fields, except from other Works, as with kubectl apply --server-side
	// --force-conflicts. Default: false.
	// +optional
	KeepConflicts bool `json:"keepConflicts,omitempty"`

	// Recreate defines what happens if a manifest changes an immutable field, such as the data of an immutable Secret, the
	// roleRef of a RoleBinding, the template of a Job or the volumeClaimTemplates of a StatefulSet: Never or IfImmutable.
	// Empty: Never.
	// +optional
	Recreate RecreatePolicy `json:"recreate,omitempty"`

	// FieldOwner is the name of the field manager that applies the objects. Empty: a name that is unique to this Work and
	// begins with "muster-work-". The field is immutable, because the fields of the old field manager would stay.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^([!-~]([ -~]*[!-~])?)?$`
	// +optional
	FieldOwner string `json:"fieldOwner,omitempty"`
}

// RecreatePolicy defines whether an object is deleted and created again if its manifest changes an immutable field.
//
// +kubebuilder:validation:Enum=Never;IfImmutable
type RecreatePolicy string

const (
	// RecreateNever reports the manifest as rejected, and does not change the object. It is the default.
	RecreateNever RecreatePolicy = "Never"
	// RecreateIfImmutable deletes the object and its dependents, waits until the object does not exist any more, and
	// creates it from the manifest. The data of the object are lost. An object that has another owner, such as another
	// Work, is not deleted.
	RecreateIfImmutable RecreatePolicy = "IfImmutable"
)

// ManifestOption contains options for the manifests that it selects.
type ManifestOption struct {
	// Select selects the manifests to which this option applies.
	Select ManifestSelector `json:"select"`

	// Mode overrides spec.apply.mode. Empty: no override.
	// +optional
	Mode ApplyMode `json:"mode,omitempty"`

	// Takeover overrides spec.apply.takeover. Empty: no override.
	// +optional
	Takeover Takeover `json:"takeover,omitempty"`

	// Drift overrides spec.apply.drift. Empty: no override.
	// +optional
	Drift DriftPolicy `json:"drift,omitempty"`

	// Additions overrides spec.apply.additions. Empty: no override.
	// +optional
	Additions AdditionPolicy `json:"additions,omitempty"`

	// Recreate overrides spec.apply.recreate. Empty: no override.
	// +optional
	Recreate RecreatePolicy `json:"recreate,omitempty"`

	// Delete overrides spec.delete.action. Empty: no override.
	// +optional
	Delete DeleteAction `json:"delete,omitempty"`

	// IgnoredFields are fields that are set when the object is created, and that the Work does not manage after that, such
	// as the replicas of a Deployment that an autoscaler scales. They have the syntax of reported conflicts and
	// differences: .spec.replicas, .metadata.annotations["example.com/note"],
	// .spec.template.spec.containers[name="web"].image, .spec.list[0]. [*] matches all items of a list or all fields of a
	// map, as in .spec.template.spec.containers[*].image. A list in a later option replaces the list of an earlier one.
	// Default: none.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=512
	// +optional
	IgnoredFields []string `json:"ignoredFields,omitempty"`

	// Readiness defines when the object is ready. Unset: the readiness rule of the kind.
	// +optional
	Readiness *ReadinessRule `json:"readiness,omitempty"`

	// Feedback defines the values of the object that the status contains. A list in a later option replaces the list of an
	// earlier one. Default: none.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Feedback []FeedbackRule `json:"feedback,omitempty"`

	// FeedbackWellKnown adds predefined values of the kind to the feedback, such as the replicas of a Deployment. A rule
	// in feedback takes precedence over a predefined value with the same name. If an earlier option sets true, a later
	// option cannot disable it. Default: false.
	// +optional
	FeedbackWellKnown bool `json:"feedbackWellKnown,omitempty"`

	// Wave is the wave in which the manifest is applied, from -100 to 100. Lower waves are applied first. Unset: the wave
	// of the kind, from 0 for Namespaces and CustomResourceDefinitions to 50 for webhook configurations.
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	// +optional
	Wave *int32 `json:"wave,omitempty"`
}

// ManifestSelector selects manifests that match all of its fields. An unset field matches every manifest. At least one
// field must be set.
//
// +kubebuilder:validation:MinProperties=1
type ManifestSelector struct {
	// Group is the API group of the manifests. The empty string is the core group. Unset: every group.
	// +optional
	Group *string `json:"group,omitempty"`
	// Kind of the manifests. Empty: every kind.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Kind string `json:"kind,omitempty"`
	// Namespace of the manifests. Empty: every namespace.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the manifests. Empty: every name.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Name string `json:"name,omitempty"`
}

// ReadinessRule defines when an object is ready.
type ReadinessRule struct {
	// CEL is an expression over the variable object that is true if the object is ready, such as
	// object.status.phase == "Running". While the expression is false, or its evaluation fails, the object is progressing.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	CEL string `json:"cel"`
}

// FeedbackRule reports one value of an object.
type FeedbackRule struct {
	// Name is the name of the reported value. It consists of letters, digits, '-', '_' and '.', and begins and ends with a
	// letter or digit.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// JSONPath of the value, such as .status.loadBalancer.ingress[0].ip. It must not refer to the data of a Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	JSONPath string `json:"jsonPath"`
}

// WavePolicy defines how a wave waits for the previous one. A wave always waits until the Namespaces and
// CustomResourceDefinitions of earlier waves can be used.
type WavePolicy struct {
	// WaitForReadiness makes each wave wait until all objects of the previous wave are ready. Default: false.
	// +optional
	WaitForReadiness bool `json:"waitForReadiness,omitempty"`

	// TimeoutSeconds is the time in seconds for which a wave may be not ready before the Work is reported as degraded. If
	// the wave becomes ready later, the next wave is applied. Default: 600.
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// DeletePolicy defines how objects are deleted.
type DeletePolicy struct {
	// Action is Delete or Orphan. Default: Delete. An object that has another owner, such as another Work, is never
	// deleted.
	// +kubebuilder:default=Delete
	// +optional
	Action DeleteAction `json:"action,omitempty"`

	// Propagation defines when the dependents of a deleted object are deleted: Foreground deletes them before the object,
	// Background after it. Default: Foreground.
	// +kubebuilder:default=Foreground
	// +kubebuilder:validation:Enum=Foreground;Background
	// +optional
	Propagation metav1.DeletionPropagation `json:"propagation,omitempty"`
}

// Work contains the desired objects of one member. It is in the member's namespace on the hub.
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

	// +kubebuilder:validation:XValidation:rule="(has(self.apply.fieldOwner) ? self.apply.fieldOwner : '') == (has(oldSelf.apply.fieldOwner) ? oldSelf.apply.fieldOwner : '')",message="apply.fieldOwner cannot change, because the fields of the former owner would remain: delete the Work with delete.action Orphan and create it again with apply.takeover Always",fieldPath=".apply.fieldOwner"
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
