package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions of a Work, and of each of its manifests. Their names are those of the Work API of SIG Multicluster (KEP-6456).
const (
	// ConditionApplied is True when the member has all that the manifests say.
	ConditionApplied = "Applied"
	// ConditionReady is True when all objects are applied and available, and nothing is degraded. It is derived from the other conditions.
	ConditionReady = "Ready"
	// ConditionStalled exists, and is True, only while an error needs an action of a user.
	ConditionStalled = "Stalled"
	// ConditionAvailable is True when all objects are ready.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the objects are on their way to be what they shall be. Of a Work alone.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when something will not come right by itself or in time. Of a Work alone.
	ConditionDegraded = "Degraded"
	// ConditionComplete is True when all Jobs, and pods that are to end, have succeeded. Of a Work alone, and only where it
	// has any.
	ConditionComplete = "Complete"
)

// Reasons of the conditions of a Work and of its manifests.
const (
	ReasonApplied        = "Applied"        // as the manifest says
	ReasonExists         = "Exists"         // CreateOnly: it was there already, and is left alone
	ReasonObserved       = "Observed"       // Observe, or ReportDiff without a difference: nothing is applied
	ReasonPending        = "Pending"        // an earlier wave is not ready
	ReasonSuspended      = "Suspended"      // spec.suspend
	ReasonInvalid        = "Invalid"        // the manifest, or an option of it, cannot be right
	ReasonUnknownKind    = "UnknownKind"    // the member does not know the kind
	ReasonNotFound       = "NotFound"       // Observe, ReportDiff: it is not there
	ReasonInTheWay       = "InTheWay"       // an object that is not of this Work
	ReasonConflict       = "Conflict"       // another field manager has fields of it
	ReasonContested      = "Contested"      // another client changes the same fields again and again
	ReasonDisabled       = "Disabled"       // an annotation on the object stops it
	ReasonDrifted        = "Drifted"        // edited on the member, and drift is Report
	ReasonDiffers        = "Differs"        // ReportDiff: the object is not what the manifest says
	ReasonForbidden      = "Forbidden"      // the executor, or the agent, may not
	ReasonRejected       = "Rejected"       // the member's API server refuses it for good
	ReasonFailed         = "Failed"         // an attempt failed and is repeated
	ReasonTerminating    = "Terminating"    // it is being deleted on the member
	ReasonNotApplied     = "NotApplied"     // some manifests are not applied
	ReasonReady          = "Ready"          // all that was asked for is ready
	ReasonProgressing    = "Progressing"    // on its way
	ReasonNotReady       = "NotReady"       // failed, by its own status
	ReasonUnknown        = "Unknown"        // it could not be read, or the check of its readiness failed
	ReasonTimeout        = "Timeout"        // a wave took longer than spec.waves.timeoutSeconds
	ReasonCleaningUp     = "CleaningUp"     // the Work is being deleted
	ReasonCompleted      = "Completed"      // all that is to end has ended well
	ReasonAsDesired      = "AsDesired"      // nothing is degraded
	ReasonAgentForbidden = "AgentForbidden" // the agent's policy does not let this Work run
	ReasonNoMember       = "NoMember"       // the namespace of the Work belongs to no member cluster
	ReasonPruneWithheld  = "PruneWithheld"  // objects that should be deleted are kept until the agent may prune
)

// ConditionOrphaned is True on an AppliedWork while its inventory has orphaned objects: see [AppliedResource.OrphanedTime]. An
// AppliedWork without orphaned objects does not have it.
const ConditionOrphaned = "Orphaned"

// Reasons of the condition Orphaned of an AppliedWork. Each names a situation that is not a request to delete objects.
const (
	ReasonWorkNotFound            = "WorkNotFound"            // the Work does not exist, and no deletion was observed
	ReasonWorkReplaced            = "WorkReplaced"            // a Work with another UID has the name, and lacks manifests of the former
	ReasonNamespaceTerminating    = "NamespaceTerminating"    // the Work was deleted with the namespace of the member on the hub
	ReasonDefinitionRemoved       = "DefinitionRemoved"       // the Work was deleted with the definition of Works on the hub
	ReasonNotRequestedByGenerator = "NotRequestedByGenerator" // a generated Work was deleted, and its generator did not ask for that
	ReasonHubRestored             = "HubRestored"             // the Work has an earlier generation than the one that was applied last
	ReasonInventoryRebuilt        = "InventoryRebuilt"        // the AppliedWork was lost, and the Work does not have the manifest
)

// WorkStatus is what the member's agent says of a Work.
type WorkStatus struct {
	// ObservedGeneration is the generation of the Work that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Ready is how many of the manifests are ready, such as "2/3".
	// +optional
	Ready string `json:"ready,omitempty"`

	// Message is the one sentence that says how the Work is doing and, if something is wrong, what and what to do.
	// +optional
	Message string `json:"message,omitempty"`

	// Conditions: Applied, Available, Progressing, Degraded, Complete.
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

	// Truncated says what was left out because the status would have become too long. Empty: nothing was.
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

	// Diffs are the fields in which object and manifest differ, the first ones: with Drift Report, Takeover IfNoDiff
	// and mode ReportDiff.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Diffs []FieldDiff `json:"diffs,omitempty"`

	// Feedback has the values that were asked for and are there.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=24
	// +optional
	Feedback []FeedbackValue `json:"feedback,omitempty"`
}

// FieldDiff is a field in which an object differs from its manifest.
type FieldDiff struct {
	// Path of the field, such as .spec.replicas.
	Path string `json:"path"`
	// Wanted is the value in the manifest, as JSON; empty where the manifest does not want the field. It is cut when it is long, and
	// "(redacted)" in a Secret.
	// +optional
	Wanted string `json:"wanted,omitempty"`
	// Found is the value on the member, likewise; empty where the field is not there.
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

// FeedbackValue is a value that was taken from an object.
type FeedbackValue struct {
	// Name of the rule.
	Name string `json:"name"`
	// Type of the value.
	Type FeedbackType `json:"type"`
	// Value as text: a string as it is, all else as JSON.
	Value string `json:"value"`
}
