package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PlacementSpec says which clusters are wanted.
type PlacementSpec struct {
	// policy is what the clusters are chosen by. Empty: all clusters that placements may be on.
	// +kubebuilder:default={type: PickAll}
	// +optional
	Policy PlacementPolicy `json:"policy,omitempty"`

	// decisionGroups divide the chosen clusters, so that what is rolled out can go from one to the next. A cluster is in
	// the first group that selects it; one that none selects is in a group without a name, which comes last.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	DecisionGroups []DecisionGroup `json:"decisionGroups,omitempty"`

	// clustersPerDecisionGroup is the maximum number of clusters in a part of a decision group: a number from 1, or a
	// percentage of the selected clusters, rounded up. Larger groups, including the group of clusters that no group
	// selects, are divided into parts; a Placement with many clusters uses larger parts, so that there are about 100 at
	// most. A rollout of type ProgressivePerGroup updates one part after the other. A cluster keeps its part while the
	// part is not too large; new clusters fill the first parts. Default: groups are not divided.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="self >= 1 || self.endsWith('%')",message="clustersPerDecisionGroup must be a number from 1, or a percentage from 1% to 100%"
	// +optional
	ClustersPerDecisionGroup *intstr.IntOrString `json:"clustersPerDecisionGroup,omitempty"`

	// failover allows the placement to leave clusters that are unreachable or not ready, and says how fast. Unset:
	// chosen clusters stay, whatever their health is; their taints membership.muster.dev/unreachable and
	// membership.muster.dev/not-ready only keep new placements away. A NoExecute taint of a user makes a placement
	// leave in any case: at once if failover is unset.
	// +optional
	Failover *FailoverPolicy `json:"failover,omitempty"`

	// disruptionBudget bounds what evictions by hand may cost. Unset: they are executed at once.
	// +optional
	DisruptionBudget *DisruptionBudget `json:"disruptionBudget,omitempty"`
}

// DecisionGroup is some of the clusters that are chosen.
type DecisionGroup struct {
	// name of the group, a DNS label.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a decision group must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	Name string `json:"name"`

	// selector selects the clusters of the group by their labels. Empty: all that no earlier group has.
	// +optional
	Selector metav1.LabelSelector `json:"selector,omitempty"`

	// properties select the clusters of the group by their properties, in addition to the selector. A cluster must match
	// all of them. Default: the selector alone selects the clusters.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Properties []PropertyRequirement `json:"properties,omitempty"`
}

// RescheduleAnnotation on a Placement has it decided anew whenever its value changes, without regard to what was chosen
// before.
const RescheduleAnnotation = GroupName + "/reschedule"

// ConditionScheduled of a Placement is True when its policy is satisfied.
const ConditionScheduled = "Scheduled"

// Reasons of the condition Scheduled.
const (
	// ReasonScheduled: the policy is satisfied.
	ReasonScheduled = "Scheduled"
	// ReasonUnschedulable: fewer clusters than the policy requires are eligible; the message counts the causes.
	ReasonUnschedulable = "Unschedulable"
	// ReasonInvalidPolicy: the policy is invalid; the message names the field.
	ReasonInvalidPolicy = "InvalidPolicy"
	// ReasonDecideFailed: the decision failed and is retried.
	ReasonDecideFailed = "DecideFailed"
)

// ConditionPropertiesKnown of a Placement is False while its affinity, its sorters or its decision groups name a
// property or a resource that no cluster reports, such as a name with a typo, or a sorter names a property that is not
// a number on any cluster: such a requirement matches no cluster, and such a sorter prefers none. A Placement that
// names none does not have the condition.
const ConditionPropertiesKnown = "PropertiesKnown"

// Reasons of the condition PropertiesKnown.
const (
	// ReasonPropertiesKnown: at least one cluster reports each property.
	ReasonPropertiesKnown = "PropertiesKnown"
	// ReasonUnknownProperty: one of the properties can never match; the message names the field and the remedy.
	ReasonUnknownProperty = "UnknownProperty"
)

// ConditionClustersObserved of a Placement is False while a chosen cluster does not exist on the hub although no
// request to remove it was observed, such as after a restore of the hub. Such a cluster stays chosen until it is
// removed on request, or left by a PlacementEviction. A Placement that never chose such a cluster does not have the
// condition.
const ConditionClustersObserved = "ClustersObserved"

// Reasons of the condition ClustersObserved.
const (
	// ReasonClustersObserved: every chosen cluster exists.
	ReasonClustersObserved = "ClustersObserved"
	// ReasonClusterMissing: a chosen cluster does not exist; the message names it and the remedy.
	ReasonClusterMissing = "ClusterMissing"
)

// ConditionClustersAllowed of a Placement is False while its namespace has no ClusterSetBinding, or while a chosen
// cluster stays although no permission for it is observed. A Placement on a hub that does not restrict namespaces does
// not have the condition.
const ConditionClustersAllowed = "ClustersAllowed"

// Reasons of the condition ClustersAllowed.
const (
	// ReasonClustersAllowed: bindings grant every chosen cluster.
	ReasonClustersAllowed = "ClustersAllowed"
	// ReasonClustersWithdrawn means that clusters were left because a binding was deleted, or because its ClusterSet does
	// not select them any more. The remaining clusters are granted. It is also the reason of an Event.
	ReasonClustersWithdrawn = "ClustersWithdrawn"
	// ReasonNoBinding: the namespace has no ClusterSetBinding; the message contains the command that creates one.
	ReasonNoBinding = "NoBinding"
	// ReasonGrantNotObserved means that chosen clusters stay although the binding or the set that granted them is missing.
	ReasonGrantNotObserved = "GrantNotObserved"
)

// PlacementStatus is what has become of a placement.
type PlacementStatus struct {
	// observedGeneration is the generation of the placement that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// decidedGeneration is the generation that was decided last: an earlier one while this one cannot be.
	// +optional
	DecidedGeneration int64 `json:"decidedGeneration,omitempty"`

	// selectedClusters is how many clusters are chosen.
	// +optional
	SelectedClusters int32 `json:"selectedClusters"`

	// desiredClusters is how many clusters the policy asks for: numberOfClusters with PickN, the length of
	// clusterNames with PickFixed, and with PickAll as many as there are to choose.
	// +optional
	DesiredClusters int32 `json:"desiredClusters"`

	// readyClusters is how many of the chosen clusters are healthy.
	// +optional
	ReadyClusters int32 `json:"readyClusters"`

	// rescheduled is the value of the annotation placement.muster.dev/reschedule that was heeded last.
	// +optional
	Rescheduled string `json:"rescheduled,omitempty"`

	// explanation explains the decision, if the annotation placement.muster.dev/explain requests that.
	// +optional
	Explanation *Explanation `json:"explanation,omitempty"`

	// recentEvictions are the evictions of the last period that spec.failover.maxEvictions counts, the first first.
	// It may contain older ones.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	RecentEvictions []EvictionCount `json:"recentEvictions,omitempty"`

	// conditions are: Scheduled, and PropertiesKnown if the Placement names properties or sorters.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Placement says where: it chooses clusters of the fleet by a policy.
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
