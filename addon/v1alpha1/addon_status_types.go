package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// AddonFinalizer keeps a deleted Addon until the add-on is removed from all members.
const AddonFinalizer = GroupName + "/members"

// Conditions of an Addon.
const (
	// ConditionInstalled of an Addon is True when all selected members have the desired configuration.
	ConditionInstalled = "Installed"
	// ConditionDegraded of an Addon or a MemberAddon is True when a failure requires a change by a user.
	ConditionDegraded = "Degraded"
)

// Reasons of the conditions of an Addon. The reasons Updated, Updating, Removing, NoAgent and AsDesired of a
// MemberAddon apply to an Addon as a summary of all members.
const (
	// ReasonInvalid: the spec is invalid; the message contains the cause.
	ReasonInvalid = "Invalid"
	// ReasonPlacementNotFound: a Placement does not exist or has no decision yet.
	ReasonPlacementNotFound = "PlacementNotFound"
	// ReasonNotAllowed: the namespace of a Placement may not place on some of the members. These members do not get the
	// add-on.
	ReasonNotAllowed = "NotAllowed"
	// ReasonEarlierAddon: MemberAddons of an earlier Addon with the same name are kept, because no Placement has selected
	// their members.
	ReasonEarlierAddon = "EarlierAddon"
	// ReasonClustersFailed: the add-on is degraded on some members.
	ReasonClustersFailed = "ClustersFailed"
	// ReasonRolloutHalted: the rollout failed on more members than its limit allows.
	ReasonRolloutHalted = "RolloutHalted"
)

// AddonStatus describes the observed state of an Addon.
type AddonStatus struct {
	// observedGeneration is the generation of the Addon that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// message is a summary of the state of the add-on. If an error occurred, the message contains the cause and the next
	// step.
	// +optional
	Message string `json:"message,omitempty"`

	// counts are the numbers of members by state.
	// +optional
	Counts AddonCounts `json:"counts"`

	// placements describes the rollout of each Placement in spec.install.placements, in the same order.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Placements []PlacementStatus `json:"placements,omitempty"`

	// forcedRemovals are the latest forced removals, the newest first. At most 32 are kept.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	ForcedRemovals []ForcedRemoval `json:"forcedRemovals,omitempty"`

	// conditions of the Addon: Ready, Stalled, Installed, Available and Degraded.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AddonCounts are the numbers of members by the state of an add-on.
type AddonCounts struct {
	// total is the number of MemberAddons.
	// +required
	Total int32 `json:"total"`
	// updated is the number of members that have the desired configuration.
	// +required
	Updated int32 `json:"updated"`
	// available is the number of members on which the add-on is available.
	// +required
	Available int32 `json:"available"`
	// degraded is the number of members on which a failure requires a change by a user.
	// +optional
	Degraded int32 `json:"degraded,omitempty"`
	// unknown is the number of members on which the health is unknown, for example because the member is unreachable.
	// +optional
	Unknown int32 `json:"unknown,omitempty"`
	// removing is the number of members from which the add-on is being removed.
	// +optional
	Removing int32 `json:"removing,omitempty"`
}

// PlacementStatus describes the rollout of an add-on to the clusters of one Placement.
type PlacementStatus struct {
	// namespace of the Placement. Empty: name is the name of a ClusterPlacement.
	// +required
	Namespace string `json:"namespace"`
	// name of the Placement or ClusterPlacement.
	// +required
	Name string `json:"name"`
	// message describes an error of the Placement, for example that the Placement does not exist. Empty: no error.
	// +optional
	Message string `json:"message,omitempty"`
	// rollout is the state of the rollout of the configuration. If the status is too long, the last stages are omitted;
	// see [AddonStatus.Trim].
	// +optional
	Rollout placementv1alpha1.RolloutStatus `json:"rollout,omitzero"`
}

// ForcedRemoval is the record of one forced removal.
type ForcedRemoval struct {
	// member from which the add-on was removed.
	// +required
	Member string `json:"member"`
	// time is the time at which the removal was forced.
	// +required
	Time metav1.Time `json:"time"`
	// message names the incomplete step of the removal, and the objects that may remain on the member.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}
