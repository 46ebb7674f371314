package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// What is on the Works of a WorkSet.
const (
	// WorkSetFinalizer keeps a WorkSet until the deletion of all its Works has begun.
	WorkSetFinalizer = GroupName + "/works"
	// WorkSetLabel is on each Work of a WorkSet, and on each WorkSetRevision, and has its name, by [LabelValue].
	WorkSetLabel = GroupName + "/workset"
	// WorkSetNamespaceLabel is on each Work of a WorkSet and has its namespace. It is empty for a ClusterWorkSet.
	WorkSetNamespaceLabel = GroupName + "/workset-namespace"
	// WorkSetAnnotation is on each Work of a WorkSet and has its namespace and name, as in shop/web, or
	// /web for a ClusterWorkSet.
	WorkSetAnnotation = GroupName + "/workset"
	// RevisionAnnotation is on the first Work that a cluster has of a WorkSet and names the revision that the cluster was
	// told.
	RevisionAnnotation = GroupName + "/revision"
	// RevisionSinceAnnotation is beside it and says since when, by RFC 3339.
	RevisionSinceAnnotation = GroupName + "/revision-since"
	// WorkSetUIDAnnotation is beside it and has the UID of the WorkSet that chose the cluster last. The Works of a cluster
	// that is not chosen are deleted only if this is the UID of the WorkSet: those of an earlier WorkSet with its name are
	// kept.
	WorkSetUIDAnnotation = GroupName + "/workset-uid"
	// PlacementsAnnotation is on the first Work that a cluster has of a WorkSet with several Placements. It contains the
	// names of the Placements that selected the cluster, sorted and separated by commas. Placements that are deleted and
	// created again select the clusters that they had before by this annotation.
	PlacementsAnnotation = GroupName + "/placements"
)

// Conditions of a WorkSet. They mean what those of a Work mean, for all its clusters together.
const (
	// ConditionApplied is True when each cluster has applied the revision that the rollout has assigned to it.
	ConditionApplied = "Applied"
	// ConditionReady is True when the rollout is complete, and all objects are available on all clusters. For a Placement:
	// when it is scheduled. It is derived from the other conditions.
	ConditionReady = "Ready"
	// ConditionStalled exists, and is True, only while an error needs an action of a user, or a Placement cannot be
	// scheduled.
	ConditionStalled = "Stalled"
	// ConditionAvailable is True when all objects are ready on all clusters.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while a revision is being rolled out.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when an error needs an action of a user.
	ConditionDegraded = "Degraded"
)

// Reasons of the conditions of a WorkSet. Progressing has the phase of the rollout for its reason.
const (
	// ReasonApplied: each cluster has the desired revision of all objects.
	ReasonApplied = "Applied"
	// ReasonNotApplied: some clusters do not have the desired revision yet.
	ReasonNotApplied = "NotApplied"
	// ReasonAvailable: all objects are ready on all clusters.
	ReasonAvailable = "Available"
	// ReasonNotAvailable: some objects are not ready on some clusters.
	ReasonNotAvailable = "NotAvailable"
	// ReasonNoClusters: the Placements have chosen no cluster.
	ReasonNoClusters = "NoClusters"
	// ReasonAsDesired: nothing is degraded.
	ReasonAsDesired = "AsDesired"
	// ReasonInvalid: the spec is invalid; the message names the field.
	ReasonInvalid = "Invalid"
	// ReasonSelectionFailed: resources cannot be selected, or an object cannot be distributed.
	ReasonSelectionFailed = "SelectionFailed"
	// ReasonSelectionEmpty: a selector that matched objects matches nothing, and spec.allowEmpty is not set.
	ReasonSelectionEmpty = "SelectionEmpty"
	// ReasonPlacementNotFound: a Placement does not exist or has no decision yet.
	ReasonPlacementNotFound = "PlacementNotFound"
	// ReasonRevisionNotFound: the requested revision does not exist.
	ReasonRevisionNotFound = "RevisionNotFound"
	// ReasonOverrideFailed: an override cannot be applied for some clusters.
	ReasonOverrideFailed = "OverrideFailed"
	// ReasonNotAllowed: no ClusterSetBinding allows the objects, or their executor, on some clusters.
	ReasonNotAllowed = "NotAllowed"
	// ReasonDivisionFailed: the replicas cannot be divided among the clusters.
	ReasonDivisionFailed = "DivisionFailed"
	// ReasonReplicasUnplaced: no cluster has capacity for some of the replicas.
	ReasonReplicasUnplaced = "ReplicasUnplaced"
	// ReasonClustersFailed: some clusters cannot apply the objects.
	ReasonClustersFailed = "ClustersFailed"
	// ReasonRolloutHalted: the rollout has stopped: more clusters failed than allowed, or it was rolled back.
	ReasonRolloutHalted = "RolloutHalted"
	// ReasonWriteFailed: the hub cannot write Works; it retries.
	ReasonWriteFailed = "WriteFailed"
	// ReasonDeleting: the WorkSet is being deleted.
	ReasonDeleting = "Deleting"
)

// ClusterState says how far one cluster is.
//
// +kubebuilder:validation:Enum=Pending;Progressing;Available;Failed;Unknown;Leaving
type ClusterState string

const (
	// ClusterPending clusters wait for their turn in the rollout.
	ClusterPending ClusterState = "Pending"
	// ClusterProgressing clusters are on their way to what they were told last.
	ClusterProgressing ClusterState = "Progressing"
	// ClusterAvailable clusters have it, and all of it is ready.
	ClusterAvailable ClusterState = "Available"
	// ClusterFailed clusters say that it will not come right by itself, or could not be told.
	ClusterFailed ClusterState = "Failed"
	// ClusterUnknown clusters cannot be reached.
	ClusterUnknown ClusterState = "Unknown"
	// ClusterLeaving clusters are no longer chosen, and still have objects to take back.
	ClusterLeaving ClusterState = "Leaving"
)

// WorkSetStatus is what has become of a WorkSet. It is bounded in size, however many clusters there are; see
// [MaxWorkSetStatusBytes].
type WorkSetStatus struct {
	// observedGeneration is the generation of the WorkSet that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// message is the one sentence that says how the WorkSet is doing and, if something is wrong, what and what to do.
	// +optional
	Message string `json:"message,omitempty"`

	// revision is the one that all clusters are to have.
	// +optional
	Revision string `json:"revision,omitempty"`

	// revisions that there are, the newest first, up to 64.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Revisions []RevisionSummary `json:"revisions,omitempty"`

	// objects is how many objects the revision has.
	// +optional
	Objects int32 `json:"objects,omitempty"`

	// counts of the clusters.
	// +optional
	Counts ClusterCounts `json:"counts"`

	// rollout of the revision.
	// +optional
	Rollout RolloutStatus `json:"rollout,omitzero"`

	// clusters are some of the clusters, those first that most want to be looked at: who has failed, is unknown, leaves,
	// is on the way, waits, and then who is available. In each state they are by name. There are up to 100.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Clusters []ClusterSummary `json:"clusters,omitempty"`

	// omittedClusters is how many more there are.
	// +optional
	OmittedClusters int32 `json:"omittedClusters,omitempty"`

	// feedback sums up the values that the members report, which manifestOptions ask for.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Feedback []FeedbackSummary `json:"feedback,omitempty"`

	// conditions are: Applied, Available, Progressing, Degraded.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RevisionSummary is a line of the history.
type RevisionSummary struct {
	// name of the revision, which follows from what is in it.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// number counts up with each change. A revision that comes again gets a new one.
	// +required
	Number int64 `json:"number"`
	// createdAt is when it was first there.
	// +required
	CreatedAt metav1.Time `json:"createdAt"`
	// clusters is how many clusters have it.
	// +optional
	Clusters int32 `json:"clusters,omitempty"`
}

// ClusterCounts says how many clusters are how far. One cluster can be in several of them.
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

// ClusterSummary is the state of one cluster.
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
	// message says what is wrong, or waited for. Empty: nothing is.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// FeedbackSummary is one value over all clusters.
type FeedbackSummary struct {
	// ResourceIdentifier is the object.
	workv1alpha1.ResourceIdentifier `json:",inline"`
	// value is the name that it is reported under.
	// +required
	Value string `json:"value"`
	// clusters is how many clusters report it.
	// +required
	Clusters int32 `json:"clusters"`
	// sum of the values, where all are numbers.
	// +optional
	Sum string `json:"sum,omitempty"`
	// values are those that are most frequent, where not all are numbers, up to eight.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Values []ValueCount `json:"values,omitempty"`
}

// ValueCount is a value, and how often there is it.
type ValueCount struct {
	// value as text, cut to 128 bytes.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Value string `json:"value"`
	// clusters is how many clusters report it.
	// +required
	Clusters int32 `json:"clusters"`
}
