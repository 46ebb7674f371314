package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// The finalizer, labels and annotations of WorkSets and their Works.
const (
	// WorkSetFinalizer keeps a WorkSet until the deletion of all its Works has begun.
	WorkSetFinalizer = GroupName + "/works"
	// WorkSetLabel is on each Work and each WorkSetRevision of a WorkSet. Its value is the name of the WorkSet, converted
	// by [LabelValue].
	WorkSetLabel = GroupName + "/workset"
	// WorkSetNamespaceLabel is on each Work of a WorkSet. Its value is the namespace of the WorkSet. It is empty for a
	// ClusterWorkSet.
	WorkSetNamespaceLabel = GroupName + "/workset-namespace"
	// WorkSetAnnotation is on each Work of a WorkSet. Its value is the namespace and the name of the WorkSet, such as
	// shop/web, or /web for a ClusterWorkSet.
	WorkSetAnnotation = GroupName + "/workset"
	// RevisionAnnotation is on the first Work of a WorkSet for a cluster. Its value is the name of the revision that is
	// assigned to the cluster.
	RevisionAnnotation = GroupName + "/revision"
	// RevisionSinceAnnotation is on the same Work as [RevisionAnnotation]. Its value is the time at which the revision was
	// assigned, in RFC 3339 format.
	RevisionSinceAnnotation = GroupName + "/revision-since"
	// WorkSetUIDAnnotation is on the same Work as [RevisionAnnotation]. Its value is the UID of the WorkSet that last
	// selected the cluster. The Works of a cluster that is not selected are deleted only if the WorkSet has this UID:
	// Works of an earlier WorkSet with the same name are kept.
	WorkSetUIDAnnotation = GroupName + "/workset-uid"
	// PlacementsAnnotation is on the first Work of a WorkSet with several Placements for a cluster. Its value is the names
	// of the Placements that selected the cluster, sorted and separated by commas. By this annotation, Placements that are
	// deleted and created again select the clusters that they had before.
	PlacementsAnnotation = GroupName + "/placements"
)

// Conditions of a WorkSet. They have the same meaning as the conditions of a Work, for all clusters of the WorkSet
// together.
const (
	// ConditionApplied is True when each cluster has applied the revision that the rollout has assigned to it.
	ConditionApplied = "Applied"
	// ConditionReady is True when the rollout is complete, and all objects are available on all clusters. For a Placement
	// it is True when the Placement is scheduled. It is derived from the other conditions.
	ConditionReady = "Ready"
	// ConditionStalled exists, and is True, only while an error requires an action of a user, or a Placement cannot be
	// scheduled.
	ConditionStalled = "Stalled"
	// ConditionAvailable is True when all objects are ready on all clusters.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while a revision is being rolled out.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when an error requires an action of a user.
	ConditionDegraded = "Degraded"
)

// Reasons of the conditions of a WorkSet. The reason of Progressing is the phase of the rollout.
const (
	// ReasonApplied means that each cluster has the desired revision of all objects.
	ReasonApplied = "Applied"
	// ReasonNotApplied means that some clusters do not have the desired revision yet.
	ReasonNotApplied = "NotApplied"
	// ReasonAvailable means that all objects are ready on all clusters.
	ReasonAvailable = "Available"
	// ReasonNotAvailable means that some objects are not ready on some clusters.
	ReasonNotAvailable = "NotAvailable"
	// ReasonNoClusters means that the Placements have selected no cluster.
	ReasonNoClusters = "NoClusters"
	// ReasonAsDesired means that there is no error.
	ReasonAsDesired = "AsDesired"
	// ReasonInvalid means that the spec is invalid; the message names the field.
	ReasonInvalid = "Invalid"
	// ReasonSelectionFailed means that resources cannot be selected, or an object cannot be distributed.
	ReasonSelectionFailed = "SelectionFailed"
	// ReasonSelectionEmpty means that a selector that matched objects matches nothing, and spec.allowEmpty is not set.
	ReasonSelectionEmpty = "SelectionEmpty"
	// ReasonPlacementNotFound means that a Placement does not exist or has no decision yet.
	ReasonPlacementNotFound = "PlacementNotFound"
	// ReasonRevisionNotFound means that the requested revision does not exist.
	ReasonRevisionNotFound = "RevisionNotFound"
	// ReasonOverrideFailed means that an override cannot be applied for some clusters.
	ReasonOverrideFailed = "OverrideFailed"
	// ReasonNotAllowed means that no ClusterSetBinding allows the objects, or their executor, on some clusters.
	ReasonNotAllowed = "NotAllowed"
	// ReasonDivisionFailed means that the replicas cannot be divided among the clusters.
	ReasonDivisionFailed = "DivisionFailed"
	// ReasonReplicasUnplaced means that no cluster has capacity for some of the replicas.
	ReasonReplicasUnplaced = "ReplicasUnplaced"
	// ReasonClustersFailed means that some clusters cannot apply the objects.
	ReasonClustersFailed = "ClustersFailed"
	// ReasonRolloutHalted means that the rollout has stopped, because more clusters failed than allowed or because it is
	// rolled back.
	ReasonRolloutHalted = "RolloutHalted"
	// ReasonWriteFailed means that the hub cannot write Works, and retries.
	ReasonWriteFailed = "WriteFailed"
	// ReasonDeleting means that the WorkSet is being deleted.
	ReasonDeleting = "Deleting"
)

// ClusterState is the state of a WorkSet on one cluster.
//
// +kubebuilder:validation:Enum=Pending;Progressing;Available;Failed;Unknown;Leaving
type ClusterState string

const (
	// ClusterPending means that the rollout does not allow the cluster to be updated yet.
	ClusterPending ClusterState = "Pending"
	// ClusterProgressing means that the cluster is being updated to the revision that was last assigned to it.
	ClusterProgressing ClusterState = "Progressing"
	// ClusterAvailable means that the cluster has the desired revision, and all objects are ready.
	ClusterAvailable ClusterState = "Available"
	// ClusterFailed means that the cluster reports a failure that does not resolve by itself, or that no revision can be
	// assigned to it.
	ClusterFailed ClusterState = "Failed"
	// ClusterUnknown means that the cluster is unreachable.
	ClusterUnknown ClusterState = "Unknown"
	// ClusterLeaving means that the cluster is no longer selected, and that its Works are not deleted yet.
	ClusterLeaving ClusterState = "Leaving"
)

// WorkSetStatus describes the observed state of a WorkSet. Its size is limited, independently of the number of
// clusters; see [MaxWorkSetStatusBytes].
type WorkSetStatus struct {
	// observedGeneration is the generation of the WorkSet that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// message summarizes the state of the WorkSet in one sentence. If there is an error, the message contains the error
	// and the next step.
	// +optional
	Message string `json:"message,omitempty"`

	// revision is the name of the revision that all clusters should have.
	// +optional
	Revision string `json:"revision,omitempty"`

	// revisions are the existing revisions, at most 64, the newest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Revisions []RevisionSummary `json:"revisions,omitempty"`

	// objects is the number of objects in the revision.
	// +optional
	Objects int32 `json:"objects,omitempty"`

	// counts contains the numbers of clusters by state.
	// +optional
	Counts ClusterCounts `json:"counts"`

	// rollout is the status of the rollout of the revision.
	// +optional
	Rollout RolloutStatus `json:"rollout,omitzero"`

	// clusters are the states of at most 100 clusters. They are sorted by state, in the order Failed, Unknown, Leaving,
	// Progressing, Pending and Available, and then by name.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Clusters []ClusterSummary `json:"clusters,omitempty"`

	// omittedClusters is the number of clusters that are not listed in clusters.
	// +optional
	OmittedClusters int32 `json:"omittedClusters,omitempty"`

	// feedback aggregates the values that spec.work.manifestOptions requests from the members, at most 64.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Feedback []FeedbackSummary `json:"feedback,omitempty"`

	// conditions are the conditions of the WorkSet: Applied, Available, Progressing, Degraded and Ready always; Stalled
	// only while an error requires an action of a user.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RevisionSummary summarizes one revision.
type RevisionSummary struct {
	// name is the name of the revision. It is derived from the content of the revision.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// number increases with each change. A revision that becomes the current one again gets a new number.
	// +required
	Number int64 `json:"number"`
	// createdAt is the time at which the revision was created.
	// +required
	CreatedAt metav1.Time `json:"createdAt"`
	// clusters is the number of clusters to which the revision is assigned.
	// +optional
	Clusters int32 `json:"clusters,omitempty"`
}

// ClusterCounts contains the numbers of clusters by state. One cluster can be included in several of them.
type ClusterCounts struct {
	// total is the number of clusters that the placements select.
	// +required
	Total int32 `json:"total"`
	// updated is the number of clusters with the current revision assigned.
	// +required
	Updated int32 `json:"updated"`
	// applied is the number of clusters that have applied all objects assigned to them.
	// +required
	Applied int32 `json:"applied"`
	// available is the number of clusters that have applied all objects, and all objects are ready.
	// +required
	Available int32 `json:"available"`
	// failed is the number of clusters that report a failure which does not resolve by itself, or to which nothing could
	// be assigned.
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// unknown is the number of clusters that are unreachable.
	// +optional
	Unknown int32 `json:"unknown,omitempty"`
	// leaving is the number of clusters that are no longer selected and still have Works. They are not included in total.
	// +optional
	Leaving int32 `json:"leaving,omitempty"`
}

// ClusterSummary is the state of a WorkSet on one cluster.
type ClusterSummary struct {
	// name is the name of the cluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// state is the state of the cluster.
	// +required
	State ClusterState `json:"state"`
	// revision is the revision that was last assigned to the cluster.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Revision string `json:"revision,omitempty"`
	// replicas is the number of replicas assigned to the cluster over all workloads, if replicas are divided.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// message is the error, or the reason why the cluster is not available yet. Empty: there is none.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// FeedbackSummary aggregates one reported value over all clusters.
type FeedbackSummary struct {
	// ResourceIdentifier identifies the object that the value belongs to.
	workv1alpha1.ResourceIdentifier `json:",inline"`
	// value is the name under which the value is reported.
	// +required
	Value string `json:"value"`
	// clusters is the number of clusters that report the value.
	// +required
	Clusters int32 `json:"clusters"`
	// sum is the sum of the values. Empty: not all values are numbers.
	// +optional
	Sum string `json:"sum,omitempty"`
	// values are the most frequent values, at most eight. Empty: all values are numbers.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Values []ValueCount `json:"values,omitempty"`
}

// ValueCount is a value, and the number of clusters that report it.
type ValueCount struct {
	// value is the value as text, truncated to 128 bytes.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Value string `json:"value"`
	// clusters is the number of clusters that report the value.
	// +required
	Clusters int32 `json:"clusters"`
}
