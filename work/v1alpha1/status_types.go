package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions of a Work and of its manifests. The names are those of the Work API of SIG Multicluster (KEP-6456).
const (
	// ConditionApplied is True when the member has applied all manifests.
	ConditionApplied = "Applied"
	// ConditionReady is True when all objects are applied and available, no update is in progress, and nothing is
	// degraded. It is derived from the other conditions.
	ConditionReady = "Ready"
	// ConditionStalled exists only while an error requires an action by a user, and is then True.
	ConditionStalled = "Stalled"
	// ConditionAvailable is True when all objects are ready.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while objects are being updated. Manifests do not have this condition.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when an error requires an action by a user, or a timeout has passed. Manifests do not have
	// this condition.
	ConditionDegraded = "Degraded"
	// ConditionComplete is True when all Jobs, and all Pods that must terminate, have succeeded. It exists only on a Work
	// with such objects.
	ConditionComplete = "Complete"
)

// Reasons of the conditions of a Work and of its manifests.
const (
	// ReasonApplied: the object matches the manifest.
	ReasonApplied = "Applied"
	// ReasonExists: with mode CreateOnly, the object existed before and is not changed.
	ReasonExists = "Exists"
	// ReasonObserved: with mode Observe, or with mode ReportDiff if the object does not differ, nothing is applied.
	ReasonObserved = "Observed"
	// ReasonPending: an earlier wave is not ready.
	ReasonPending = "Pending"
	// ReasonSuspended: spec.suspend is set.
	ReasonSuspended = "Suspended"
	// ReasonInvalid: the manifest or one of its options is invalid. The message names the field.
	ReasonInvalid = "Invalid"
	// ReasonUnknownKind: the member does not serve the kind.
	ReasonUnknownKind = "UnknownKind"
	// ReasonNotFound: with mode Observe or ReportDiff, the object does not exist.
	ReasonNotFound = "NotFound"
	// ReasonInTheWay: an object with the same name exists that this Work has not applied, and the takeover policy does not
	// allow the Work to take it over.
	ReasonInTheWay = "InTheWay"
	// ReasonConflict: another field manager owns fields of the object.
	ReasonConflict = "Conflict"
	// ReasonContested: another client changes the same fields repeatedly.
	ReasonContested = "Contested"
	// ReasonDisabled: the annotation work.muster.dev/disabled on the object prevents the operation.
	ReasonDisabled = "Disabled"
	// ReasonDrifted: the object was changed on the member, and the drift or additions policy is Report.
	ReasonDrifted = "Drifted"
	// ReasonDiffers: with mode ReportDiff, the object differs from the manifest.
	ReasonDiffers = "Differs"
	// ReasonForbidden: the agent, or the ServiceAccount in spec.executor, lacks a permission on the member.
	ReasonForbidden = "Forbidden"
	// ReasonRejected: the member's API server rejects the object.
	ReasonRejected = "Rejected"
	// ReasonFailed: the last attempt failed. The agent retries.
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
	// ReasonCompleted: all Jobs, and all Pods that must terminate, have succeeded.
	ReasonCompleted = "Completed"
	// ReasonAsDesired: nothing is degraded.
	ReasonAsDesired = "AsDesired"
	// ReasonAgentForbidden: the agent's policy does not allow this Work.
	ReasonAgentForbidden = "AgentForbidden"
	// ReasonNotAccepted: the member does not accept the object, for example because no rule of its MemberPolicies does.
	ReasonNotAccepted = "NotAccepted"
	// ReasonNoMember: the namespace of the Work belongs to no member cluster.
	ReasonNoMember = "NoMember"
	// ReasonPruneWithheld: the agent keeps objects that should be deleted, because it may not delete objects now.
	ReasonPruneWithheld = "PruneWithheld"
)

// ConditionOrphaned is True on an AppliedWork while its inventory has orphaned objects, see
// [AppliedResource.OrphanedTime]. It does not exist on an AppliedWork without orphaned objects.
const ConditionOrphaned = "Orphaned"

// Reasons of the condition Orphaned of an AppliedWork. None of them is a request to delete objects.
const (
	// ReasonWorkNotFound: the Work does not exist, and no deletion was observed.
	ReasonWorkNotFound = "WorkNotFound"
	// ReasonWorkReplaced: a Work with the same name and another UID lacks manifests of the former Work.
	ReasonWorkReplaced = "WorkReplaced"
	// ReasonNamespaceTerminating: the Work was deleted with the namespace of the member on the hub.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonDefinitionRemoved: the Work was deleted with the CustomResourceDefinition of Works on the hub.
	ReasonDefinitionRemoved = "DefinitionRemoved"
	// ReasonNotRequestedByGenerator: a generated Work was deleted, and its controller did not request the deletion.
	ReasonNotRequestedByGenerator = "NotRequestedByGenerator"
	// ReasonHubRestored: the hub was restored to an earlier state, and the Work lacks manifests since then.
	ReasonHubRestored = "HubRestored"
	// ReasonInventoryRebuilt: the AppliedWork was lost and created again, and the Work lacks the manifests of some
	// objects.
	ReasonInventoryRebuilt = "InventoryRebuilt"
)

// WorkStatus describes the observed state of a Work. The member's agent reports it.
type WorkStatus struct {
	// ObservedGeneration is the generation of the Work that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Ready is the number of ready manifests and the number of all manifests, such as "2/3".
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Ready string `json:"ready,omitempty"`

	// Message summarizes the state of the Work in one sentence. If an error occurred, it contains the cause and the next
	// step.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// Conditions of the Work: Ready, Stalled, Applied, Available, Progressing, Degraded, Complete.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Manifests contains the state of each manifest, in the order of spec.manifests.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Manifests []ManifestStatus `json:"manifests,omitempty"`

	// Truncated lists the parts of the status that were omitted or shortened because of the maximum size of a status or of
	// a field. A shortened text ends with "…". Empty: the status is complete.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Truncated string `json:"truncated,omitempty"`
}

// ManifestStatus describes the observed state of one manifest and its object.
type ManifestStatus struct {
	// Ordinal is the manifest's index in spec.manifests.
	Ordinal int32 `json:"ordinal"`

	// ResourceIdentifier identifies the object.
	ResourceIdentifier `json:",inline"`

	// Conditions of the manifest: Applied, Available.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Diffs are the first differences between the object and the manifest, at most 20. They are reported with drift policy
	// Report, takeover IfNoDiff and mode ReportDiff.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Diffs []FieldDiff `json:"diffs,omitempty"`

	// Feedback contains the values of the feedback rules. A value that does not exist in the object is omitted.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=24
	// +optional
	Feedback []FeedbackValue `json:"feedback,omitempty"`
}

// FieldDiff is a field whose values in an object and in its manifest differ.
type FieldDiff struct {
	// Path of the field, such as .spec.replicas.
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`
	// Wanted is the value in the manifest, as JSON. Empty: the manifest does not have the field. A long value is
	// shortened. A value of a Secret is replaced by "(redacted)".
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Wanted string `json:"wanted,omitempty"`
	// Found is the value on the member, in the same form. Empty: the object does not have the field.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Found string `json:"found,omitempty"`
}

// FeedbackType is the type of a reported value.
//
// +kubebuilder:validation:Enum=String;Number;Boolean;JSON
type FeedbackType string

const (
	// FeedbackString is a string.
	FeedbackString FeedbackType = "String"
	// FeedbackNumber is an integer or a floating-point number.
	FeedbackNumber FeedbackType = "Number"
	// FeedbackBoolean is true or false.
	FeedbackBoolean FeedbackType = "Boolean"
	// FeedbackJSON is a map or a list.
	FeedbackJSON FeedbackType = "JSON"
)

// FeedbackValue is a value that a feedback rule read from an object.
type FeedbackValue struct {
	// Name of the feedback rule.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Type of the value.
	Type FeedbackType `json:"type"`
	// Value is the value as text. A string is unchanged; a value of another type is encoded as JSON.
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}
