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
	// How many.
	{
		"a type that does not exist",
		v1alpha1.PlacementPolicy{Type: "PickSome"},
		"type", `supported values: "PickAll", "PickN", "PickFixed"`,
	},
	{
		"N must be known",
		v1alpha1.PlacementPolicy{Type: v1alpha1.PickN},
		"numberOfClusters", "numberOfClusters is required with type PickN; use type PickAll for all clusters",
	},
	{
		"a number without PickN: one of the two was forgotten",
		pickAll(func(p *v1alpha1.PlacementPolicy) { p.NumberOfClusters = new(int32(3)) }),
		"numberOfClusters", "numberOfClusters may only be set with type PickN: remove it, or set the type to PickN",
	},
	{
		"nothing is to be counted where clusters are named",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.NumberOfClusters = new(int32(1)) }),
		"numberOfClusters", "numberOfClusters may only be set with type PickN: remove it, or set the type to PickN",
	},
	{
		"fewer than none",
		pickN(func(p *v1alpha1.PlacementPolicy) { p.NumberOfClusters = new(int32(-1)) }),
		"numberOfClusters", "numberOfClusters must be from 0 to 10000",
	},
	{
		"more than a decision can hold",
		pickN(func(p *v1alpha1.PlacementPolicy) { p.NumberOfClusters = new(int32(10001)) }),
		"numberOfClusters", "numberOfClusters must be from 0 to 10000; use type PickAll",
	},
	{
		"nobody is named",
		v1alpha1.PlacementPolicy{Type: v1alpha1.PickFixed},
		"clusterNames", "clusterNames is required with type PickFixed",
	},
	{
		"names without PickFixed: who reads this expects these clusters",
		pickAll(func(p *v1alpha1.PlacementPolicy) { p.ClusterNames = []string{"east"} }),
		"clusterNames", "clusterNames may only be set with type PickFixed: remove it, or set the type to PickFixed",
	},
	{
		"N clusters are not these clusters",
		pickN(func(p *v1alpha1.PlacementPolicy) { p.ClusterNames = []string{"east"} }),
		"clusterNames", "clusterNames may only be set with type PickFixed: remove it, or set the type to PickFixed",
	},
	{
		"a name that no member can have",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.ClusterNames = []string{"west", "East"} }),
		"clusterNames[1]", "the name of a cluster must be a DNS label: lower-case letters",
	},
	{
		"a name that is too long for a member",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.ClusterNames = []string{long} }),
		"clusterNames[0]", "may not be more than 63",
	},
	{
		"an empty name names nobody",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.ClusterNames = []string{""} }),
		"clusterNames[0]", "the name of a cluster must be a DNS label",
	},
	{
		"one cluster twice is one cluster, so the count would not come out",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.ClusterNames = []string{"east", "west", "east"} }),
		"clusterNames[2]", `Duplicate value: "east"`,
	},
	{
		"too many to name",
		pickFixed(func(p *v1alpha1.PlacementPolicy) {
			p.ClusterNames = times(1001, func(i int) string { return fmt.Sprintf("c%d", i) })
		}),
		"clusterNames", "must have at most 1000 items",
	},

	// What has no say with PickFixed.
	{
		"affinity has no say where a person has chosen",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.Affinity = &v1alpha1.ClusterAffinity{} }),
		"affinity", "type PickFixed selects clusters by clusterNames only: remove affinity, or set the type to PickAll or " +
			"PickN",
	},
	{
		"nor have sorters",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.Sorters = []v1alpha1.PropertySorter{{Name: "cost"}} }),
		"sorters", "selects clusters by clusterNames only: remove sorters, or set the type",
	},
	{
		"nor have tolerations",
		pickFixed(func(p *v1alpha1.PlacementPolicy) {
			p.Tolerations = []v1alpha1.Toleration{{Operator: corev1.TolerationOpExists}}
		}),
		"tolerations", "selects clusters by clusterNames only: remove tolerations, or set the type",
	},
	{
		"nor has topology",
		pickFixed(func(p *v1alpha1.PlacementPolicy) {
			p.TopologySpread = []v1alpha1.TopologySpreadConstraint{{TopologyKey: "region"}}
		}),
		"topologySpread", "selects clusters by clusterNames only: remove topologySpread, or set the type",
	},
	{
		"nor have groups",
		pickFixed(func(p *v1alpha1.PlacementPolicy) {
			p.GroupSpread = []v1alpha1.GroupSpreadConstraint{{Label: "provider", MaxGroups: 1}}
		}),
		"groupSpread", "selects clusters by clusterNames only: remove groupSpread, or set the type",
	},
	{
		"nor have prioritizers",
		pickFixed(func(p *v1alpha1.PlacementPolicy) {
			p.Prioritizers = []v1alpha1.Prioritizer{{Plugin: "Balance", Weight: 1}}
		}),
		"prioritizers", "selects clusters by clusterNames only: remove prioritizers, or set the type",
	},
	{
		"nor have resources",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.Resources = resources("cpu", "1").Resources }),
		"resources", "selects clusters by clusterNames only: remove resources, or set the type",
	},
	{
		"nor have APIs",
		pickFixed(func(p *v1alpha1.PlacementPolicy) { p.RequiredAPIs = []metav1.GroupVersionKind{deployment} }),
		"requiredAPIs", "selects clusters by clusterNames only: remove requiredAPIs, or set the type",
	},

	// Terms.
	{
		"an empty term makes all others pointless",
		requiring(region, v1alpha1.ClusterSelectorTerm{}),
		"affinity.required[1]",
		"an empty term matches every cluster: give it a labelSelector, properties or cel, or remove it",
	},
	{
		"an empty selector asks for nothing either",
		requiring(v1alpha1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{}}),
		"affinity.required[0]", "an empty term matches every cluster",
	},
	{
		"more terms than anybody can read",
		requiring(times(17, func(int) v1alpha1.ClusterSelectorTerm { return region })...),
		"affinity.required", "must have at most 16 items",
	},
	{
		"more preferences than anybody can read",
		preferring(times(33, func(int) v1alpha1.PreferredTerm { return v1alpha1.PreferredTerm{Weight: 1, Term: region} })...),
		"affinity.preferred", "must have at most 32 items",
	},
	{
		"a preference for nothing",
		preferring(v1alpha1.PreferredTerm{Weight: 0, Term: region}),
		"affinity.preferred[0].weight", "weight must be from -100 to 100 and not 0; remove a term",
	},
	{
		"too much of a preference",
		preferring(v1alpha1.PreferredTerm{Weight: 101, Term: region}),
		"affinity.preferred[0].weight", "weight must be from -100 to 100",
	},
	{
		"too much of an aversion",
		preferring(v1alpha1.PreferredTerm{Weight: -101, Term: region}),
		"affinity.preferred[0].weight", "weight must be from -100 to 100",
	},
	{
		"an expression that says nothing",
		requiring(v1alpha1.ClusterSelectorTerm{CEL: []string{""}}),
		"affinity.required[0].cel[0]", "an expression must not be empty: write an expression on the variable cluster, or " +
			"remove it",
	},
	{
		"a program is no expression",
		requiring(v1alpha1.ClusterSelectorTerm{CEL: []string{strings.Repeat("x", 1025)}}),
		"affinity.required[0].cel[0]", "may not be more than 1024",
	},
	{
		"many expressions cost much on each cluster",
		requiring(v1alpha1.ClusterSelectorTerm{CEL: times(9, func(int) string { return "true" })}),
		"affinity.required[0].cel", "must have at most 8 items",
	},

	// Properties.
	{
		"too many properties",
		properties(times(17, func(int) v1alpha1.PropertyRequirement { return equal5 })...),
		"affinity.required[0].properties", "must have at most 16 items",
	},
	{
		"no property has no name",
		properties(property("", v1alpha1.PropertyExists)),
		firstProperty + ".name", "name must be the name of a property",
	},
	{
		"no property has such a name",
		properties(property(strings.Repeat("a", 254), v1alpha1.PropertyExists)),
		firstProperty + ".name", "may not be more than 253",
	},
	{
		"an operator that does not exist",
		properties(property("p", "Like", "5")),
		firstProperty + ".operator",
		`supported values: "Gt", "Ge", "Eq", "Ne", "Lt", "Le", "In", "NotIn", "Exists", "DoesNotExist"`,
	},
	{
		"no operator",
		properties(property("p", "", "5")),
		firstProperty + ".operator", `supported values: "Gt"`,
	},
	{
		"a type that does not exist",
		properties(typed("Number", v1alpha1.PropertyEq, "5")),
		firstProperty + ".type", `supported values: "Quantity", "Version", "String"`,
	},
	{
		"greater than what?",
		properties(property("p", v1alpha1.PropertyGt)),
		firstProperty + ".values", "values must have exactly one entry with the operators Gt, Ge, Eq, Ne, Lt and Le",
	},
	{
		"equal to which?",
		properties(property("p", v1alpha1.PropertyEq, "a", "b")),
		firstProperty + ".values", "use In or NotIn for several",
	},
	{
		"not equal to which?",
		properties(property("p", v1alpha1.PropertyNe, "a", "b")),
		firstProperty + ".values", "use In or NotIn for several",
	},
	{
		"in nothing is no cluster",
		properties(property("p", v1alpha1.PropertyIn)),
		firstProperty + ".values", "values must have at least one entry with the operators In and NotIn; use Exists",
	},
	{
		"not in nothing is every cluster",
		properties(property("p", v1alpha1.PropertyNotIn)),
		firstProperty + ".values", "values must have at least one entry",
	},
	{
		"to exist with a value is to be equal to it",
		properties(property("p", v1alpha1.PropertyExists, "a")),
		firstProperty + ".values", "values must be empty with the operators Exists and DoesNotExist; use In or NotIn",
	},
	{
		"not to exist has no value",
		properties(property("p", v1alpha1.PropertyDoesNotExist, "a")),
		firstProperty + ".values", "values must be empty with the operators Exists and DoesNotExist",
	},
	{
		"a list that belongs into a label",
		properties(property("p", v1alpha1.PropertyIn, times(65, func(i int) string { return fmt.Sprint(i) })...)),
		firstProperty + ".values", "must have at most 64 items",
	},
	{
		"no property has such a value",
		properties(property("p", v1alpha1.PropertyEq, strings.Repeat("a", 1025))),
		firstProperty + ".values[0]", "may not be more than 1024",
	},
	{
		"text has no order that is the same for everybody",
		properties(typed(v1alpha1.PropertyString, v1alpha1.PropertyGt, "5")),
		firstProperty + ".operator", "operator must not be Gt, Ge, Lt or Le with type String, which has no order; use Eq",
	},
	{
		"text is found out as such",
		properties(property("p", v1alpha1.PropertyLe, "eu-west")),
		firstProperty + ".values", "values must be a quantity such as 64Gi or a semantic version such as v1.31.2",
	},
	{
		"two numbers with a v are neither quantity nor version",
		properties(property("p", v1alpha1.PropertyGe, "v1.30")),
		firstProperty + ".values",
		"a semantic version such as v1.31.2 with the operators Gt, Ge, Lt and Le; use Eq, Ne, In or NotIn for strings",
	},
	{
		"a quantity with a wrong suffix",
		properties(typed(v1alpha1.PropertyQuantity, v1alpha1.PropertyEq, "5GB")),
		firstProperty + ".values", "values must be quantities such as 500m, 1.5 or 64Gi with type Quantity",
	},
	{
		"a number that nobody can compare in time",
		properties(typed(v1alpha1.PropertyQuantity, v1alpha1.PropertyEq, "1e2147483647")),
		firstProperty + ".values", "an exponent have at most two digits",
	},
	{
		"a number that nobody can read in time, with no type",
		properties(property("p", v1alpha1.PropertyLt, "1e-2147483647")),
		firstProperty + ".values", "values must be a quantity such as 64Gi",
	},
	{
		"a version of two numbers",
		properties(typed(v1alpha1.PropertyVersion, v1alpha1.PropertyEq, "1.30")),
		firstProperty + ".values", "values must be semantic versions of three numbers such as v1.31.2 with type Version",
	},
	{
		"the first of several is no version",
		properties(typed(v1alpha1.PropertyVersion, v1alpha1.PropertyIn, "latest", "v1.2.3")),
		firstProperty + ".values", "values must be semantic versions of three numbers",
	},

	// Sorters.
	{
		"sorters beyond measure",
		sorters(times(9, func(i int) v1alpha1.PropertySorter {
			return v1alpha1.PropertySorter{Name: fmt.Sprintf("p%d", i)}
		})...),
		"sorters", "must have at most 8 items",
	},
	{
		"sort by what?",
		sorters(v1alpha1.PropertySorter{}),
		"sorters[0].name", "name must be the name of a property, or of a resource such as available/cpu",
	},
	{
		"a name beyond all names",
		sorters(v1alpha1.PropertySorter{Name: strings.Repeat("a", 330)}),
		"sorters[0].name", "may not be more than 329",
	},
	{
		"available what?",
		sorters(v1alpha1.PropertySorter{Name: "available/"}),
		"sorters[0].name",
		"name must have the name of a resource after capacity/, allocatable/ or available/, such as available/cpu",
	},
	{
		"no resource has such a name",
		sorters(v1alpha1.PropertySorter{Name: "capacity/a b"}),
		"sorters[0].name", "name must have the name of a resource after capacity/, allocatable/ or available/",
	},
	{
		"an order that does not exist",
		sorters(v1alpha1.PropertySorter{Name: "p", Order: "Random"}),
		"sorters[0].order", `supported values: "Ascending", "Descending"`,
	},
	{
		"the order turns a sorter around, not its weight",
		sorters(v1alpha1.PropertySorter{Name: "p", Weight: -1}),
		"sorters[0].weight", "weight must be from 1 to 100; leave it out for 1, and set order to reverse the order",
	},
	{
		"weights are of one scale",
		sorters(v1alpha1.PropertySorter{Name: "p", Weight: 101}),
		"sorters[0].weight", "weight must be from 1 to 100",
	},
	{
		"sorted twice, perhaps in two orders",
		sorters(v1alpha1.PropertySorter{Name: "p"}, v1alpha1.PropertySorter{Name: "p", Order: v1alpha1.Ascending}),
		"sorters[1]", "Duplicate value",
	},

	// Tolerations.
	{
		"tolerations beyond measure",
		tolerating(times(33, func(int) v1alpha1.Toleration { return v1alpha1.Toleration{Key: "k"} })...),
		"tolerations", "must have at most 32 items",
	},
	{
		"every taint is tolerated by Exists only, so that nobody does it by leaving out a line",
		tolerating(v1alpha1.Toleration{}),
		"tolerations[0].key", "key is required with operator Equal; use operator Exists to tolerate every taint",
	},
	{
		"a key that no taint has",
		tolerating(v1alpha1.Toleration{Key: "two words"}),
		"tolerations[0].key", "key must be a qualified name such as example.com/maintenance",
	},
	{
		"a key that is too long for a taint",
		tolerating(v1alpha1.Toleration{Key: strings.Repeat("a", 318)}),
		"tolerations[0].key", "may not be more than 317",
	},
	{
		"an operator of another API",
		tolerating(v1alpha1.Toleration{Key: "k", Operator: "In"}),
		"tolerations[0].operator", `supported values: "Equal", "Exists"`,
	},
	{
		"a value that no taint has",
		tolerating(v1alpha1.Toleration{Key: "k", Value: "two words"}),
		"tolerations[0].value", "value must be letters, digits, '-', '_' or '.'",
	},
	{
		"a value that is too long for a taint",
		tolerating(v1alpha1.Toleration{Key: "k", Value: long}),
		"tolerations[0].value", "may not be more than 63",
	},
	{
		"any value, and this one",
		tolerating(v1alpha1.Toleration{Key: "k", Operator: corev1.TolerationOpExists, Value: "v"}),
		"tolerations[0].value", "operator Exists tolerates every value: remove value, or use operator Equal",
	},
	{
		"an effect that no taint has",
		tolerating(v1alpha1.Toleration{Key: "k", Effect: "Evict"}),
		"tolerations[0].effect", `supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
	},
	{
		"nothing is moved away by NoSchedule, now or later",
		tolerating(v1alpha1.Toleration{Key: "k", Effect: corev1.TaintEffectNoSchedule, TolerationSeconds: new(int64(60))}),
		"tolerations[0].tolerationSeconds", "tolerationSeconds may only be set with effect NoExecute: remove it, or set " +
			"the effect to NoExecute",
	},
	{
		"less than no time",
		tolerating(v1alpha1.Toleration{Key: "k", TolerationSeconds: new(int64(-1))}),
		"tolerations[0].tolerationSeconds",
		"tolerationSeconds must be from 0 to 31536000 (a year); leave it out to tolerate the taint forever",
	},
	{
		"a second more than a year",
		tolerating(v1alpha1.Toleration{Key: "k", TolerationSeconds: new(int64(31536001))}),
		"tolerations[0].tolerationSeconds", "tolerationSeconds must be from 0 to 31536000",
	},

	// Spreads.
	{
		"PickAll leaves out no cluster for a spread",
		pickAll(func(p *v1alpha1.PlacementPolicy) {
			p.TopologySpread = []v1alpha1.TopologySpreadConstraint{{TopologyKey: "region"}}
		}),
		"topologySpread", "topologySpread with DoNotSchedule may only be set with type PickN, because PickAll selects " +
			"every cluster: set whenUnsatisfiable to ScheduleAnyway, or the type to PickN",
	},
	{
		"spreads that cannot all be kept",
		topology(times(5, func(i int) v1alpha1.TopologySpreadConstraint {
			return v1alpha1.TopologySpreadConstraint{TopologyKey: fmt.Sprintf("k%d", i)}
		})...),
		"topologySpread", "must have at most 4 items",
	},
	{
		"spread over what?",
		topology(v1alpha1.TopologySpreadConstraint{}),
		"topologySpread[0].topologyKey", "topologyKey must be the key of a label such as topology.kubernetes.io/region",
	},
	{
		"a key that no label has",
		topology(v1alpha1.TopologySpreadConstraint{TopologyKey: strings.Repeat("a", 318)}),
		"topologySpread[0].topologyKey", "may not be more than 317",
	},
	{
		"a skew of less than nothing",
		topology(v1alpha1.TopologySpreadConstraint{TopologyKey: "region", MaxSkew: -1}),
		"topologySpread[0].maxSkew", "maxSkew must be 1 or more; leave it out for 1",
	},
	{
		"no domains",
		topology(v1alpha1.TopologySpreadConstraint{TopologyKey: "region", MinDomains: new(int32(0))}),
		"topologySpread[0].minDomains", "minDomains must be 1 or more; leave it out for no minimum",
	},
	{
		"a minimum that nobody has to keep",
		topology(v1alpha1.TopologySpreadConstraint{TopologyKey: "region", MinDomains: new(int32(2)),
			WhenUnsatisfiable: v1alpha1.ScheduleAnyway}),
		"topologySpread[0].minDomains",
		"minDomains may only be set with whenUnsatisfiable DoNotSchedule: remove it, or set whenUnsatisfiable to " +
			"DoNotSchedule",
	},
	{
		"an action that does not exist",
		topology(v1alpha1.TopologySpreadConstraint{TopologyKey: "region", WhenUnsatisfiable: "Panic"}),
		"topologySpread[0].whenUnsatisfiable", `supported values: "DoNotSchedule", "ScheduleAnyway"`,
	},
	{
		"one topology with two skews",
		topology(v1alpha1.TopologySpreadConstraint{TopologyKey: "region"},
			v1alpha1.TopologySpreadConstraint{TopologyKey: "region", MaxSkew: 2}),
		"topologySpread[1]", "Duplicate value",
	},
	{
		"groups of groups of groups",
		groups(times(5, func(i int) v1alpha1.GroupSpreadConstraint {
			return v1alpha1.GroupSpreadConstraint{Label: fmt.Sprintf("l%d", i)}
		})...),
		"groupSpread", "must have at most 4 items",
	},
	{
		"groups of what?",
		groups(v1alpha1.GroupSpreadConstraint{MinGroups: 1}),
		"groupSpread[0].label", "label must be the key of a label such as example.com/provider",
	},
	{
		"a label beyond all labels",
		groups(v1alpha1.GroupSpreadConstraint{Label: strings.Repeat("a", 318)}),
		"groupSpread[0].label", "may not be more than 317",
	},
	{
		"at least less than none",
		groups(v1alpha1.GroupSpreadConstraint{Label: "provider", MinGroups: -1}),
		"groupSpread[0].minGroups", "minGroups must not be negative; leave it out for no minimum",
	},
	{
		"at most less than none",
		groups(v1alpha1.GroupSpreadConstraint{Label: "provider", MaxGroups: -1}),
		"groupSpread[0].maxGroups", "maxGroups must not be negative; leave it out for no maximum",
	},
	{
		"no number is at least three and at most two",
		groups(v1alpha1.GroupSpreadConstraint{Label: "provider", MinGroups: 3, MaxGroups: 2}),
		"groupSpread[0].maxGroups", "maxGroups must not be less than minGroups; leave it out for no maximum",
	},
	{
		"nor is one at least two and at most one",
		groups(v1alpha1.GroupSpreadConstraint{Label: "provider", MinGroups: 2, MaxGroups: 1}),
		"groupSpread[0].maxGroups", "maxGroups must not be less than minGroups",
	},
	{
		"one label with two bounds",
		groups(v1alpha1.GroupSpreadConstraint{Label: "provider", MinGroups: 1},
			v1alpha1.GroupSpreadConstraint{Label: "provider", MaxGroups: 2}),
		"groupSpread[1]", "Duplicate value",
	},

	// The rest.
	{
		"more prioritizers than plugins",
		prioritizers(times(33, func(i int) v1alpha1.Prioritizer {
			return v1alpha1.Prioritizer{Plugin: fmt.Sprintf("p%d", i)}
		})...),
		"prioritizers", "must have at most 32 items",
	},
	{
		"a weight of nothing",
		prioritizers(v1alpha1.Prioritizer{Weight: 1}),
		"prioritizers[0].plugin", "plugin must be a qualified name such as example.com/carbon",
	},
	{
		"a plugin beyond all plugins",
		prioritizers(v1alpha1.Prioritizer{Plugin: strings.Repeat("a", 318)}),
		"prioritizers[0].plugin", "may not be more than 317",
	},
	{
		"a plugin is turned off, not around",
		prioritizers(v1alpha1.Prioritizer{Plugin: "Balance", Weight: -1}),
		"prioritizers[0].weight", "weight must be from 0 to 100; 0 disables the plugin",
	},
	{
		"one plugin above all others",
		prioritizers(v1alpha1.Prioritizer{Plugin: "Balance", Weight: 101}),
		"prioritizers[0].weight", "weight must be from 0 to 100",
	},
	{
		"one plugin with two weights",
		prioritizers(v1alpha1.Prioritizer{Plugin: "Balance", Weight: 1}, v1alpha1.Prioritizer{Plugin: "Balance", Weight: 2}),
		"prioritizers[1]", "Duplicate value",
	},
	{
		"less than nothing",
		resources("cpu", "-1"),
		"resources", "resources must not be negative",
	},
	{
		"a hair less than nothing",
		resources("memory", "-500m"),
		"resources", "resources must not be negative",
	},
	{
		"no resource has such a name",
		resources("two words", "1"),
		"resources", "resources must have qualified names such as cpu or nvidia.com/gpu",
	},
	{
		"an amount that nobody can compare in time",
		resources("cpu", "1e2147483647"),
		"resources", "resources must not have exponents that are signed or have more than one digit: write a suffix",
	},
	{
		"the exponent may be an E",
		resources("cpu", "1E210"),
		"resources", "resources must not have exponents",
	},
	{
		"more resources than clusters have",
		v1alpha1.PlacementPolicy{Resources: corev1.ResourceList{
			"r0": {}, "r1": {}, "r2": {}, "r3": {}, "r4": {}, "r5": {}, "r6": {}, "r7": {}, "r8": {},
			"r9": {}, "r10": {}, "r11": {}, "r12": {}, "r13": {}, "r14": {}, "r15": {}, "r16": {},
		}},
		"resources", "must have at most 16",
	},
	{
		"more APIs than a product needs",
		apis(times(33, func(i int) metav1.GroupVersionKind {
			return metav1.GroupVersionKind{Version: "v1", Kind: fmt.Sprintf("K%d", i)}
		})...),
		"requiredAPIs", "must have at most 32 items",
	},
	{
		"an API of no version",
		apis(metav1.GroupVersionKind{Group: "apps", Kind: "Deployment"}),
		"requiredAPIs[0].version", "version must be the version of an API, such as v1",
	},
	{
		"an API of no kind",
		apis(metav1.GroupVersionKind{Group: "apps", Version: "v1"}),
		"requiredAPIs[0].kind", "kind must be the kind of an API, such as Deployment",
	},
	{
		"no version has such a name",
		apis(metav1.GroupVersionKind{Group: "apps", Version: long, Kind: "Deployment"}),
		"requiredAPIs[0].version", "version must be the version of an API, such as v1",
	},
	{
		"no kind has such a name",
		apis(metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: long}),
		"requiredAPIs[0].kind", "kind must be the kind of an API, such as Deployment",
	},
	{
		"no group has such a name",
		apis(metav1.GroupVersionKind{Group: strings.Repeat("a", 254), Version: "v1", Kind: "Deployment"}),
		"requiredAPIs[0].group", "group must be the group of an API, such as apps, or empty for the core group",
	},
	{
		"an API twice",
		apis(deployment, deployment),
		"requiredAPIs[1]", "Duplicate value",
	},
	{
		"no profile has such a name",
		v1alpha1.PlacementPolicy{Profile: "two words"},
		"profile", "profile must be a qualified name such as example.com/cheapest",
	},
	{
		"a profile beyond all profiles",
		v1alpha1.PlacementPolicy{Profile: strings.Repeat("a", 318)},
		"profile", "may not be more than 317",
	},
}

var acceptedPolicies = map[string]v1alpha1.PlacementPolicy{
	"the zero policy is PickAll": {},
	"none for now": pickN(func(p *v1alpha1.PlacementPolicy) {
		p.NumberOfClusters = new(int32(0))
	}),
	"as many as can be": pickN(func(p *v1alpha1.PlacementPolicy) {
		p.NumberOfClusters = new(int32(10000))
	}),
	"a long name": pickFixed(func(p *v1alpha1.PlacementPolicy) {
		p.ClusterNames = []string{long[:63], "1"}
	}),
	"named, by a profile": pickFixed(func(p *v1alpha1.PlacementPolicy) {
		p.Profile = "example.com/fixed"
	}),
	"an affinity that does not ask": {Affinity: &v1alpha1.ClusterAffinity{}},
	"weights to the edge": preferring(v1alpha1.PreferredTerm{Weight: 100, Term: region},
		v1alpha1.PreferredTerm{Weight: -100, Term: region}),
	"labels by expression": requiring(v1alpha1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "region", Operator: metav1.LabelSelectorOpExists}}}}),
	"CEL alone": requiring(
		v1alpha1.ClusterSelectorTerm{CEL: []string{"cluster.name == 'east'"}}),
	"quantities in order": properties(property("a", v1alpha1.PropertyGt, "64Gi"), property("a",
		v1alpha1.PropertyGe, ".5"), property("a", v1alpha1.PropertyLt, "-1e-9"), property("a", v1alpha1.PropertyLe, "5.")),
	"versions in order": properties(property("a", v1alpha1.PropertyGe, "v1.31.2"),
		property("a", v1alpha1.PropertyLt, "1.33.0-rc.1+build.5")),
	"1.30 is a quantity, so it is in order": properties(property("a", v1alpha1.PropertyGe, "1.30")),
	"types that are said": properties(typed(v1alpha1.PropertyQuantity, v1alpha1.PropertyIn, "1",
		"2Ki"), typed(v1alpha1.PropertyVersion, v1alpha1.PropertyNotIn, "v1.2.3", "1.2.4"),
		typed(v1alpha1.PropertyString, v1alpha1.PropertyEq, "1.30")),
	"a type of what is not compared": properties(typed(v1alpha1.PropertyVersion, v1alpha1.PropertyExists),
		property("b", v1alpha1.PropertyDoesNotExist)),
	"the empty text is a value": properties(property("a", v1alpha1.PropertyEq, ""),
		property("a", v1alpha1.PropertyNe, "")),
	"one property between two bounds": properties(property("a", v1alpha1.PropertyGe, "1"),
		property("a", v1alpha1.PropertyLe, "5")),
	"1024 characters, if not bytes": properties(property("a", v1alpha1.PropertyEq, strings.Repeat("ä", 1024))),
	"sorters": sorters(v1alpha1.PropertySorter{Name: "available/nvidia.com/gpu",
		Weight: 100}, v1alpha1.PropertySorter{Name: "example.com/cost", Order: v1alpha1.Ascending},
		v1alpha1.PropertySorter{Name: "capacity", Weight: 1}),
	"every taint": tolerating(v1alpha1.Toleration{Operator: corev1.TolerationOpExists}),
	"every effect, for a time": tolerating(v1alpha1.Toleration{Key: "example.com/maintenance", Value: "yes",
		TolerationSeconds: new(int64(0))}),
	"for a year": tolerating(
		v1alpha1.Toleration{Key: "k", Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(31536000))}),
	"the same taint in two ways": tolerating(v1alpha1.Toleration{Key: "k", Value: "a"},
		v1alpha1.Toleration{Key: "k", Value: "b"}),
	"PickAll in an order that spreads": {TopologySpread: []v1alpha1.TopologySpreadConstraint{
		{TopologyKey: "region", WhenUnsatisfiable: v1alpha1.ScheduleAnyway}}},
	"spread": topology(
		v1alpha1.TopologySpreadConstraint{TopologyKey: "topology.kubernetes.io/region", MaxSkew: 5,
			MinDomains: new(int32(1))}, v1alpha1.TopologySpreadConstraint{TopologyKey: "zone"}),
	"groups": groups(v1alpha1.GroupSpreadConstraint{Label: "a", MinGroups: 2},
		v1alpha1.GroupSpreadConstraint{Label: "b", MaxGroups: 2}, v1alpha1.GroupSpreadConstraint{Label: "c", MinGroups: 2,
			MaxGroups: 2}),
	"a plugin that is off": prioritizers(v1alpha1.Prioritizer{Plugin: "Balance"},
		v1alpha1.Prioritizer{Plugin: "example.com/Carbon", Weight: 100}),
	"a resource that need not be there": resources("nvidia.com/gpu", "0"),
	"resources by suffix and by one exponent": {Resources: corev1.ResourceList{"cpu": resource.MustParse("1500m"),
		"memory": resource.MustParse("2Ei"), "a": resource.MustParse("3E"), "b": resource.MustParse("3e6")}},
	"APIs": apis(deployment, metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		metav1.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}),
	"in one": properties(property("a", v1alpha1.PropertyIn, "x"), property("a", v1alpha1.PropertyNotIn, "1")),
	"the shortest names and the longest of APIs": apis(metav1.GroupVersionKind{Group: strings.Repeat("a.", 126) + "a",
		Version: long[:63], Kind: long[:63]}, metav1.GroupVersionKind{Group: "a", Version: "v", Kind: "K"}),
	"everything to its limit": largest(),
}

// preferredToo returns the cases of a required term for a preferred one.
func preferredToo(tests []refused) []refused {
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
