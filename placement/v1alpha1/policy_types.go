package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyType defines how many clusters a policy selects.
//
// +kubebuilder:validation:Enum=PickAll;PickN;PickFixed
type PolicyType string

const (
	// PickAll selects every eligible cluster. It is the default.
	PickAll PolicyType = "PickAll"
	// PickN selects numberOfClusters of the eligible clusters, in the order of their scores.
	PickN PolicyType = "PickN"
	// PickFixed selects the clusters in clusterNames, if they are eligible.
	PickFixed PolicyType = "PickFixed"
)

// RebalancePolicy defines whether a selected, healthy cluster may be replaced by a better one.
//
// +kubebuilder:validation:Enum=Never;Always
type RebalancePolicy string

const (
	// RebalanceNever keeps selected clusters. It is the default.
	RebalanceNever RebalancePolicy = "Never"
	// RebalanceAlways compares selected clusters with all others in every decision.
	RebalanceAlways RebalancePolicy = "Always"
)

// PlacementPolicy defines which clusters are selected. The zero PlacementPolicy selects all clusters that placements
// may use.
//
// PickFixed selects the clusters by their names, so the fields that filter or score clusters are forbidden.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'PickN' || has(self.numberOfClusters)",fieldPath=".numberOfClusters",reason=FieldValueRequired,message="numberOfClusters is required with type PickN; use type PickAll for all clusters"
// +kubebuilder:validation:XValidation:rule="self.type == 'PickN' || !has(self.numberOfClusters)",fieldPath=".numberOfClusters",reason=FieldValueForbidden,message="numberOfClusters may only be set with type PickN: remove it, or set the type to PickN"
// +kubebuilder:validation:XValidation:rule="self.type != 'PickFixed' || (has(self.clusterNames) && size(self.clusterNames) > 0)",fieldPath=".clusterNames",reason=FieldValueRequired,message="clusterNames is required with type PickFixed: name the clusters, or set another type"
// +kubebuilder:validation:XValidation:rule="self.type == 'PickFixed' || !has(self.clusterNames) || size(self.clusterNames) == 0",fieldPath=".clusterNames",reason=FieldValueForbidden,message="clusterNames may only be set with type PickFixed: remove it, or set the type to PickFixed"
// +kubebuilder:validation:XValidation:rule="self.type != 'PickFixed' || !has(self.affinity)",fieldPath=".affinity",reason=FieldValueForbidden,message="type PickFixed selects clusters by clusterNames only: remove affinity, or set the type to PickAll or PickN"
// +kubebuilder:validation:XValidation:rule="self.type != 'PickFixed' || !has(self.sorters) || size(self.sorters) == 0",fieldPath=".sorters",reason=FieldValueForbidden,message="type PickFixed selects clusters by clusterNames only: remove sorters, or set the type to PickAll or PickN"
// +kubebuilder:validation:XValidation:rule="self.type != 'PickFixed' || !has(self.tolerations) || size(self.tolerations) == 0",fieldPath=".tolerations",reason=FieldValueForbidden,message="type PickFixed selects clusters by clusterNames only: remove tolerations, or set the type to PickAll or PickN"
// +kubebuilder:validation:XValidation:rule="self.type != 'PickFixed' || !has(self.topologySpread) || size(self.topologySpread) == 0",fieldPath=".topologySpread",reason=FieldValueForbidden,message="type PickFixed selects clusters by clusterNames only: remove topologySpread, or set the type to PickAll or PickN"
// +kubebuilder:validation:XValidation:rule="self.type != 'PickFixed' || !has(self.groupSpread) || size(self.groupSpread) == 0",fieldPath=".groupSpread",reason=FieldValueForbidden,message="type PickFixed selects clusters by clusterNames only: remove groupSpread, or set the type to PickAll or PickN"
// +kubebuilder:validation:XValidation:rule="self.type != 'PickFixed' || !has(self.prioritizers) || size(self.prioritizers) == 0",fieldPath=".prioritizers",reason=FieldValueForbidden,message="type PickFixed selects clusters by clusterNames only: remove prioritizers, or set the type to PickAll or PickN"
// +kubebuilder:validation:XValidation:rule="self.type != 'PickFixed' || !has(self.resources) || size(self.resources) == 0",fieldPath=".resources",reason=FieldValueForbidden,message="type PickFixed selects clusters by clusterNames only: remove resources, or set the type to PickAll or PickN"
// +kubebuilder:validation:XValidation:rule="self.type != 'PickFixed' || !has(self.requiredAPIs) || size(self.requiredAPIs) == 0",fieldPath=".requiredAPIs",reason=FieldValueForbidden,message="type PickFixed selects clusters by clusterNames only: remove requiredAPIs, or set the type to PickAll or PickN"
// +kubebuilder:validation:XValidation:rule="self.type != 'PickAll' || !has(self.topologySpread) || self.topologySpread.all(c, c.whenUnsatisfiable != 'DoNotSchedule')",fieldPath=".topologySpread",message="topologySpread with DoNotSchedule may only be set with type PickN, because PickAll selects every cluster: set whenUnsatisfiable to ScheduleAnyway, or the type to PickN"
type PlacementPolicy struct {
	// type defines how many clusters are selected: PickAll selects every eligible cluster, PickN selects numberOfClusters
	// of them, and PickFixed selects the clusters in clusterNames.
	// +kubebuilder:default=PickAll
	// +optional
	Type PolicyType `json:"type,omitempty"`

	// numberOfClusters is the number of clusters that PickN selects, from 0 to 10000. Required with PickN, and forbidden
	// otherwise.
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 10000",message="numberOfClusters must be from 0 to 10000; use type PickAll for all clusters"
	// +optional
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`

	// clusterNames are the names of the clusters that PickFixed selects. Required with PickFixed, and forbidden otherwise.
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a cluster must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`

	// affinity defines which clusters are eligible, and which of them are preferred.
	// +optional
	Affinity *ClusterAffinity `json:"affinity,omitempty"`

	// sorters score clusters by the value of a numeric property.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Sorters []PropertySorter `json:"sorters,omitempty"`

	// tolerations make clusters eligible despite their taints.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tolerations []Toleration `json:"tolerations,omitempty"`

	// topologySpread distributes the selected clusters evenly among domains, such as regions. With PickAll only
	// ScheduleAnyway is allowed.
	// +listType=map
	// +listMapKey=topologyKey
	// +kubebuilder:validation:MaxItems=4
	// +optional
	TopologySpread []TopologySpreadConstraint `json:"topologySpread,omitempty"`

	// groupSpread limits the number of groups, such as providers, that clusters are selected from.
	// +listType=map
	// +listMapKey=label
	// +kubebuilder:validation:MaxItems=4
	// +optional
	GroupSpread []GroupSpreadConstraint `json:"groupSpread,omitempty"`

	// rebalance defines whether a selected, healthy cluster may be replaced by another one. Never: a selected cluster
	// stays while it is in the fleet, matches the affinity, and has no NoExecute taint of a user that is not tolerated.
	// Spread constraints, sorters and preferences apply to newly selected clusters only. If numberOfClusters is reduced,
	// unhealthy clusters are removed first, and then the clusters with the lowest scores. Always: every decision considers
	// all clusters, so the placement moves between healthy clusters to satisfy a spread constraint, or for a better score.
	// The annotation placement.muster.dev/reschedule rebalances once. Unset: Never. Ignored with type PickFixed.
	// +optional
	Rebalance RebalancePolicy `json:"rebalance,omitempty"`

	// prioritizers override the weights that the scheduler's profile gives to its score plugins.
	// +listType=map
	// +listMapKey=plugin
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Prioritizers []Prioritizer `json:"prioritizers,omitempty"`

	// resources are the amounts of resources that a cluster must have available.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, type(self[name]) == int ? self[name] >= 0 : !self[name].startsWith('-'))",message="resources must not be negative: set the amount of each resource that a cluster must have available"
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="resources must have qualified names such as cpu or nvidia.com/gpu: an optional DNS prefix and a slash, then up to 63 letters, digits, '-', '_' or '.'"
	// +kubebuilder:validation:XValidation:rule="self.all(name, type(self[name]) == int || !self[name].matches(r'e.\\d'))",message="resources must not have exponents that are signed or have more than one digit: write a suffix such as m, k, M, G, Ki, Mi or Gi"
	// +kubebuilder:validation:XValidation:rule="self.all(name, type(self[name]) == int || !self[name].matches(r'E.\\d'))",message="resources must not have exponents that are signed or have more than one digit: write a suffix such as m, k, M, G, Ki, Mi or Gi"
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`

	// requiredAPIs lists the kinds that a cluster must serve. The group "" is the core group. A cluster that does not
	// report its APIs is treated as if it served all kinds, and the message of the condition Scheduled reports this. A
	// MemberCluster reports its APIs in status.apis if its agent is configured to do so.
	// +listType=map
	// +listMapKey=group
	// +listMapKey=version
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:XValidation:rule="size(self.version) > 0 && size(self.version) <= 63",fieldPath=".version",message="version must be the version of an API, such as v1"
	// +kubebuilder:validation:items:XValidation:rule="size(self.kind) > 0 && size(self.kind) <= 63",fieldPath=".kind",message="kind must be the kind of an API, such as Deployment"
	// +kubebuilder:validation:items:XValidation:rule="size(self.group) <= 253",fieldPath=".group",message="group must be the group of an API, such as apps, or empty for the core group"
	// +optional
	RequiredAPIs []metav1.GroupVersionKind `json:"requiredAPIs,omitempty"`

	// profile is the name of the scheduler's profile. Empty: the default profile.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="profile must be a qualified name such as example.com/cheapest: an optional DNS prefix and a slash, then up to 63 letters, digits, '-', '_' or '.'"
	// +optional
	Profile string `json:"profile,omitempty"`
}

// SortOrder defines which values get a high score.
//
// +kubebuilder:validation:Enum=Ascending;Descending
type SortOrder string

const (
	// Ascending gives the lowest value the highest score.
	Ascending SortOrder = "Ascending"
	// Descending gives the highest value the highest score. It is the default.
	Descending SortOrder = "Descending"
)

// PropertySorter scores clusters by the value of a numeric property. The first cluster in the order gets the highest
// score, the last gets the lowest, and the others get scores in proportion.
type PropertySorter struct {
	// name is the name of a property whose values are quantities, or the name of a resource with the prefix "capacity/",
	// "allocatable/" or "available/", such as "available/cpu".
	// +required
	// +kubebuilder:validation:MaxLength=329
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="name must be the name of a property, or of a resource such as available/cpu"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(capacity|allocatable|available)/') || self.matches('^[a-z]+/([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="name must have the name of a resource after capacity/, allocatable/ or available/, such as available/cpu or capacity/nvidia.com/gpu"
	Name string `json:"name"`

	// order defines which clusters get the highest score: with Descending those with the highest value, with Ascending
	// those with the lowest value.
	// +kubebuilder:default=Descending
	// +optional
	Order SortOrder `json:"order,omitempty"`

	// weight is the weight of this sorter relative to the others, from 1 to 100. Default: 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 100",message="weight must be from 1 to 100; leave it out for 1, and set order to reverse the order"
	// +optional
	Weight int32 `json:"weight,omitempty"`
}

// Toleration makes a cluster eligible despite the taints that the toleration matches.
//
// +kubebuilder:validation:XValidation:rule="self.operator == 'Exists' || (has(self.key) && size(self.key) > 0)",fieldPath=".key",reason=FieldValueRequired,message="key is required with operator Equal; use operator Exists to tolerate every taint"
// +kubebuilder:validation:XValidation:rule="self.operator != 'Exists' || !has(self.value) || size(self.value) == 0",fieldPath=".value",reason=FieldValueForbidden,message="operator Exists tolerates every value: remove value, or use operator Equal"
// +kubebuilder:validation:XValidation:rule="!has(self.tolerationSeconds) || !has(self.effect) || self.effect == 'NoExecute'",fieldPath=".tolerationSeconds",reason=FieldValueForbidden,message="tolerationSeconds may only be set with effect NoExecute: remove it, or set the effect to NoExecute"
type Toleration struct {
	// key is the key of the tolerated taints. Empty, with operator Exists: every key.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="key must be a qualified name such as example.com/maintenance: an optional DNS prefix and a slash, then up to 63 letters, digits, '-', '_' or '.'"
	// +optional
	Key string `json:"key,omitempty"`

	// operator is Equal to tolerate taints with the same key and value, or Exists to tolerate taints with the key and any
	// value. Default: Equal.
	// +kubebuilder:default=Equal
	// +kubebuilder:validation:Enum=Equal;Exists
	// +optional
	Operator corev1.TolerationOperator `json:"operator,omitempty"`

	// value is the value of the tolerated taints.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$')",message="value must be letters, digits, '-', '_' or '.', and start and end with a letter or digit"
	// +optional
	Value string `json:"value,omitempty"`

	// effect is the effect of the tolerated taints. Empty: every effect.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	// +optional
	Effect corev1.TaintEffect `json:"effect,omitempty"`

	// tolerationSeconds is the number of seconds for which a selected cluster is kept despite a NoExecute taint. It starts
	// at the timeAdded of the taint or, if that is unset, when the hub first observed the taint. 0: the cluster is not
	// kept. Unset: the cluster is kept without a limit. For the taints membership.muster.dev/unreachable and
	// membership.muster.dev/not-ready it has an effect only if the placement sets spec.failover: without failover these
	// taints remove no cluster.
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 31536000",message="tolerationSeconds must be from 0 to 31536000 (a year); leave it out to tolerate the taint forever"
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// UnsatisfiableAction defines what happens if a spread constraint cannot be satisfied.
//
// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
type UnsatisfiableAction string

const (
	// DoNotSchedule selects fewer clusters instead of violating the constraint. It is the default.
	DoNotSchedule UnsatisfiableAction = "DoNotSchedule"
	// ScheduleAnyway prefers the clusters that violate the constraint least.
	ScheduleAnyway UnsatisfiableAction = "ScheduleAnyway"
)

// TopologySpreadConstraint distributes the selected clusters evenly among domains. The clusters with the same value of
// a label form a domain.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minDomains) || self.whenUnsatisfiable == 'DoNotSchedule'",fieldPath=".minDomains",reason=FieldValueForbidden,message="minDomains may only be set with whenUnsatisfiable DoNotSchedule: remove it, or set whenUnsatisfiable to DoNotSchedule"
type TopologySpreadConstraint struct {
	// topologyKey is the label whose values are the domains. A cluster without the label is in no domain, and
	// DoNotSchedule does not select it.
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="topologyKey must be the key of a label such as topology.kubernetes.io/region: an optional DNS prefix and a slash, then up to 63 letters, digits, '-', '_' or '.'"
	TopologyKey string `json:"topologyKey"`

	// maxSkew is the maximum difference between the numbers of selected clusters in any two domains. Default: 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1",message="maxSkew must be 1 or more; leave it out for 1"
	// +optional
	MaxSkew int32 `json:"maxSkew,omitempty"`

	// minDomains is the minimum number of domains. While there are fewer domains, the smallest number of clusters in a
	// domain counts as 0. Allowed only with DoNotSchedule. Unset: 1.
	// +kubebuilder:validation:XValidation:rule="self >= 1",message="minDomains must be 1 or more; leave it out for no minimum"
	// +optional
	MinDomains *int32 `json:"minDomains,omitempty"`

	// whenUnsatisfiable defines what happens if maxSkew cannot be satisfied. Default: DoNotSchedule.
	// +kubebuilder:default=DoNotSchedule
	// +optional
	WhenUnsatisfiable UnsatisfiableAction `json:"whenUnsatisfiable,omitempty"`
}

// GroupSpreadConstraint limits the number of groups that clusters are selected from. The clusters with the same value
// of a label form a group.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxGroups) || self.maxGroups <= 0 || !has(self.minGroups) || self.maxGroups >= self.minGroups",fieldPath=".maxGroups",message="maxGroups must not be less than minGroups; leave it out for no maximum"
type GroupSpreadConstraint struct {
	// label is the label whose values are the groups. A cluster without the label is in no group, and is not selected.
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="label must be the key of a label such as example.com/provider: an optional DNS prefix and a slash, then up to 63 letters, digits, '-', '_' or '.'"
	Label string `json:"label"`

	// minGroups is the minimum number of groups. 0: no minimum.
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="minGroups must not be negative; leave it out for no minimum"
	// +optional
	MinGroups int32 `json:"minGroups,omitempty"`

	// maxGroups is the maximum number of groups. 0: no maximum.
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="maxGroups must not be negative; leave it out for no maximum"
	// +optional
	MaxGroups int32 `json:"maxGroups,omitempty"`
}

// Prioritizer overrides the weight of a score plugin.
type Prioritizer struct {
	// plugin is the name of a score plugin of the scheduler's profile.
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="plugin must be a qualified name such as example.com/carbon: an optional DNS prefix and a slash, then up to 63 letters, digits, '-', '_' or '.'"
	Plugin string `json:"plugin"`

	// weight is the weight of the plugin relative to the others, from 0 to 100. 0: the plugin has no effect.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 100",message="weight must be from 0 to 100; 0 disables the plugin"
	Weight int32 `json:"weight"`
}
