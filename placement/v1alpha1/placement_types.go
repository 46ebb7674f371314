package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PlacementSpec defines which clusters a Placement selects, and how it leaves them.
type PlacementSpec struct {
	// policy defines which clusters are selected. Empty: all clusters that placements may use.
	// +kubebuilder:default={type: PickAll}
	// +optional
	Policy PlacementPolicy `json:"policy,omitempty"`

	// decisionGroups divide the selected clusters into groups, so that a rollout can update one group after the other. A
	// cluster belongs to the first group that selects it. Clusters that no group selects are in a group without a name,
	// which comes last. Empty: all clusters are in that group.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	DecisionGroups []DecisionGroup `json:"decisionGroups,omitempty"`

	// clustersPerDecisionGroup is the maximum number of clusters in a part of a decision group: a number from 1, or a
	// percentage of the selected clusters, rounded up. Larger groups are divided into parts, including the group of the
	// clusters that no group selects. If a Placement has many clusters, the parts are larger, so that there are about 100
	// parts at most. A rollout of type ProgressivePerGroup updates one part after the other. A cluster stays in its part
	// while the part is not too large; new clusters fill the first parts. Unset: groups are not divided.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="self >= 1 || self.endsWith('%')",message="clustersPerDecisionGroup must be a number from 1, or a percentage from 1% to 100%"
	// +optional
	ClustersPerDecisionGroup *intstr.IntOrString `json:"clustersPerDecisionGroup,omitempty"`

	// failover allows the placement to leave clusters that are unreachable or not ready, and limits the rate. Unset:
	// selected clusters stay, whatever their health is; their taints membership.muster.dev/unreachable and
	// membership.muster.dev/not-ready only prevent new placements. A NoExecute taint of a user makes the placement leave
	// the cluster in any case: immediately if failover is unset.
	// +optional
	Failover *FailoverPolicy `json:"failover,omitempty"`

	// disruptionBudget limits how many clusters PlacementEvictions may make unavailable. Unset: evictions are executed
	// immediately.
	// +optional
	DisruptionBudget *DisruptionBudget `json:"disruptionBudget,omitempty"`
}

// DecisionGroup is a group of selected clusters.
type DecisionGroup struct {
	// name is the name of the group. It must be a DNS label.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a decision group must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	Name string `json:"name"`

	// selector selects the clusters of the group by their labels. Empty: all clusters that no earlier group selects.
	// +optional
	Selector metav1.LabelSelector `json:"selector,omitempty"`

	// properties select the clusters of the group by their properties, in addition to the selector. A cluster must match
	// all of them. Empty: only the selector applies.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Properties []PropertyRequirement `json:"properties,omitempty"`
}

// RescheduleAnnotation on a Placement requests a new decision that does not consider the previous one, each time its
// value changes. The removal of the annotation requests nothing. The value at the first decision about a Placement
// requests nothing either.
const RescheduleAnnotation = GroupName + "/reschedule"

// ConditionScheduled of a Placement is True when its policy is satisfied.
const ConditionScheduled = "Scheduled"

// Reasons of the condition Scheduled.
const (
	// ReasonScheduled means that the policy is satisfied.
	ReasonScheduled = "Scheduled"
	// ReasonUnschedulable means that fewer clusters than the policy requires are eligible; the message counts the causes.
	ReasonUnschedulable = "Unschedulable"
	// ReasonInvalidPolicy means that the policy is invalid; the message names the field.
	ReasonInvalidPolicy = "InvalidPolicy"
	// ReasonDecideFailed means that the decision failed and is retried.
	ReasonDecideFailed = "DecideFailed"
)

// ConditionPropertiesKnown of a Placement is False while its affinity, sorters or decision groups refer to a property
// or a resource that no cluster reports, such as a misspelled name, or while a sorter refers to a property that is not
// a number on any cluster. Such a requirement matches no cluster, and such a sorter prefers none. A Placement that
// refers to no property and no resource does not have the condition.
const ConditionPropertiesKnown = "PropertiesKnown"

// Reasons of the condition PropertiesKnown.
const (
	// ReasonPropertiesKnown means that at least one cluster reports each property.
	ReasonPropertiesKnown = "PropertiesKnown"
	// ReasonUnknownProperty means that one of the properties can never match; the message names the field and the remedy.
	ReasonUnknownProperty = "UnknownProperty"
)

// ConditionClustersObserved of a Placement is False while a selected cluster does not exist on the hub, although no
// request to remove the cluster was observed. This happens, for example, after a restore of the hub. Such a cluster
// stays selected until its removal is requested, or until a PlacementEviction removes it from the placement. A
// Placement that never selected such a cluster does not have the condition.
const ConditionClustersObserved = "ClustersObserved"

// Reasons of the condition ClustersObserved.
const (
	// ReasonClustersObserved means that every selected cluster exists on the hub.
	ReasonClustersObserved = "ClustersObserved"
	// ReasonClusterMissing means that a selected cluster does not exist on the hub; the message names the cluster and the
	// remedy.
	ReasonClusterMissing = "ClusterMissing"
)

// ConditionClustersAllowed of a Placement is False while its namespace has no ClusterSetBinding, or while a selected
// cluster stays although no binding that grants it is observed. If the hub does not restrict namespaces, a Placement
// does not have the condition.
const ConditionClustersAllowed = "ClustersAllowed"

// Reasons of the condition ClustersAllowed.
const (
	// ReasonClustersAllowed means that bindings grant every selected cluster.
	ReasonClustersAllowed = "ClustersAllowed"
	// ReasonClustersWithdrawn means that the placement left clusters because a binding was deleted, or because its
	// ClusterSet no longer selects them. Bindings grant the remaining clusters. It is also the reason of an Event.
	ReasonClustersWithdrawn = "ClustersWithdrawn"
	// ReasonNoBinding means that the namespace has no ClusterSetBinding; the message contains the command that creates
	// one.
	ReasonNoBinding = "NoBinding"
	// ReasonGrantNotObserved means that selected clusters stay although the binding or the ClusterSet that granted them
	// does not exist.
	ReasonGrantNotObserved = "GrantNotObserved"
)

// PlacementStatus describes the observed state of a Placement.
type PlacementStatus struct {
	// observedGeneration is the generation of the Placement that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// decidedGeneration is the generation of the last decision. It is less than observedGeneration while the current
	// generation cannot be decided.
	// +optional
	DecidedGeneration int64 `json:"decidedGeneration,omitempty"`

	// selectedClusters is the number of selected clusters.
	// +optional
	SelectedClusters int32 `json:"selectedClusters"`

	// desiredClusters is the number of clusters that the policy requests: numberOfClusters with PickN, the length of
	// clusterNames with PickFixed, and the number of eligible clusters with PickAll.
	// +optional
	DesiredClusters int32 `json:"desiredClusters"`

	// readyClusters is the number of selected clusters that are healthy.
	// +optional
	ReadyClusters int32 `json:"readyClusters"`

	// rescheduled is the value of the annotation placement.muster.dev/reschedule at the last decision.
	// +optional
	Rescheduled string `json:"rescheduled,omitempty"`

	// explanation explains the decision. Set while the annotation placement.muster.dev/explain requests it.
	// +optional
	Explanation *Explanation `json:"explanation,omitempty"`

	// recentEvictions are the evictions of the last period that count toward spec.failover.maxEvictions, the oldest first.
	// Older evictions may be included.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	RecentEvictions []EvictionCount `json:"recentEvictions,omitempty"`

	// conditions are the conditions of the Placement: Scheduled and Ready always; Stalled, PropertiesKnown,
	// ClustersObserved and ClustersAllowed only if they apply.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Placement selects clusters of the fleet by a policy. The selected clusters are in its PlacementDecisions.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pl,categories=muster
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.policy.type`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredClusters`
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selectedClusters`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyClusters`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Placement struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the Placement.
	// +kubebuilder:default={}
	// +optional
	Spec PlacementSpec `json:"spec,omitempty"`
	// status is the observed state of the Placement.
	// +optional
	Status PlacementStatus `json:"status,omitempty"`
}

// PlacementList is a list of Placements.
//
// +kubebuilder:object:root=true
type PlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Placement `json:"items"`
}
