package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DisruptionBudget limits how many clusters of a placement the execution of a [PlacementEviction] may make unavailable.
// Exactly one of its fields must be set.
//
// A cluster is available while it is healthy and the workloads of the placement are ready on it. A cluster that is not
// available may always be evicted. The desired number of clusters is numberOfClusters with PickN. With PickAll it is
// the number of clusters that would be selected without evictions. Percentages are rounded up, as in a
// PodDisruptionBudget of policy/v1: for 4 clusters, minAvailable 30% requires 2 available clusters, and maxUnavailable
// 30% allows 2 unavailable clusters.
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

// PlacementEvictionSpec defines which cluster is evicted from which placement.
//
// +kubebuilder:validation:XValidation:rule="has(self.placement) != has(self.clusterPlacement)",fieldPath=".placement",message="exactly one of placement and clusterPlacement must be set"
type PlacementEvictionSpec struct {
	// placement is the name of the Placement, in the namespace of the eviction.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Placement string `json:"placement,omitempty"`

	// clusterPlacement is the name of the ClusterPlacement, instead of placement. The eviction must be in the namespace
	// muster-cluster-scope; in another namespace it has no effect.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClusterPlacement string `json:"clusterPlacement,omitempty"`

	// cluster is the name of the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`

	// ttlSecondsAfterExecution is the number of seconds between the execution and the deletion of the eviction, from 0 to
	// 31536000. After the deletion, the placement may select the cluster again. Unset: the eviction is not deleted
	// automatically.
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 31536000",message="ttlSecondsAfterExecution must be from 0 to 31536000 (a year); leave it out to keep the eviction until it is deleted"
	// +optional
	TTLSecondsAfterExecution *int32 `json:"ttlSecondsAfterExecution,omitempty"`
}

// ConditionExecuted of a PlacementEviction is True while the eviction excludes the cluster from the placement. It
// becomes True when the PlacementDecisions no longer contain the cluster.
const ConditionExecuted = "Executed"

// Reasons of the condition Executed. The eviction of a Placement that does not exist has the reason
// [ReasonPlacementNotFound].
const (
	// ReasonEvicted means that Executed is True, because the placement has left the cluster.
	ReasonEvicted = "Evicted"
	// ReasonNotPlaced means that Executed is True, because the placement was not on the cluster when the hub first
	// observed the eviction.
	ReasonNotPlaced = "NotPlaced"

	// ReasonBudgetExhausted means that the disruption budget of the placement does not allow the eviction now.
	ReasonBudgetExhausted = "BudgetExhausted"
	// ReasonWaitsForReplacement means that spec.failover of the placement requires another cluster to be ready first.
	ReasonWaitsForReplacement = "WaitsForReplacement"
	// ReasonWaitsForTurn means that the placement has already left as many clusters in this period as its spec.failover
	// allows.
	ReasonWaitsForTurn = "WaitsForTurn"
	// ReasonNotDecided means that the placement has no decision; see its condition Scheduled.
	ReasonNotDecided = "NotDecided"
	// ReasonPickFixed means that the eviction is rejected, because the policy of the placement names the cluster. Remove
	// the cluster from the policy.
	ReasonPickFixed = "PickFixed"
)

// PlacementEvictionStatus describes the observed state of a PlacementEviction.
type PlacementEvictionStatus struct {
	// conditions are the conditions of the eviction. The only type is Executed.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PlacementEviction removes a cluster from a placement as soon as the disruption budget allows it, and excludes the
// cluster while the eviction exists. Delete the eviction to allow the cluster again. An eviction that cannot be
// executed yet stays pending. The oldest eviction is executed first.
//
// If the placement is not on the cluster, the eviction is executed immediately, and excludes the cluster as well.
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

	// spec defines the cluster and the placement. It is immutable; create another eviction for another cluster.
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
