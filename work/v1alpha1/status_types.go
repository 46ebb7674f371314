package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions of a Work, and of each of its manifests. Their names are those of the Work API of SIG Multicluster
// (KEP-6456).
const (
	// ConditionApplied is True when the member has applied all manifests.
	ConditionApplied = "Applied"
	// ConditionReady is True when all objects are applied and available, and nothing is degraded. It is derived from the
	// other conditions.
	ConditionReady = "Ready"
	// ConditionStalled exists, and is True, only while an error needs an action of a user.
	ConditionStalled = "Stalled"
	// ConditionAvailable is True when all objects are ready.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while objects are being updated. Only a Work has it, and not its manifests.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when an error needs an action of a user, or a timeout has passed. Only a Work has it, and
	// not its manifests.
	ConditionDegraded = "Degraded"
	// ConditionComplete is True when all Jobs, and all pods that must end, have succeeded. Only a Work with such objects
	// has it.
	ConditionComplete = "Complete"
)

// Reasons of the conditions of a Work and of its manifests.
const (
	// ReasonApplied: the object is as in the manifest.
	ReasonApplied = "Applied"
	// ReasonExists: CreateOnly: the object existed already and is not changed.
	ReasonExists = "Exists"
	// ReasonObserved: Observe, or ReportDiff without a difference: nothing is applied.
	ReasonObserved = "Observed"
	// ReasonPending: an earlier wave is not ready.
	ReasonPending = "Pending"
	// ReasonSuspended: spec.suspend is set.
	ReasonSuspended = "Suspended"
	// ReasonInvalid: the manifest or one of its options is invalid; the message names the field.
	ReasonInvalid = "Invalid"
	// ReasonUnknownKind: the member does not serve the kind.
	ReasonUnknownKind = "UnknownKind"
	// ReasonNotFound: Observe, ReportDiff: the object does not exist.
	ReasonNotFound = "NotFound"
	// ReasonInTheWay: an object with the same name exists and belongs to another owner.
	ReasonInTheWay = "InTheWay"
	// ReasonConflict: another field manager owns fields of the object.
	ReasonConflict = "Conflict"
	// ReasonContested: another client changes the same fields repeatedly.
	ReasonContested = "Contested"
	// ReasonDisabled: an annotation on the object disables its reconciliation.
	ReasonDisabled = "Disabled"
	// ReasonDrifted: the object was changed on the member, and the drift policy is Report.
	ReasonDrifted = "Drifted"
	// ReasonDiffers: ReportDiff: the object differs from the manifest.
	ReasonDiffers = "Differs"
	// ReasonForbidden: the agent, or the ServiceAccount that the Work runs as, lacks a permission on the member.
	ReasonForbidden = "Forbidden"
	// ReasonRejected: the member's API server rejects the object.
	ReasonRejected = "Rejected"
	// ReasonFailed: an attempt failed and is retried.
	ReasonFailed = "Failed"
	// ReasonTerminating: the object is being deleted on the member.
	ReasonTerminating = "Terminating"
	// ReasonNotApplied: some manifests are not applied.
	ReasonNotApplied = "NotApplied"
	// ReasonReady: all objects are ready.
	ReasonReady = "Ready"
	// ReasonProgressing: the object is not ready yet.
	ReasonProgressing = "Progressing"
	// ReasonNotReady: the status of the object reports a failure.
	ReasonNotReady = "NotReady"
	// ReasonUnknown: the object could not be read, or the check of its readiness failed.
	ReasonUnknown = "Unknown"
	// ReasonTimeout: a wave took longer than spec.waves.timeoutSeconds.
	ReasonTimeout = "Timeout"
	// ReasonCleaningUp: the Work is being deleted.
	ReasonCleaningUp = "CleaningUp"
	// ReasonCompleted: all Jobs, and all pods that must end, have succeeded.
	ReasonCompleted = "Completed"
	// ReasonAsDesired: nothing is degraded.
	ReasonAsDesired = "AsDesired"
	// ReasonAgentForbidden: the agent's policy does not allow this Work.
	ReasonAgentForbidden = "AgentForbidden"
	// ReasonNotAccepted: the member does not accept the object, such as by its MemberPolicies.
	ReasonNotAccepted = "NotAccepted"
	// ReasonNoMember: the namespace of the Work belongs to no member cluster.
	ReasonNoMember = "NoMember"
	// ReasonPruneWithheld: objects that should be deleted are kept until the agent may delete them.
	ReasonPruneWithheld = "PruneWithheld"
)

// ConditionOrphaned is True on an AppliedWork while its inventory has orphaned objects: see
// [AppliedResource.OrphanedTime]. An AppliedWork without orphaned objects does not have it.
const ConditionOrphaned = "Orphaned"

// Reasons of the condition Orphaned of an AppliedWork. Each names a situation that is not a request to delete objects.
const (
	// ReasonWorkNotFound: the Work does not exist, and no deletion was observed.
	ReasonWorkNotFound = "WorkNotFound"
	// ReasonWorkReplaced: a Work with another UID has the name, and lacks manifests of the former.
	ReasonWorkReplaced = "WorkReplaced"
	// ReasonNamespaceTerminating: the Work was deleted with the namespace of the member on the hub.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonDefinitionRemoved: the Work was deleted with the definition of Works on the hub.
	ReasonDefinitionRemoved = "DefinitionRemoved"
	// ReasonNotRequestedByGenerator: a generated Work was deleted, and its generator did not ask for that.
	ReasonNotRequestedByGenerator = "NotRequestedByGenerator"
	// ReasonHubRestored: the Work has an earlier generation than the one that was applied last.
	ReasonHubRestored = "HubRestored"
	// ReasonInventoryRebuilt: the AppliedWork was lost, and the Work does not have the manifest.
	ReasonInventoryRebuilt = "InventoryRebuilt"
)

// WorkStatus is the status that the member's agent reports for a Work.
type WorkStatus struct {
	// ObservedGeneration is the generation of the Work that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Ready is the number of ready manifests and of all manifests, such as "2/3".
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Ready string `json:"ready,omitempty"`

	// Message summarizes the state of the Work in one sentence. For an error, it contains the cause and the next step.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// Conditions of the Work: Applied, Available, Progressing, Degraded, Complete.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Manifests has the state of each manifest, in the order of the spec.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Manifests []ManifestStatus `json:"manifests,omitempty"`

	// Truncated lists what was omitted or shortened because of the maximum size of a status, or of a field. A shortened
	// text ends with "…". Empty: nothing.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Truncated string `json:"truncated,omitempty"`
}

// ManifestStatus is the state of one manifest.
type ManifestStatus struct {
	// Ordinal is the manifest's index in spec.manifests.
	Ordinal int32 `json:"ordinal"`

	// ResourceIdentifier is the object.
	ResourceIdentifier `json:",inline"`

	// Conditions: Applied, Available.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Diffs are the first differences between the object and the manifest, for drift policy Report, takeover IfNoDiff and
	// mode ReportDiff.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Diffs []FieldDiff `json:"diffs,omitempty"`

	// Feedback contains the values of the feedback rules that exist.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=24
	// +optional
	Feedback []FeedbackValue `json:"feedback,omitempty"`
}

// FieldDiff is a field in which an object differs from its manifest.
type FieldDiff struct {
	// Path of the field, such as .spec.replicas.
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`
	// Wanted is the value in the manifest, as JSON. Empty: the manifest does not have the field. A long value is cut, and
	// a value of a Secret is "(redacted)".
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Wanted string `json:"wanted,omitempty"`
	// Found is the value on the member, in the same form. Empty: the object does not have the field.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Found string `json:"found,omitempty"`
}

// FeedbackType is the type of a value.
//
// +kubebuilder:validation:Enum=String;Number;Boolean;JSON
type FeedbackType string

const (
	// FeedbackString is a text.
	FeedbackString FeedbackType = "String"
	// FeedbackNumber is a number, whole or not.
	FeedbackNumber FeedbackType = "Number"
	// FeedbackBoolean is true or false.
	FeedbackBoolean FeedbackType = "Boolean"
	// FeedbackJSON is a map or a list.
	FeedbackJSON FeedbackType = "JSON"
)

// FeedbackValue is a value of an object.
type FeedbackValue struct {
	// Name of the rule.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Type of the value.
	Type FeedbackType `json:"type"`
	// Value is the value as text: a string unchanged, everything else as JSON.
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}
