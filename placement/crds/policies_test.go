package crds_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Cases that the API server and PlacementPolicy.Validate must both reject, or both accept.

// refused is a policy with one error, and the expected message.
type refused struct {
	reason string
	policy v1alpha1.PlacementPolicy
	field  string // below spec.policy; Validate may name an entry of it
	want   string
}

func pickAll(change func(*v1alpha1.PlacementPolicy)) v1alpha1.PlacementPolicy {
	var policy v1alpha1.PlacementPolicy
	change(&policy)
	return policy
}

func pickN(change func(*v1alpha1.PlacementPolicy)) v1alpha1.PlacementPolicy {
	policy := v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(3))}
	change(&policy)
	return policy
}

func pickFixed(change func(*v1alpha1.PlacementPolicy)) v1alpha1.PlacementPolicy {
	policy := v1alpha1.PlacementPolicy{Type: v1alpha1.PickFixed, ClusterNames: []string{"east"}}
	change(&policy)
	return policy
}

func requiring(terms ...v1alpha1.ClusterSelectorTerm) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{Required: terms}}
}

func preferring(terms ...v1alpha1.PreferredTerm) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{Preferred: terms}}
}

func property(name string, operator v1alpha1.PropertyOperator, values ...string) v1alpha1.PropertyRequirement {
	return v1alpha1.PropertyRequirement{Name: name, Operator: operator, Values: values}
}

func typed(kind v1alpha1.PropertyType, operator v1alpha1.PropertyOperator,
	values ...string) v1alpha1.PropertyRequirement {
	return v1alpha1.PropertyRequirement{Name: "p", Operator: operator, Values: values, Type: kind}
}

func properties(requirements ...v1alpha1.PropertyRequirement) v1alpha1.PlacementPolicy {
	return requiring(v1alpha1.ClusterSelectorTerm{Properties: requirements})
}

func sorters(sorters ...v1alpha1.PropertySorter) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{Sorters: sorters}
}

func tolerating(tolerations ...v1alpha1.Toleration) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{Tolerations: tolerations}
}

func topology(constraints ...v1alpha1.TopologySpreadConstraint) v1alpha1.PlacementPolicy {
	return pickN(func(p *v1alpha1.PlacementPolicy) { p.TopologySpread = constraints })
}

func groups(constraints ...v1alpha1.GroupSpreadConstraint) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{GroupSpread: constraints}
}

func prioritizers(prioritizers ...v1alpha1.Prioritizer) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{Prioritizers: prioritizers}
}

func resources(name corev1.ResourceName, amount string) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{Resources: corev1.ResourceList{name: resource.MustParse(amount)}}
}

func apis(kinds ...metav1.GroupVersionKind) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{RequiredAPIs: kinds}
}

func times[T any](n int, entry func(i int) T) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = entry(i)
	}
	return list
}

var (
	long   = strings.Repeat("a", 64)
	equal5 = property("p", v1alpha1.PropertyEq, "5")
	region = v1alpha1.ClusterSelectorTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}}
	deployment = metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

const firstProperty = "affinity.required[0].properties[0]"

var refusedPolicies = []refused{
	// The number of clusters.
	{
		"a type that does not exist",
		v1alpha1.PlacementPolicy{Type: "PickSome"},
		"type", `supported values: "PickAll", "PickN", "PickFixed"`,
	},
	{
		"PickN without numberOfClusters",
		v1alpha1.PlacementPolicy{Type: v1alpha1.PickN},
		"numberOfClusters", "numberOfClusters is required with type PickN; use type PickAll for all clusters",
	},
	{
		"numberOfClusters with PickAll",
		pickAll(func(p *v1alpha1.PlacementPolicy) { p.NumberOfClusters = new(int32(3)) }),
		"numberOfClusters", "numberOfClusters may only be set with type PickN: remove it, or set the type to PickN",
	},
	{
		"numberOfClusters with PickFixed",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.NumberOfClusters = new(int32(1)) }),
		"numberOfClusters", "numberOfClusters may only be set with type PickN: remove it, or set the type to PickN",
	},
	{
		"a negative numberOfClusters",
		pickN(func(p *v1alpha1.PlacementPolicy) { p.NumberOfClusters = new(int32(-1)) }),
		"numberOfClusters", "numberOfClusters must be from 0 to 10000",
	},
	{
		"numberOfClusters above the maximum",
		pickN(func(p *v1alpha1.PlacementPolicy) { p.NumberOfClusters = new(int32(10001)) }),
		"numberOfClusters", "numberOfClusters must be from 0 to 10000; use type PickAll",
	},
	{
		"PickFixed without clusterNames",
		v1alpha1.PlacementPolicy{Type: v1alpha1.PickFixed},
		"clusterNames", "clusterNames is required with type PickFixed",
	},
	{
		"clusterNames with PickAll",
		pickAll(func(p *v1alpha1.PlacementPolicy) { p.ClusterNames = []string{"east"} }),
		"clusterNames", "clusterNames may only be set with type PickFixed: remove it, or set the type to PickFixed",
	},
	{
		"clusterNames with PickN",
		pickN(func(p *v1alpha1.PlacementPolicy) { p.ClusterNames = []string{"east"} }),
		"clusterNames", "clusterNames may only be set with type PickFixed: remove it, or set the type to PickFixed",
	},
	{
		"a cluster name with an upper-case letter",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.ClusterNames = []string{"west", "East"} }),
		"clusterNames[1]", "the name of a cluster must be a DNS label: lower-case letters",
	},
	{
		"a cluster name of 64 letters",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.ClusterNames = []string{long} }),
		"clusterNames[0]", "may not be more than 63",
	},
	{
		"an empty cluster name",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.ClusterNames = []string{""} }),
		"clusterNames[0]", "the name of a cluster must be a DNS label",
	},
	{
		"a duplicate cluster name",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.ClusterNames = []string{"east", "west", "east"} }),
		"clusterNames[2]", `Duplicate value: "east"`,
	},
	{
		"more clusterNames than the maximum",
		pickFixed(func(p *v1alpha1.PlacementPolicy) {
			p.ClusterNames = times(1001, func(i int) string { return fmt.Sprintf("c%d", i) })
		}),
		"clusterNames", "must have at most 1000 items",
	},

	// Fields that must not be set with PickFixed.
	{
		"affinity with PickFixed",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.Affinity = &v1alpha1.ClusterAffinity{} }),
		"affinity", "type PickFixed selects clusters by clusterNames only: remove affinity, or set the type to PickAll or " +
			"PickN",
	},
	{
		"sorters with PickFixed",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.Sorters = []v1alpha1.PropertySorter{{Name: "cost"}} }),
		"sorters", "selects clusters by clusterNames only: remove sorters, or set the type",
	},
	{
		"tolerations with PickFixed",
		pickFixed(func(p *v1alpha1.PlacementPolicy) {
			p.Tolerations = []v1alpha1.Toleration{{Operator: corev1.TolerationOpExists}}
		}),
		"tolerations", "selects clusters by clusterNames only: remove tolerations, or set the type",
	},
	{
		"topologySpread with PickFixed",
		pickFixed(func(p *v1alpha1.PlacementPolicy) {
			p.TopologySpread = []v1alpha1.TopologySpreadConstraint{{TopologyKey: "region"}}
		}),
		"topologySpread", "selects clusters by clusterNames only: remove topologySpread, or set the type",
	},
	{
		"groupSpread with PickFixed",
		pickFixed(func(p *v1alpha1.PlacementPolicy) {
			p.GroupSpread = []v1alpha1.GroupSpreadConstraint{{Label: "provider", MaxGroups: 1}}
		}),
		"groupSpread", "selects clusters by clusterNames only: remove groupSpread, or set the type",
	},
	{
		"prioritizers with PickFixed",
		pickFixed(func(p *v1alpha1.PlacementPolicy) {
			p.Prioritizers = []v1alpha1.Prioritizer{{Plugin: "Balance", Weight: 1}}
		}),
		"prioritizers", "selects clusters by clusterNames only: remove prioritizers, or set the type",
	},
	{
		"resources with PickFixed",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.Resources = resources("cpu", "1").Resources }),
		"resources", "selects clusters by clusterNames only: remove resources, or set the type",
	},
	{
		"requiredAPIs with PickFixed",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.RequiredAPIs = []metav1.GroupVersionKind{deployment} }),
		"requiredAPIs", "selects clusters by clusterNames only: remove requiredAPIs, or set the type",
	},

	// Terms.
	{
		"an empty term after another term",
		requiring(region, v1alpha1.ClusterSelectorTerm{}),
		"affinity.required[1]",
		"an empty term matches every cluster: give it a labelSelector, properties or cel, or remove it",
	},
	{
		"a term with an empty label selector",
		requiring(v1alpha1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{}}),
		"affinity.required[0]", "an empty term matches every cluster",
	},
	{
		"more required terms than the maximum",
		requiring(times(17, func(int) v1alpha1.ClusterSelectorTerm { return region })...),
		"affinity.required", "must have at most 16 items",
	},
	{
		"more preferred terms than the maximum",
		preferring(times(33, func(int) v1alpha1.PreferredTerm { return v1alpha1.PreferredTerm{Weight: 1, Term: region} })...),
		"affinity.preferred", "must have at most 32 items",
	},
	{
		"a preferred term with weight 0",
		preferring(v1alpha1.PreferredTerm{Weight: 0, Term: region}),
		"affinity.preferred[0].weight", "weight must be from -100 to 100 and not 0; remove a term",
	},
	{
		"a weight of a preferred term above 100",
		preferring(v1alpha1.PreferredTerm{Weight: 101, Term: region}),
		"affinity.preferred[0].weight", "weight must be from -100 to 100",
	},
	{
		"a weight of a preferred term below -100",
		preferring(v1alpha1.PreferredTerm{Weight: -101, Term: region}),
		"affinity.preferred[0].weight", "weight must be from -100 to 100",
	},
	{
		"an empty CEL expression",
		requiring(v1alpha1.ClusterSelectorTerm{CEL: []string{""}}),
		"affinity.required[0].cel[0]", "an expression must not be empty: write an expression on the variable cluster, or " +
			"remove it",
	},
	{
		"a CEL expression that is too long",
		requiring(v1alpha1.ClusterSelectorTerm{CEL: []string{strings.Repeat("x", 1025)}}),
		"affinity.required[0].cel[0]", "may not be more than 1024",
	},
	{
		"more CEL expressions than the maximum",
		requiring(v1alpha1.ClusterSelectorTerm{CEL: times(9, func(int) string { return "true" })}),
		"affinity.required[0].cel", "must have at most 8 items",
	},

	// Properties.
	{
		"more properties than the maximum",
		properties(times(17, func(int) v1alpha1.PropertyRequirement { return equal5 })...),
		"affinity.required[0].properties", "must have at most 16 items",
	},
	{
		"an empty property name",
		properties(property("", v1alpha1.PropertyExists)),
		firstProperty + ".name", "name must be the name of a property",
	},
	{
		"a property name that is too long",
		properties(property(strings.Repeat("a", 254), v1alpha1.PropertyExists)),
		firstProperty + ".name", "may not be more than 253",
	},
	{
		"an unknown operator of a property",
		properties(property("p", "Like", "5")),
		firstProperty + ".operator",
		`supported values: "Gt", "Ge", "Eq", "Ne", "Lt", "Le", "In", "NotIn", "Exists", "DoesNotExist"`,
	},
	{
		"a property without an operator",
		properties(property("p", "", "5")),
		firstProperty + ".operator", `supported values: "Gt"`,
	},
	{
		"an unknown type of a property",
		properties(typed("Number", v1alpha1.PropertyEq, "5")),
		firstProperty + ".type", `supported values: "Quantity", "Version", "String"`,
	},
	{
		"Gt without a value",
		properties(property("p", v1alpha1.PropertyGt)),
		firstProperty + ".values", "values must have exactly one entry with the operators Gt, Ge, Eq, Ne, Lt and Le",
	},
	{
		"Eq with two values",
		properties(property("p", v1alpha1.PropertyEq, "a", "b")),
		firstProperty + ".values", "use In or NotIn for several",
	},
	{
		"Ne with two values",
		properties(property("p", v1alpha1.PropertyNe, "a", "b")),
		firstProperty + ".values", "use In or NotIn for several",
	},
	{
		"In without values",
		properties(property("p", v1alpha1.PropertyIn)),
		firstProperty + ".values", "values must have at least one entry with the operators In and NotIn; use Exists",
	},
	{
		"NotIn without values",
		properties(property("p", v1alpha1.PropertyNotIn)),
		firstProperty + ".values", "values must have at least one entry",
	},
	{
		"Exists with a value",
		properties(property("p", v1alpha1.PropertyExists, "a")),
		firstProperty + ".values", "values must be empty with the operators Exists and DoesNotExist; use In or NotIn",
	},
	{
		"DoesNotExist with a value",
		properties(property("p", v1alpha1.PropertyDoesNotExist, "a")),
		firstProperty + ".values", "values must be empty with the operators Exists and DoesNotExist",
	},
	{
		"more values of a property than the maximum",
		properties(property("p", v1alpha1.PropertyIn, times(65, func(i int) string { return fmt.Sprint(i) })...)),
		firstProperty + ".values", "must have at most 64 items",
	},
	{
		"a property value that is too long",
		properties(property("p", v1alpha1.PropertyEq, strings.Repeat("a", 1025))),
		firstProperty + ".values[0]", "may not be more than 1024",
	},
	{
		"Gt with type String",
		properties(typed(v1alpha1.PropertyString, v1alpha1.PropertyGt, "5")),
		firstProperty + ".operator", "operator must not be Gt, Ge, Lt or Le with type String, which has no order; use Eq",
	},
	{
		"Le with a text and no type",
		properties(property("p", v1alpha1.PropertyLe, "eu-west")),
		firstProperty + ".values", "values must be a quantity such as 64Gi or a semantic version such as v1.31.2",
	},
	{
		"Ge with a version of two numbers and the prefix v",
		properties(property("p", v1alpha1.PropertyGe, "v1.30")),
		firstProperty + ".values",
		"a semantic version such as v1.31.2 with the operators Gt, Ge, Lt and Le; use Eq, Ne, In or NotIn for strings",
	},
	{
		"a quantity with an unknown suffix",
		properties(typed(v1alpha1.PropertyQuantity, v1alpha1.PropertyEq, "5GB")),
		firstProperty + ".values", "values must be quantities such as 500m, 1.5 or 64Gi with type Quantity",
	},
	{
		"a quantity with a large exponent",
		properties(typed(v1alpha1.PropertyQuantity, v1alpha1.PropertyEq, "1e2147483647")),
		firstProperty + ".values", "an exponent have at most two digits",
	},
	{
		"Lt with a large negative exponent and no type",
		properties(property("p", v1alpha1.PropertyLt, "1e-2147483647")),
		firstProperty + ".values", "values must be a quantity such as 64Gi",
	},
	{
		"a value of two numbers with type Version",
		properties(typed(v1alpha1.PropertyVersion, v1alpha1.PropertyEq, "1.30")),
		firstProperty + ".values", "values must be semantic versions of three numbers such as v1.31.2 with type Version",
	},
	{
		"the first of several values is not a version",
		properties(typed(v1alpha1.PropertyVersion, v1alpha1.PropertyIn, "latest", "v1.2.3")),
		firstProperty + ".values", "values must be semantic versions of three numbers",
	},

	// Sorters.
	{
		"more sorters than the maximum",
		sorters(times(9, func(i int) v1alpha1.PropertySorter {
			return v1alpha1.PropertySorter{Name: fmt.Sprintf("p%d", i)}
		})...),
		"sorters", "must have at most 8 items",
	},
	{
		"a sorter without a name",
		sorters(v1alpha1.PropertySorter{}),
		"sorters[0].name", "name must be the name of a property, or of a resource such as available/cpu",
	},
	{
		"a sorter name that is too long",
		sorters(v1alpha1.PropertySorter{Name: strings.Repeat("a", 330)}),
		"sorters[0].name", "may not be more than 329",
	},
	{
		"a sorter name without a resource after available/",
		sorters(v1alpha1.PropertySorter{Name: "available/"}),
		"sorters[0].name",
		"name must have the name of a resource after capacity/, allocatable/ or available/, such as available/cpu",
	},
	{
		"a sorter name with an invalid resource",
		sorters(v1alpha1.PropertySorter{Name: "capacity/a b"}),
		"sorters[0].name", "name must have the name of a resource after capacity/, allocatable/ or available/",
	},
	{
		"an unknown order of a sorter",
		sorters(v1alpha1.PropertySorter{Name: "p", Order: "Random"}),
		"sorters[0].order", `supported values: "Ascending", "Descending"`,
	},
	{
		"a negative weight of a sorter",
		sorters(v1alpha1.PropertySorter{Name: "p", Weight: -1}),
		"sorters[0].weight", "weight must be from 1 to 100; leave it out for 1, and set order to reverse the order",
	},
	{
		"a weight of a sorter above 100",
		sorters(v1alpha1.PropertySorter{Name: "p", Weight: 101}),
		"sorters[0].weight", "weight must be from 1 to 100",
	},
	{
		"two sorters with the same name",
		sorters(v1alpha1.PropertySorter{Name: "p"}, v1alpha1.PropertySorter{Name: "p", Order: v1alpha1.Ascending}),
		"sorters[1]", "Duplicate value",
	},

	// Tolerations.
	{
		"more tolerations than the maximum",
		tolerating(times(33, func(int) v1alpha1.Toleration { return v1alpha1.Toleration{Key: "k"} })...),
		"tolerations", "must have at most 32 items",
	},
	{
		"an empty toleration",
		tolerating(v1alpha1.Toleration{}),
		"tolerations[0].key", "key is required with operator Equal; use operator Exists to tolerate every taint",
	},
	{
		"an invalid toleration key",
		tolerating(v1alpha1.Toleration{Key: "two words"}),
		"tolerations[0].key", "key must be a qualified name such as example.com/maintenance",
	},
	{
		"a toleration key that is too long",
		tolerating(v1alpha1.Toleration{Key: strings.Repeat("a", 318)}),
		"tolerations[0].key", "may not be more than 317",
	},
	{
		"an unknown operator of a toleration",
		tolerating(v1alpha1.Toleration{Key: "k", Operator: "In"}),
		"tolerations[0].operator", `supported values: "Equal", "Exists"`,
	},
	{
		"an invalid toleration value",
		tolerating(v1alpha1.Toleration{Key: "k", Value: "two words"}),
		"tolerations[0].value", "value must be letters, digits, '-', '_' or '.'",
	},
	{
		"a toleration value that is too long",
		tolerating(v1alpha1.Toleration{Key: "k", Value: long}),
		"tolerations[0].value", "may not be more than 63",
	},
	{
		"a value with operator Exists",
		tolerating(v1alpha1.Toleration{Key: "k", Operator: corev1.TolerationOpExists, Value: "v"}),
		"tolerations[0].value", "operator Exists tolerates every value: remove value, or use operator Equal",
	},
	{
		"an unknown effect of a toleration",
		tolerating(v1alpha1.Toleration{Key: "k", Effect: "Evict"}),
		"tolerations[0].effect", `supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
	},
	{
		"tolerationSeconds with effect NoSchedule",
		tolerating(v1alpha1.Toleration{Key: "k", Effect: corev1.TaintEffectNoSchedule, TolerationSeconds: new(int64(60))}),
		"tolerations[0].tolerationSeconds", "tolerationSeconds may only be set with effect NoExecute: remove it, or set " +
			"the effect to NoExecute",
	},
	{
		"negative tolerationSeconds",
		tolerating(v1alpha1.Toleration{Key: "k", TolerationSeconds: new(int64(-1))}),
		"tolerations[0].tolerationSeconds",
		"tolerationSeconds must be from 0 to 31536000 (a year); leave it out to tolerate the taint forever",
	},
	{
		"tolerationSeconds of more than a year",
		tolerating(v1alpha1.Toleration{Key: "k", TolerationSeconds: new(int64(31536001))}),
		"tolerations[0].tolerationSeconds", "tolerationSeconds must be from 0 to 31536000",
	},

	// Spreads.
	{
		"topologySpread DoNotSchedule with PickAll",
		pickAll(func(p *v1alpha1.PlacementPolicy) {
			p.TopologySpread = []v1alpha1.TopologySpreadConstraint{{TopologyKey: "region"}}
		}),
		"topologySpread", "topologySpread with DoNotSchedule may only be set with type PickN, because PickAll selects " +
			"every cluster: set whenUnsatisfiable to ScheduleAnyway, or the type to PickN",
	},
	{
		"more topology constraints than the maximum",
		topology(times(5, func(i int) v1alpha1.TopologySpreadConstraint {
			return v1alpha1.TopologySpreadConstraint{TopologyKey: fmt.Sprintf("k%d", i)}
		})...),
		"topologySpread", "must have at most 4 items",
	},
	{
		"a topology constraint without a key",
		topology(v1alpha1.TopologySpreadConstraint{}),
		"topologySpread[0].topologyKey", "topologyKey must be the key of a label such as topology.kubernetes.io/region",
	},
	{
		"a topology key that is too long",
		topology(v1alpha1.TopologySpreadConstraint{TopologyKey: strings.Repeat("a", 318)}),
		"topologySpread[0].topologyKey", "may not be more than 317",
	},
	{
		"a negative maxSkew",
		topology(v1alpha1.TopologySpreadConstraint{TopologyKey: "region", MaxSkew: -1}),
		"topologySpread[0].maxSkew", "maxSkew must be 1 or more; leave it out for 1",
	},
	{
		"minDomains of 0",
		topology(v1alpha1.TopologySpreadConstraint{TopologyKey: "region", MinDomains: new(int32(0))}),
		"topologySpread[0].minDomains", "minDomains must be 1 or more; leave it out for no minimum",
	},
	{
		"minDomains with ScheduleAnyway",
		topology(v1alpha1.TopologySpreadConstraint{TopologyKey: "region", MinDomains: new(int32(2)),
			WhenUnsatisfiable: v1alpha1.ScheduleAnyway}),
		"topologySpread[0].minDomains",
		"minDomains may only be set with whenUnsatisfiable DoNotSchedule: remove it, or set whenUnsatisfiable to " +
			"DoNotSchedule",
	},
	{
		"an unknown whenUnsatisfiable",
		topology(v1alpha1.TopologySpreadConstraint{TopologyKey: "region", WhenUnsatisfiable: "Panic"}),
		"topologySpread[0].whenUnsatisfiable", `supported values: "DoNotSchedule", "ScheduleAnyway"`,
	},
	{
		"two topology constraints with the same key",
		topology(v1alpha1.TopologySpreadConstraint{TopologyKey: "region"},
			v1alpha1.TopologySpreadConstraint{TopologyKey: "region", MaxSkew: 2}),
		"topologySpread[1]", "Duplicate value",
	},
	{
		"more group constraints than the maximum",
		groups(times(5, func(i int) v1alpha1.GroupSpreadConstraint {
			return v1alpha1.GroupSpreadConstraint{Label: fmt.Sprintf("l%d", i)}
		})...),
		"groupSpread", "must have at most 4 items",
	},
	{
		"a group constraint without a label",
		groups(v1alpha1.GroupSpreadConstraint{MinGroups: 1}),
		"groupSpread[0].label", "label must be the key of a label such as example.com/provider",
	},
	{
		"a label of a group constraint that is too long",
		groups(v1alpha1.GroupSpreadConstraint{Label: strings.Repeat("a", 318)}),
		"groupSpread[0].label", "may not be more than 317",
	},
	{
		"negative minGroups",
		groups(v1alpha1.GroupSpreadConstraint{Label: "provider", MinGroups: -1}),
		"groupSpread[0].minGroups", "minGroups must not be negative; leave it out for no minimum",
	},
	{
		"negative maxGroups",
		groups(v1alpha1.GroupSpreadConstraint{Label: "provider", MaxGroups: -1}),
		"groupSpread[0].maxGroups", "maxGroups must not be negative; leave it out for no maximum",
	},
	{
		"minGroups 3 with maxGroups 2",
		groups(v1alpha1.GroupSpreadConstraint{Label: "provider", MinGroups: 3, MaxGroups: 2}),
		"groupSpread[0].maxGroups", "maxGroups must not be less than minGroups; leave it out for no maximum",
	},
	{
		"minGroups 2 with maxGroups 1",
		groups(v1alpha1.GroupSpreadConstraint{Label: "provider", MinGroups: 2, MaxGroups: 1}),
		"groupSpread[0].maxGroups", "maxGroups must not be less than minGroups",
	},
	{
		"two group constraints with the same label",
		groups(v1alpha1.GroupSpreadConstraint{Label: "provider", MinGroups: 1},
			v1alpha1.GroupSpreadConstraint{Label: "provider", MaxGroups: 2}),
		"groupSpread[1]", "Duplicate value",
	},

	// The other fields.
	{
		"more prioritizers than the maximum",
		prioritizers(times(33, func(i int) v1alpha1.Prioritizer {
			return v1alpha1.Prioritizer{Plugin: fmt.Sprintf("p%d", i)}
		})...),
		"prioritizers", "must have at most 32 items",
	},
	{
		"a prioritizer without a plugin",
		prioritizers(v1alpha1.Prioritizer{Weight: 1}),
		"prioritizers[0].plugin", "plugin must be a qualified name such as example.com/carbon",
	},
	{
		"a plugin name that is too long",
		prioritizers(v1alpha1.Prioritizer{Plugin: strings.Repeat("a", 318)}),
		"prioritizers[0].plugin", "may not be more than 317",
	},
	{
		"a negative weight of a prioritizer",
		prioritizers(v1alpha1.Prioritizer{Plugin: "Balance", Weight: -1}),
		"prioritizers[0].weight", "weight must be from 0 to 100; 0 disables the plugin",
	},
	{
		"a weight of a prioritizer above 100",
		prioritizers(v1alpha1.Prioritizer{Plugin: "Balance", Weight: 101}),
		"prioritizers[0].weight", "weight must be from 0 to 100",
	},
	{
		"two prioritizers with the same plugin",
		prioritizers(v1alpha1.Prioritizer{Plugin: "Balance", Weight: 1}, v1alpha1.Prioritizer{Plugin: "Balance", Weight: 2}),
		"prioritizers[1]", "Duplicate value",
	},
	{
		"a negative resource",
		resources("cpu", "-1"),
		"resources", "resources must not be negative",
	},
	{
		"a negative fraction of a resource",
		resources("memory", "-500m"),
		"resources", "resources must not be negative",
	},
	{
		"an invalid name of a resource",
		resources("two words", "1"),
		"resources", "resources must have qualified names such as cpu or nvidia.com/gpu",
	},
	{
		"a resource with a large exponent",
		resources("cpu", "1e2147483647"),
		"resources", "resources must not have exponents that are signed or have more than one digit: write a suffix",
	},
	{
		"a resource with an exponent after E",
		resources("cpu", "1E210"),
		"resources", "resources must not have exponents",
	},
	{
		"more resources than the maximum",
		v1alpha1.PlacementPolicy{Resources: corev1.ResourceList{
			"r0": {}, "r1": {}, "r2": {}, "r3": {}, "r4": {}, "r5": {}, "r6": {}, "r7": {}, "r8": {},
			"r9": {}, "r10": {}, "r11": {}, "r12": {}, "r13": {}, "r14": {}, "r15": {}, "r16": {},
		}},
		"resources", "must have at most 16",
	},
	{
		"more required APIs than the maximum",
		apis(times(33, func(i int) metav1.GroupVersionKind {
			return metav1.GroupVersionKind{Version: "v1", Kind: fmt.Sprintf("K%d", i)}
		})...),
		"requiredAPIs", "must have at most 32 items",
	},
	{
		"a required API without a version",
		apis(metav1.GroupVersionKind{Group: "apps", Kind: "Deployment"}),
		"requiredAPIs[0].version", "version must be the version of an API, such as v1",
	},
	{
		"a required API without a kind",
		apis(metav1.GroupVersionKind{Group: "apps", Version: "v1"}),
		"requiredAPIs[0].kind", "kind must be the kind of an API, such as Deployment",
	},
	{
		"an API version that is too long",
		apis(metav1.GroupVersionKind{Group: "apps", Version: long, Kind: "Deployment"}),
		"requiredAPIs[0].version", "version must be the version of an API, such as v1",
	},
	{
		"an API kind that is too long",
		apis(metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: long}),
		"requiredAPIs[0].kind", "kind must be the kind of an API, such as Deployment",
	},
	{
		"an API group that is too long",
		apis(metav1.GroupVersionKind{Group: strings.Repeat("a", 254), Version: "v1", Kind: "Deployment"}),
		"requiredAPIs[0].group", "group must be the group of an API, such as apps, or empty for the core group",
	},
	{
		"a duplicate required API",
		apis(deployment, deployment),
		"requiredAPIs[1]", "Duplicate value",
	},
	{
		"an invalid profile name",
		v1alpha1.PlacementPolicy{Profile: "two words"},
		"profile", "profile must be a qualified name such as example.com/cheapest",
	},
	{
		"a profile name that is too long",
		v1alpha1.PlacementPolicy{Profile: strings.Repeat("a", 318)},
		"profile", "may not be more than 317",
	},
}

var acceptedPolicies = map[string]v1alpha1.PlacementPolicy{
	"an empty policy": {},
	"PickN of 0 clusters": pickN(func(p *v1alpha1.PlacementPolicy) {
		p.NumberOfClusters = new(int32(0))
	}),
	"PickN of the maximum number of clusters": pickN(func(p *v1alpha1.PlacementPolicy) {
		p.NumberOfClusters = new(int32(10000))
	}),
	"PickFixed with the longest and the shortest cluster name": pickFixed(func(p *v1alpha1.PlacementPolicy) {
		p.ClusterNames = []string{long[:63], "1"}
	}),
	"PickFixed with a profile": pickFixed(func(p *v1alpha1.PlacementPolicy) {
		p.Profile = "example.com/fixed"
	}),
	"an empty affinity": {Affinity: &v1alpha1.ClusterAffinity{}},
	"the largest and the smallest weight of preferred terms": preferring(v1alpha1.PreferredTerm{Weight: 100, Term: region},
		v1alpha1.PreferredTerm{Weight: -100, Term: region}),
	"a label selector with expressions": requiring(v1alpha1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "region", Operator: metav1.LabelSelectorOpExists}}}}),
	"a term with a CEL expression only": requiring(
		v1alpha1.ClusterSelectorTerm{CEL: []string{"cluster.name == 'east'"}}),
	"quantities with the operators of an order": properties(property("a", v1alpha1.PropertyGt, "64Gi"), property("a",
		v1alpha1.PropertyGe, ".5"), property("a", v1alpha1.PropertyLt, "-1e-9"), property("a", v1alpha1.PropertyLe, "5.")),
	"versions with the operators of an order": properties(property("a", v1alpha1.PropertyGe, "v1.31.2"),
		property("a", v1alpha1.PropertyLt, "1.33.0-rc.1+build.5")),
	"the quantity 1.30 with the operator Ge": properties(property("a", v1alpha1.PropertyGe, "1.30")),
	"values that match an explicit type": properties(typed(v1alpha1.PropertyQuantity, v1alpha1.PropertyIn, "1",
		"2Ki"), typed(v1alpha1.PropertyVersion, v1alpha1.PropertyNotIn, "v1.2.3", "1.2.4"),
		typed(v1alpha1.PropertyString, v1alpha1.PropertyEq, "1.30")),
	"operators without values, with and without a type": properties(typed(v1alpha1.PropertyVersion,
		v1alpha1.PropertyExists),
		property("b", v1alpha1.PropertyDoesNotExist)),
	"empty texts as values": properties(property("a", v1alpha1.PropertyEq, ""),
		property("a", v1alpha1.PropertyNe, "")),
	"two requirements for one property": properties(property("a", v1alpha1.PropertyGe, "1"),
		property("a", v1alpha1.PropertyLe, "5")),
	"a value of 1024 characters in more bytes": properties(property("a", v1alpha1.PropertyEq, strings.Repeat("ä", 1024))),
	"sorters with explicit weights and orders": sorters(v1alpha1.PropertySorter{Name: "available/nvidia.com/gpu",
		Weight: 100}, v1alpha1.PropertySorter{Name: "example.com/cost", Order: v1alpha1.Ascending},
		v1alpha1.PropertySorter{Name: "capacity", Weight: 1}),
	"a toleration of every taint": tolerating(v1alpha1.Toleration{Operator: corev1.TolerationOpExists}),
	"a toleration of every effect with tolerationSeconds": tolerating(v1alpha1.Toleration{Key: "example.com/maintenance",
		Value:             "yes",
		TolerationSeconds: new(int64(0))}),
	"a toleration for a year": tolerating(
		v1alpha1.Toleration{Key: "k", Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(31536000))}),
	"two tolerations with the same key": tolerating(v1alpha1.Toleration{Key: "k", Value: "a"},
		v1alpha1.Toleration{Key: "k", Value: "b"}),
	"topologySpread ScheduleAnyway with PickAll": {TopologySpread: []v1alpha1.TopologySpreadConstraint{
		{TopologyKey: "region", WhenUnsatisfiable: v1alpha1.ScheduleAnyway}}},
	"topologySpread with PickN": topology(
		v1alpha1.TopologySpreadConstraint{TopologyKey: "topology.kubernetes.io/region", MaxSkew: 5,
			MinDomains: new(int32(1))}, v1alpha1.TopologySpreadConstraint{TopologyKey: "zone"}),
	"groupSpread with all combinations of bounds": groups(v1alpha1.GroupSpreadConstraint{Label: "a", MinGroups: 2},
		v1alpha1.GroupSpreadConstraint{Label: "b", MaxGroups: 2}, v1alpha1.GroupSpreadConstraint{Label: "c", MinGroups: 2,
			MaxGroups: 2}),
	"a prioritizer without a weight": prioritizers(v1alpha1.Prioritizer{Plugin: "Balance"},
		v1alpha1.Prioritizer{Plugin: "example.com/Carbon", Weight: 100}),
	"a resource of 0": resources("nvidia.com/gpu", "0"),
	"resources with suffixes and a short exponent": {Resources: corev1.ResourceList{"cpu": resource.MustParse("1500m"),
		"memory": resource.MustParse("2Ei"), "a": resource.MustParse("3E"), "b": resource.MustParse("3e6")}},
	"required APIs of several groups and versions": apis(deployment, metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		metav1.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}),
	"In and NotIn with one value": properties(property("a", v1alpha1.PropertyIn, "x"),
		property("a", v1alpha1.PropertyNotIn, "1")),
	"the longest and the shortest names of APIs": apis(metav1.GroupVersionKind{Group: strings.Repeat("a.", 126) + "a",
		Version: long[:63], Kind: long[:63]}, metav1.GroupVersionKind{Group: "a", Version: "v", Kind: "K"}),
	"the largest policy": largest(),
}

// asPreferredTerms returns the cases of a required term for a preferred one.
func asPreferredTerms(tests []refused) []refused {
	var out []refused
	for _, test := range tests {
		below, found := strings.CutPrefix(test.field, "affinity.required[0]")
		if !found {
			continue
		}
		out = append(out, refused{
			test.reason + ", preferred", preferring(v1alpha1.PreferredTerm{Weight: 1, Term: test.policy.Affinity.Required[0]}),
			"affinity.preferred[0].term" + below, test.want,
		})
	}
	return out
}

// largest returns a policy with the maximum number of entries, in which every rule has something to evaluate. The cost
// must be within the API server's budget for one object.
func largest() v1alpha1.PlacementPolicy {
	term := func(i int) v1alpha1.ClusterSelectorTerm {
		return v1alpha1.ClusterSelectorTerm{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/region": "eu"}},
			Properties: times(16, func(j int) v1alpha1.PropertyRequirement {
				values := times(64, func(k int) string { return fmt.Sprintf("v%d.%d.%d", i, j, k) })
				return v1alpha1.PropertyRequirement{Name: "example.com/version", Operator: v1alpha1.PropertyIn, Values: values,
					Type: v1alpha1.PropertyVersion}
			}),
			CEL: times(8, func(int) string { return strings.Repeat(" ", 1000) + "true" }),
		}
	}
	name := func(i int) string { return fmt.Sprintf("example.com/%d-%s", i, long[:50]) }
	resources := corev1.ResourceList{}
	for i := range 16 {
		resources[corev1.ResourceName(name(i))] = resource.MustParse("123456789Gi")
	}
	return v1alpha1.PlacementPolicy{
		Type: v1alpha1.PickN, NumberOfClusters: new(int32(10000)),
		Affinity: &v1alpha1.ClusterAffinity{
			Required: times(16, term),
			Preferred: times(32, func(i int) v1alpha1.PreferredTerm {
				return v1alpha1.PreferredTerm{Weight: 100, Term: term(i)}
			}),
		},
		Sorters: times(8, func(i int) v1alpha1.PropertySorter {
			return v1alpha1.PropertySorter{Name: "available/" + name(i)}
		}),
		Tolerations: times(32, func(i int) v1alpha1.Toleration {
			return v1alpha1.Toleration{Key: name(i), Value: long[:63]}
		}),
		TopologySpread: times(4, func(i int) v1alpha1.TopologySpreadConstraint {
			return v1alpha1.TopologySpreadConstraint{TopologyKey: name(i)}
		}),
		GroupSpread: times(4, func(i int) v1alpha1.GroupSpreadConstraint {
			return v1alpha1.GroupSpreadConstraint{Label: name(i)}
		}),
		Prioritizers: times(32, func(i int) v1alpha1.Prioritizer { return v1alpha1.Prioritizer{Plugin: name(i)} }),
		Resources:    resources,
		RequiredAPIs: times(32, func(i int) metav1.GroupVersionKind {
			return metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: fmt.Sprintf("Kind%d", i)}
		}),
		Profile: name(0),
	}
}
