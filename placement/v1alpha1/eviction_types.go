package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DisruptionBudget bounds what evictions by hand ([PlacementEviction]) may cost a placement. Exactly one of its fields
// is set.
//
// A cluster is available while it is healthy and what was placed there does its work. One that is not available may
// always be evicted. The clusters that there should be are numberOfClusters with PickN, and with PickAll all that would
// be chosen if none was evicted. As in policy/v1 PodDisruptionBudget, percentages are rounded up: 30% of 4 clusters are
// 2 that must be available, or 2 that need not be.
//
// +kubebuilder:validation:XValidation:rule="has(self.minAvailable) != has(self.maxUnavailable)",message="exactly one of minAvailable and maxUnavailable must be set"
type DisruptionBudget struct {
	// minAvailable is the number of clusters that must be available after an eviction: a number, or a percentage of the
	// desired number of clusters, rounded up. A value above the desired number means the desired number.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9]?[0-9]|100)%$`
	// +kubebuilder:validation:XValidation:rule="self >= 0 || self.endsWith('%')",message="minAvailable must be a number from 0, or a percentage from 0% to 100%"
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`

	// maxUnavailable is the number of desired clusters that may be unavailable after an eviction: a number, or a
	// percentage of the desired number of clusters, rounded up. With 0, an available cluster is evicted only after its
	// replacement is ready.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9]?[0-9]|100)%$`
	// +kubebuilder:validation:XValidation:rule="self >= 0 || self.endsWith('%')",message="maxUnavailable must be a number from 0, or a percentage from 0% to 100%"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// PlacementEvictionSpec defines which placement leaves which cluster.
//
// +kubebuilder:validation:XValidation:rule="has(self.placement) != has(self.clusterPlacement)",fieldPath=".placement",message="exactly one of placement and clusterPlacement must be set"
type PlacementEvictionSpec struct {
	// placement is the name of the Placement, in the namespace of the eviction.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Placement string `json:"placement,omitempty"`

	// clusterPlacement is the name of the ClusterPlacement, in place of placement. The eviction must be in the namespace
	// muster-cluster-scope. In another namespace it has no effect.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClusterPlacement string `json:"clusterPlacement,omitempty"`

	// cluster is the name of the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`

	// ttlSecondsAfterExecution is the time after its execution after which the eviction is deleted, from 0 to 31536000.
	// The placement may select the cluster again from then on. Unset: the eviction is not deleted.
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 31536000",message="ttlSecondsAfterExecution must be from 0 to 31536000 (a year); leave it out to keep the eviction until somebody deletes it"
	// +optional
	TTLSecondsAfterExecution *int32 `json:"ttlSecondsAfterExecution,omitempty"`
}

// ConditionExecuted of a PlacementEviction is True while the eviction keeps the placement off the cluster. It becomes
// True when the PlacementDecisions no longer contain the cluster.
const ConditionExecuted = "Executed"

// Reasons of the condition Executed. The eviction of a Placement that does not exist has the reason
// [ReasonPlacementNotFound].
const (
	// ReasonEvicted: True: the placement has left the cluster.
	ReasonEvicted = "Evicted"
	// ReasonNotPlaced: Executed is True, because the placement was not on the cluster when the hub first observed the
	// eviction.
	ReasonNotPlaced = "NotPlaced"

	// ReasonBudgetExhausted: the disruption budget of the placement does not allow the eviction now.
	ReasonBudgetExhausted = "BudgetExhausted"
	// ReasonWaitsForReplacement: spec.failover of the placement requires that another cluster is ready first.
	ReasonWaitsForReplacement = "WaitsForReplacement"
	// ReasonWaitsForTurn: the placement has left as many clusters in this period as its spec.failover allows.
	ReasonWaitsForTurn = "WaitsForTurn"
	// ReasonNotDecided: the placement has no decision; see its condition Scheduled.
	ReasonNotDecided = "NotDecided"
	// ReasonPickFixed: refused: the policy of the placement names this cluster; remove it from the policy.
	ReasonPickFixed = "PickFixed"
)

// PlacementEvictionStatus is the observed state of an eviction.
type PlacementEvictionStatus struct {
	// conditions are: Executed.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PlacementEviction removes a cluster from a placement as soon as the disruption budget allows it, and excludes the
// cluster while the eviction exists. Delete the eviction to allow the cluster again. An eviction that cannot be
// executed waits. The oldest eviction is executed first.
//
// If the placement does not have the cluster, the eviction is executed at once, and excludes the cluster as well.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=plev,categories=muster
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placement`
// +kubebuilder:printcolumn:name="ClusterPlacement",type=string,JSONPath=`.spec.clusterPlacement`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="Executed",type=string,JSONPath=`.status.conditions[?(@.type=="Executed")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Executed")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PlacementEviction struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the cluster and the placement. It cannot change; create another eviction for another cluster.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an eviction cannot be changed: delete it, and create another"
	// +required
	Spec PlacementEvictionSpec `json:"spec"`
	// status is the observed state of the PlacementEviction.
	// +optional
	Status PlacementEvictionStatus `json:"status,omitempty"`
}

// PlacementEvictionList is a list of PlacementEvictions.
//
// +kubebuilder:object:root=true
type PlacementEvictionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlacementEviction `json:"items"`
}
