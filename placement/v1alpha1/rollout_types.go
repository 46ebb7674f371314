package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutType says in which order a change reaches clusters.
//
// +kubebuilder:validation:Enum=All;Progressive;ProgressivePerGroup;Stages
type RolloutType string

const (
	// RolloutAll updates all clusters at once. It is the default.
	RolloutAll RolloutType = "All"
	// RolloutProgressive updates some clusters at a time.
	RolloutProgressive RolloutType = "Progressive"
	// RolloutProgressivePerGroup updates one decision group after the other.
	RolloutProgressivePerGroup RolloutType = "ProgressivePerGroup"
	// RolloutStages updates one stage after the other, with approvals and waits between them.
	RolloutStages RolloutType = "Stages"
)

// FailureAction says what is done when more clusters have failed than maxFailures allows.
//
// +kubebuilder:validation:Enum=Halt;RollBack
type FailureAction string

const (
	// FailureHalt updates no more clusters until few enough fail, or there is another revision. It is the default.
	FailureHalt FailureAction = "Halt"
	// FailureRollBack takes all clusters back to the revision whose rollout succeeded last.
	FailureRollBack FailureAction = "RollBack"
)

// RolloutState is what a person wants of a rollout.
//
// +kubebuilder:validation:Enum=Run;Pause;Stop
type RolloutState string

const (
	// RolloutRun lets it go on. It is the default.
	RolloutRun RolloutState = "Run"
	// RolloutPause holds it for a while. What is under way comes to its end, and time goes on counting.
	RolloutPause RolloutState = "Pause"
	// RolloutStop holds it as RolloutPause does, and says that it is given up, so that no cluster waits for it.
	// Clusters that failed and have left are forgotten, and so are mandatory groups that have lost all of theirs: if
	// it is to Run after that, it goes on without them.
	RolloutStop RolloutState = "Stop"
)

// The API server reckons that what may be a number or a text is a text as long as a request, and that to ask for its
// type is as dear, so the rules for it do not: one of their sides has no meaning, and does no harm where the other is
// true. Texts are checked by patterns.

// RolloutStrategy says how a change reaches clusters. The zero RolloutStrategy updates all at once, and halts at
// the first failure for those that come later.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxConcurrency) || (has(self.type) && self.type != 'All')",fieldPath=".maxConcurrency",reason=FieldValueForbidden,message="type All updates all clusters at once: remove maxConcurrency, or set the type to Progressive"
// +kubebuilder:validation:XValidation:rule="!has(self.mandatoryGroups) || size(self.mandatoryGroups) == 0 || (has(self.type) && self.type == 'ProgressivePerGroup')",fieldPath=".mandatoryGroups",reason=FieldValueForbidden,message="mandatoryGroups goes with type ProgressivePerGroup only: remove it, or set the type to ProgressivePerGroup"
// +kubebuilder:validation:XValidation:rule="!has(self.stages) || size(self.stages) == 0 || (has(self.type) && self.type == 'Stages')",fieldPath=".stages",reason=FieldValueForbidden,message="stages goes with type Stages only: remove it, or set the type to Stages"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Stages' || (has(self.stages) && size(self.stages) > 0)",fieldPath=".stages",reason=FieldValueRequired,message="stages is required with type Stages; use type Progressive for a rollout without them"
type RolloutStrategy struct {
	// type says in which order clusters are updated: All at once, Progressive some at a time, ProgressivePerGroup one
	// decision group after the other, Stages one stage after the other.
	// +kubebuilder:default=All
	// +optional
	Type RolloutType `json:"type,omitempty"`

	// maxConcurrency is how many clusters may be on their way to a revision at a time: a number, or a percentage of all
	// clusters, rounded down, and always at least one. Default: 25% with type Progressive, and else no bound but that of a
	// stage.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="self >= 1 || self.endsWith('%')",message="maxConcurrency must be a number from 1, or a percentage from 1% to 100%"
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`

	// minSuccessSeconds is how long a cluster must have been well at a revision before it counts as updated.
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 31536000",message="minSuccessSeconds must be from 0 to 31536000 (a year)"
	// +optional
	MinSuccessSeconds int32 `json:"minSuccessSeconds,omitempty"`

	// progressDeadlineSeconds is how long a cluster may take to become well at a revision before it counts as failed.
	// +kubebuilder:default=600
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 31536000",message="progressDeadlineSeconds must be from 1 to 31536000 (a year)"
	// +optional
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds,omitempty"`

	// maxFailures is how many clusters may fail before the rollout does: a number, or a percentage of all clusters,
	// rounded down. In a mandatory group none may. One that failed, or could not be reached, and has left is among them.
	// Default: 0.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9]?[0-9]|100)%$`
	// +kubebuilder:validation:XValidation:rule="self >= 0 || self.endsWith('%')",message="maxFailures must be a number from 0, or a percentage from 0% to 100%"
	// +optional
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`

	// onFailure says what is done when more clusters have failed: Halt the rollout, or RollBack those that were updated.
	// +kubebuilder:default=Halt
	// +optional
	OnFailure FailureAction `json:"onFailure,omitempty"`

	// state lets the rollout Run, Pause for a while, or Stop. Clusters that have nothing yet get the revision that
	// succeeded last meanwhile.
	// +kubebuilder:default=Run
	// +optional
	State RolloutState `json:"state,omitempty"`

	// mandatoryGroups are updated first, in this order, and every cluster in them must succeed before another group
	// begins. The groups that are not named follow by their index. With type ProgressivePerGroup only. One that no
	// placement declares holds the rollout; one that is declared and has no clusters is passed, unless it lost them while
	// it was its turn.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	MandatoryGroups []DecisionGroupReference `json:"mandatoryGroups,omitempty"`

	// stages are run in this order. Required with type Stages, and only there. A cluster is in the first stage that
	// selects it. Those that none selects come last, in a stage of their own that is named Remaining.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Stages []RolloutStage `json:"stages,omitempty"`
}

// DecisionGroupReference names decision groups: one by its index, or all that have a name. It includes all parts of a
// group.
//
// +kubebuilder:validation:XValidation:rule="(has(self.name) && size(self.name) > 0) != has(self.index)",message="a group must be named by either name or index"
type DecisionGroupReference struct {
	// name is the name of the groups.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Name string `json:"name,omitempty"`

	// index is the index of one group, counted from 0.
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="index must not be negative"
	// +optional
	Index *int32 `json:"index,omitempty"`
}

// RolloutStage is a part of a rollout by stages.
type RolloutStage struct {
	// name of the stage, a DNS label, by which it is approved.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a stage must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	Name string `json:"name"`

	// selector chooses clusters by their labels. Empty: all that are in no stage before this one.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// orderBy is the key of a label by whose value the clusters of the stage are ordered: numbers first, by value, then
	// other values, then those without the label.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	OrderBy string `json:"orderBy,omitempty"`

	// maxConcurrency is how many clusters of the stage may be on their way to a revision at a time: a number, or a
	// percentage of the clusters of the stage, rounded down, and always at least one. Default: 1.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="self >= 1 || self.endsWith('%')",message="maxConcurrency must be a number from 1, or a percentage from 1% to 100%"
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`

	// before must be passed before the first cluster of the stage is updated.
	// +optional
	Before RolloutGate `json:"before,omitzero"`

	// after must be passed once the stage is done, before the next is reached and, with the last, before the rollout
	// succeeds.
	// +optional
	After RolloutGate `json:"after,omitzero"`
}

// RolloutGate holds a rollout until all that it asks for is there. The zero RolloutGate is open.
type RolloutGate struct {
	// approval asks for a RolloutApproval.
	// +optional
	Approval bool `json:"approval,omitempty"`

	// waitSeconds is how long to wait once the gate is reached.
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 31536000",message="waitSeconds must be from 0 to 31536000 (a year)"
	// +optional
	WaitSeconds int32 `json:"waitSeconds,omitempty"`
}

// GatePosition says which gate of a stage is meant.
//
// +kubebuilder:validation:Enum=Before;After
type GatePosition string

// The gates of a stage.
const (
	GateBefore GatePosition = "Before"
	GateAfter  GatePosition = "After"
)

// RolloutApproval opens one gate for one revision. It may be given before it is asked for. Taken away, it holds what
// has not begun yet.
type RolloutApproval struct {
	// revision that is approved. An approval of one says nothing about the next.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`
	// stage is its name.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Stage string `json:"stage"`
	// gate of the stage.
	// +required
	Gate GatePosition `json:"gate"`
}
