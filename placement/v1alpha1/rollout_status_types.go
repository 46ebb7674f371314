package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutPhase is the phase of a rollout, or of one of its stages.
//
// +kubebuilder:validation:Enum=Pending;WaitingForApproval;WaitingForTime;Progressing;Soaking;Paused;Stopped;Failed;RollingBack;RolledBack;Succeeded
type RolloutPhase string

const (
	// PhasePending means that the rollout has not reached the stage.
	PhasePending RolloutPhase = "Pending"
	// PhaseWaitingForApproval means that a gate requires an approval. The message names the gate.
	PhaseWaitingForApproval RolloutPhase = "WaitingForApproval"
	// PhaseWaitingForTime means that the waiting time of a gate has not passed.
	PhaseWaitingForTime RolloutPhase = "WaitingForTime"
	// PhaseProgressing means that the rollout updates clusters, or waits for updated clusters to become healthy.
	PhaseProgressing RolloutPhase = "Progressing"
	// PhaseSoaking means that all updated clusters are healthy, and the rollout waits until they have been healthy for
	// minSuccessSeconds.
	PhaseSoaking RolloutPhase = "Soaking"
	// PhasePaused means that a user has paused the rollout. It waits until a user resumes it.
	PhasePaused RolloutPhase = "Paused"
	// PhaseStopped means that a user has stopped the rollout. No cluster waits for it.
	PhaseStopped RolloutPhase = "Stopped"
	// PhaseFailed means that the rollout is halted, because more clusters failed than allowed, or because a mandatory
	// group cannot be completed. The message contains the cause and the next step. The rollout continues when the cause is
	// removed.
	PhaseFailed RolloutPhase = "Failed"
	// PhaseRollingBack means that clusters are being returned to the stable revision.
	PhaseRollingBack RolloutPhase = "RollingBack"
	// PhaseRolledBack means that the rollback is complete. The revision is not rolled out again.
	PhaseRolledBack RolloutPhase = "RolledBack"
	// PhaseSucceeded means that the rollout is complete. Later changes of the health of clusters do not affect the phase.
	PhaseSucceeded RolloutPhase = "Succeeded"
)

// RolloutCounts counts clusters by their progress toward the target revision.
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

// RolloutStageStatus describes the observed state of one stage, or of one decision group, of a rollout.
type RolloutStageStatus struct {
	// name is the name of the stage, or "Remaining" for the clusters that no stage selects. For a decision group it is
	// name/index, or the index if the group has no name; a part of a group other than the first is added to the index, as
	// in name/index.part. "All" is the name if the type of the rollout has no stages and no groups.
	// +required
	Name string `json:"name"`
	// phase is the phase of the stage.
	Phase RolloutPhase `json:"phase"`
	// RolloutCounts counts the clusters of the stage.
	RolloutCounts `json:",inline"`
	// reachedAt is the time at which all earlier stages were complete, and the rollout reached the gate Before of this
	// stage.
	// +optional
	ReachedAt *metav1.Time `json:"reachedAt,omitempty"`
	// finishedAt is the time at which all clusters of the stage were complete for the first time, and the rollout reached
	// the gate After of this stage.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// UnwellCluster is a cluster that was unhealthy at a revision when it was last observed there.
type UnwellCluster struct {
	// name is the name of the cluster.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// group is the decision group that the cluster was in: name/index, or the index if the group has no name. A part of a
	// group other than the first is added to the index, as in name/index.part.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Group string `json:"group"`
}

// RollbackStatus describes the observed state of a rollback.
type RollbackStatus struct {
	// startedAt is the time at which the rollback started.
	// +required
	StartedAt metav1.Time `json:"startedAt"`
	// cause is the reason for the rollback, in one sentence.
	// +required
	Cause string `json:"cause"`
	// finishedAt is the time at which the last cluster was rolled back.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// RolloutStatus describes the observed state of a rollout. It is also the only state of a rollout that is kept between
// reconciles.
type RolloutStatus struct {
	// revision is the name of the revision that is rolled out.
	// +optional
	Revision string `json:"revision,omitempty"`
	// phase is the phase of the rollout.
	// +optional
	Phase RolloutPhase `json:"phase,omitempty"`
	// message describes in one sentence the current step of the rollout, or what the rollout waits for.
	// +optional
	Message string `json:"message,omitempty"`
	// RolloutCounts counts all clusters. During a rollback it counts them by their progress toward the stable revision.
	RolloutCounts `json:",inline"`
	// stages are the states of the stages, in their order.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Stages []RolloutStageStatus `json:"stages,omitempty"`
	// unwell are the clusters that failed at the revision, or became unreachable while they were being updated to it. A
	// cluster that leaves still counts as failed until it is back at the revision, the rollout has another revision, or
	// its state is Stop. If clusters that left fill the list, the rollout fails, whatever maxFailures is.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Unwell []UnwellCluster `json:"unwell,omitempty"`
	// stableRevision is the revision of the last successful rollout. A rollback returns clusters to this revision.
	// Clusters without any revision get it until the rollout allows the new revision.
	// +optional
	StableRevision string `json:"stableRevision,omitempty"`
	// stableSince is the time at which the last rollout or rollback finished. A cluster that was updated since then was
	// updated by an unfinished rollout.
	// +optional
	StableSince *metav1.Time `json:"stableSince,omitempty"`
	// startedAt is the time at which this revision was first observed.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// finishedAt is the time at which the rollout succeeded.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// rollback is the status of the rollback. It is set from the start of a rollback until there is another revision.
	// +optional
	Rollback *RollbackStatus `json:"rollback,omitempty"`
}
