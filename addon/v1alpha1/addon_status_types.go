package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// AddonFinalizer keeps an Addon until it is removed from all members.
const AddonFinalizer = GroupName + "/members"

// Conditions of an Addon.
const (
	// ConditionInstalled of an Addon is True when all members that are to have it have it as it is to be.
	ConditionInstalled = "Installed"
	// ConditionDegraded of an Addon is True when something will not come right by itself.
	ConditionDegraded = "Degraded"
)

// Reasons of the conditions of an Addon. It also has those of a MemberAddon that say the same of all: Updated, Updating, Removing, NoAgent
// and AsDesired.
const (
	ReasonInvalid           = "Invalid"           // the spec cannot be right: it says what
	ReasonPlacementNotFound = "PlacementNotFound" // a Placement is not there, or not decided yet
	ReasonEarlierAddon      = "EarlierAddon"      // MemberAddons of an earlier Addon are kept: no Placement has chosen their members
	ReasonClustersFailed    = "ClustersFailed"    // it is degraded on some members
	ReasonRolloutHalted     = "RolloutHalted"     // on more members than may it has failed
)

// AddonStatus is what has become of an add-on.
type AddonStatus struct {
	// ObservedGeneration is the generation of the Addon that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Message is the one sentence that says how the add-on is doing and, if something is wrong, what and what to do.
	// +optional
	Message string `json:"message,omitempty"`

	// Counts of its members.
	// +optional
	Counts AddonCounts `json:"counts"`

	// Placements has the rollout for each Placement of the install strategy, in its order.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Placements []PlacementStatus `json:"placements,omitempty"`

	// ForcedRemovals are the latest removals that were forced, the newest first, up to 32.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	ForcedRemovals []ForcedRemoval `json:"forcedRemovals,omitempty"`

	// Conditions: Installed, Degraded.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AddonCounts says on how many members an add-on is how far.
type AddonCounts struct {
	// Total of its MemberAddons.
	Total int32 `json:"total"`
	// Updated have the configuration that they are to have.
	Updated int32 `json:"updated"`
	// Available are well.
	Available int32 `json:"available"`
	// Degraded say that it will not come right by itself.
	// +optional
	Degraded int32 `json:"degraded,omitempty"`
	// Unknown are those of which nobody knows how they are, for example since they cannot be reached.
	// +optional
	Unknown int32 `json:"unknown,omitempty"`
	// Removing are on their way out.
	// +optional
	Removing int32 `json:"removing,omitempty"`
}

// PlacementStatus is the rollout to the clusters of a Placement.
type PlacementStatus struct {
	// Namespace of the Placement.
	Namespace string `json:"namespace"`
	// Name of the Placement.
	Name string `json:"name"`
	// Message says what is wrong with the Placement, such as that it is not there. Empty: nothing is.
	// +optional
	Message string `json:"message,omitempty"`
	// Rollout of the configuration. Its stages may be fewer than there are; see [AddonStatus.Trim].
	// +optional
	Rollout placementv1alpha1.RolloutStatus `json:"rollout,omitzero"`
}

// ForcedRemoval is the record of a removal that was forced.
type ForcedRemoval struct {
	// Member that the add-on was removed from.
	Member string `json:"member"`
	// Time when it was forced.
	Time metav1.Time `json:"time"`
	// Message says what was waited for, and what may be left on the member.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}
