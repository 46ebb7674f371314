package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutType defines the order in which clusters are updated.
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

// FailureAction defines what happens when more clusters fail than maxFailures allows.
//
// +kubebuilder:validation:Enum=Halt;RollBack
type FailureAction string

const (
	// FailureHalt updates no more clusters until fewer clusters fail, or there is another revision. It is the default.
	FailureHalt FailureAction = "Halt"
	// FailureRollBack returns all clusters to the last revision whose rollout succeeded.
	FailureRollBack FailureAction = "RollBack"
)

// RolloutState is the desired state of a rollout.
//
// +kubebuilder:validation:Enum=Run;Pause;Stop
type RolloutState string

const (
	// RolloutRun continues the rollout. It is the default.
	RolloutRun RolloutState = "Run"
	// RolloutPause updates no more clusters until the state changes. Updates that have begun continue, and deadlines are
	// not extended.
	RolloutPause RolloutState = "Pause"
	// RolloutStop pauses the rollout and abandons it, so that no cluster waits for it. It deletes the record of clusters
	// that failed and left, and of mandatory groups that lost all of their clusters: a later Run continues without them.
	RolloutStop RolloutState = "Stop"
)

// The CEL cost estimate of the API server assumes that the value of an int-or-string field is a string as long as a
// request, and that a check of its type costs as much. The rules for such fields therefore do not check the type: for a
// value of either type one side of the || is an error, which CEL ignores if the other side is true. Patterns validate
// the strings.

// RolloutStrategy defines how a change reaches clusters. The zero RolloutStrategy updates all clusters at once. After
// the first failure, it updates no cluster that is added later.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxConcurrency) || (has(self.type) && self.type != 'All')",fieldPath=".maxConcurrency",reason=FieldValueForbidden,message="type All updates all clusters at once: remove maxConcurrency, or set the type to Progressive"
// +kubebuilder:validation:XValidation:rule="!has(self.mandatoryGroups) || size(self.mandatoryGroups) == 0 || (has(self.type) && self.type == 'ProgressivePerGroup')",fieldPath=".mandatoryGroups",reason=FieldValueForbidden,message="mandatoryGroups may only be set with type ProgressivePerGroup: remove it, or set the type to ProgressivePerGroup"
// +kubebuilder:validation:XValidation:rule="!has(self.stages) || size(self.stages) == 0 || (has(self.type) && self.type == 'Stages')",fieldPath=".stages",reason=FieldValueForbidden,message="stages may only be set with type Stages: remove it, or set the type to Stages"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Stages' || (has(self.stages) && size(self.stages) > 0)",fieldPath=".stages",reason=FieldValueRequired,message="stages is required with type Stages; use type Progressive for a rollout without them"
type RolloutStrategy struct {
	// type defines the order of updates: All updates all clusters at once, Progressive some clusters at a time,
	// ProgressivePerGroup one decision group after the other, and Stages one stage after the other.
	// +kubebuilder:default=All
	// +optional
	Type RolloutType `json:"type,omitempty"`

	// maxConcurrency is the maximum number of clusters that are being updated at a time: a number, or a percentage of all
	// clusters, rounded down, but at least one. Default: 25% with type Progressive; otherwise only the limit of a stage
	// applies.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="self >= 1 || self.endsWith('%')",message="maxConcurrency must be a number from 1, or a percentage from 1% to 100%"
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`

	// minSuccessSeconds is the number of seconds that a cluster must be healthy at a revision before it counts as updated,
	// from 0 to 31536000. Default: 0.
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 31536000",message="minSuccessSeconds must be from 0 to 31536000 (a year)"
	// +optional
	MinSuccessSeconds int32 `json:"minSuccessSeconds,omitempty"`

	// progressDeadlineSeconds is the number of seconds within which a cluster must become healthy at a revision, from 1 to
	// 31536000. Otherwise the cluster counts as failed. Default: 600.
	// +kubebuilder:default=600
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 31536000",message="progressDeadlineSeconds must be from 1 to 31536000 (a year)"
	// +optional
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds,omitempty"`

	// maxFailures is the number of clusters that may fail before the rollout fails: a number, or a percentage of all
	// clusters, rounded down. In a mandatory group no cluster may fail. Clusters that left after they failed or became
	// unreachable are included. Default: 0.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9]?[0-9]|100)%$`
	// +kubebuilder:validation:XValidation:rule="self >= 0 || self.endsWith('%')",message="maxFailures must be a number from 0, or a percentage from 0% to 100%"
	// +optional
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`

	// onFailure defines what happens when more clusters fail than maxFailures allows: Halt stops the rollout, and RollBack
	// returns the updated clusters to the last revision that succeeded. Default: Halt.
	// +kubebuilder:default=Halt
	// +optional
	OnFailure FailureAction `json:"onFailure,omitempty"`

	// state is the desired state of the rollout: Run, Pause, or Stop. While a rollout is paused or stopped, a new cluster
	// gets the last revision that succeeded. Default: Run.
	// +kubebuilder:default=Run
	// +optional
	State RolloutState `json:"state,omitempty"`

	// mandatoryGroups are the groups that are updated first, in this order. Every cluster of a mandatory group must
	// succeed before the next group begins. The other groups follow in the order of their index. Only with type
	// ProgressivePerGroup. A group that no Placement declares blocks the rollout. A declared group without clusters is
	// skipped, unless it lost its clusters while it was being updated.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	MandatoryGroups []DecisionGroupReference `json:"mandatoryGroups,omitempty"`

	// stages are the stages of the rollout, in their order. Required with type Stages, and forbidden otherwise. A cluster
	// belongs to the first stage that selects it. Clusters that no stage selects are updated last, in a stage named
	// Remaining.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Stages []RolloutStage `json:"stages,omitempty"`
}

// DecisionGroupReference refers to decision groups: to one by its index, or to all groups with a name. All parts of a
// group are included.
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

// RolloutStage defines one stage of a rollout.
type RolloutStage struct {
	// name identifies the stage in approvals. It must be a DNS label.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a stage must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	Name string `json:"name"`

	// selector selects clusters by their labels. Empty: all clusters that no earlier stage selects.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// orderBy is the key of a label. The clusters of the stage are updated in the order of its values: first numbers in
	// ascending order, then other values, then clusters without the label.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	OrderBy string `json:"orderBy,omitempty"`

	// maxConcurrency is the maximum number of clusters of the stage that are being updated at a time: a number, or a
	// percentage of the clusters of the stage, rounded down, but at least one. Default: 1.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="self >= 1 || self.endsWith('%')",message="maxConcurrency must be a number from 1, or a percentage from 1% to 100%"
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`

	// before is the gate that must be open before the first cluster of the stage is updated.
	// +optional
	Before RolloutGate `json:"before,omitzero"`

	// after is the gate that must be open before the next stage begins. The rollout succeeds after the gate of the last
	// stage is open.
	// +optional
	After RolloutGate `json:"after,omitzero"`
}

// RolloutGate blocks a rollout until its requirements are met. The zero RolloutGate is open.
type RolloutGate struct {
	// approval requires a RolloutApproval.
	// +optional
	Approval bool `json:"approval,omitempty"`

	// waitSeconds is the number of seconds to wait after the rollout reaches the gate, from 0 to 31536000. Default: 0.
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 31536000",message="waitSeconds must be from 0 to 31536000 (a year)"
	// +optional
	WaitSeconds int32 `json:"waitSeconds,omitempty"`
}

// GatePosition identifies one of the two gates of a stage.
//
// +kubebuilder:validation:Enum=Before;After
type GatePosition string

// Positions of the gates of a stage.
const (
	GateBefore GatePosition = "Before"
	GateAfter  GatePosition = "After"
)

// RolloutApproval opens one gate for one revision. It may be created before the rollout reaches the gate. If it is
// removed, updates that have not begun are blocked again.
type RolloutApproval struct {
	// revision is the approved revision. The approval does not apply to any other revision.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`
	// stage is the name of the stage.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Stage string `json:"stage"`
	// gate is the position of the gate: Before or After.
	// +required
	Gate GatePosition `json:"gate"`
}
