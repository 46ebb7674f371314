package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutPhase is where a rollout, or a stage of it, stands.
//
// +kubebuilder:validation:Enum=Pending;WaitingForApproval;WaitingForTime;Progressing;Soaking;Paused;Stopped;Failed;RollingBack;RolledBack;Succeeded
type RolloutPhase string

const (
	// PhasePending stage: its turn has not come.
	PhasePending RolloutPhase = "Pending"
	// PhaseWaitingForApproval of a gate, which the message names.
	PhaseWaitingForApproval RolloutPhase = "WaitingForApproval"
	// PhaseWaitingForTime of a gate to pass.
	PhaseWaitingForTime RolloutPhase = "WaitingForTime"
	// PhaseProgressing rollouts update clusters, or wait for some that are updated to become well.
	PhaseProgressing RolloutPhase = "Progressing"
	// PhaseSoaking rollouts wait only for clusters to stay well for long enough.
	PhaseSoaking RolloutPhase = "Soaking"
	// PhasePaused rollouts wait for a person who will let them go on.
	PhasePaused RolloutPhase = "Paused"
	// PhaseStopped rollouts were given up by a person.
	PhaseStopped RolloutPhase = "Stopped"
	// PhaseFailed rollouts are halted: more clusters have failed than may, or a mandatory group cannot be done. The
	// message says which, and what to do. They go on once that is otherwise.
	PhaseFailed RolloutPhase = "Failed"
	// PhaseRollingBack rollouts take clusters back to the revision before.
	PhaseRollingBack RolloutPhase = "RollingBack"
	// PhaseRolledBack rollouts have done so. The revision will not be tried again.
	PhaseRolledBack RolloutPhase = "RolledBack"
	// PhaseSucceeded rollouts are done. What happens to clusters from then on is no longer their affair.
	PhaseSucceeded RolloutPhase = "Succeeded"
)

// RolloutCounts says how many clusters are how far on their way to the revision that they shall be at.
type RolloutCounts struct {
	// total is the number of all clusters.
	// +required
	Total int32 `json:"total"`
	// pending is the number of clusters that are not updated yet.
	// +optional
	Pending int32 `json:"pending,omitempty"`
	// progressing is the number of clusters that are updated and not healthy yet.
	// +optional
	Progressing int32 `json:"progressing,omitempty"`
	// soaking is the number of clusters that are healthy, but not yet for minSuccessSeconds.
	// +optional
	Soaking int32 `json:"soaking,omitempty"`
	// succeeded is the number of clusters that are updated and healthy.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
	// failed is the number of clusters that report a failure.
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// timedOut is the number of clusters that did not become healthy within progressDeadlineSeconds.
	// +optional
	TimedOut int32 `json:"timedOut,omitempty"`
}

// RolloutStageStatus is the row of a stage, or of a decision group, in the table of a rollout.
type RolloutStageStatus struct {
	// name of the stage, "Remaining" for the clusters in none, a decision group's name/index, or its index if it has no
	// name. "All" where there is but one.
	// +required
	Name string `json:"name"`
	// Phase of the stage.
	Phase RolloutPhase `json:"phase"`
	// RolloutCounts of its clusters.
	RolloutCounts `json:",inline"`
	// reachedAt is when all before it was done, and its gate Before reached.
	// +optional
	ReachedAt *metav1.Time `json:"reachedAt,omitempty"`
	// finishedAt is when all of its clusters were done first, and its gate After reached.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// UnwellCluster is a cluster that was not well at a revision when it was last seen there.
type UnwellCluster struct {
	// name of the cluster.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// group is the decision group that the cluster was in: name/index, or the index if the group has no name. A part of a
	// group other than the first is added to the index, as in name/index.part.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Group string `json:"group"`
}

// RollbackStatus is the record of a rollback.
type RollbackStatus struct {
	// startedAt is when it began.
	// +required
	StartedAt metav1.Time `json:"startedAt"`
	// cause says in a sentence why.
	// +required
	Cause string `json:"cause"`
	// finishedAt is when no cluster was left to take back.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// RolloutStatus is what has become of a rollout. It is for people and, since it is kept from one look to the next, all
// that a rollout remembers.
type RolloutStatus struct {
	// revision that is rolled out.
	// +optional
	Revision string `json:"revision,omitempty"`
	// Phase of the rollout.
	// +optional
	Phase RolloutPhase `json:"phase,omitempty"`
	// message says in a sentence what happens, or what is waited for.
	// +optional
	Message string `json:"message,omitempty"`
	// RolloutCounts of all clusters. While clusters are taken back they are about the way back.
	RolloutCounts `json:",inline"`
	// stages in their order.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Stages []RolloutStageStatus `json:"stages,omitempty"`
	// unwell are clusters that have failed at the revision, or cannot be reached on their way to it. Those that leave go
	// on to count as failed, until they are back at the revision, there is another one, or the state is Stop. When the
	// list is full of those that have left, more have failed than may, whatever maxFailures says.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Unwell []UnwellCluster `json:"unwell,omitempty"`
	// stableRevision is the revision whose rollout succeeded last; to it clusters are taken back, and clusters that have
	// nothing get it until it is their turn.
	// +optional
	StableRevision string `json:"stableRevision,omitempty"`
	// stableSince is when clusters were last left in peace: whatever was updated since then, was by a rollout
	// that is not over.
	// +optional
	StableSince *metav1.Time `json:"stableSince,omitempty"`
	// startedAt is when this revision was first seen.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// finishedAt is when the rollout succeeded.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// rollback is there from when it begins until there is another revision.
	// +optional
	Rollback *RollbackStatus `json:"rollback,omitempty"`
}
