package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Package placement/crds tests the rules that Validate and the API server have in common, with one table for both. This
// file tests the rules that only Validate has.

func term(term v1alpha1.ClusterSelectorTerm) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{term}}}
}

func selecting(key string, operator metav1.LabelSelectorOperator, values ...string) v1alpha1.PlacementPolicy {
	return term(v1alpha1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}},
	}})
}

func comparing(kind v1alpha1.PropertyType, values ...string) v1alpha1.PlacementPolicy {
	return term(v1alpha1.ClusterSelectorTerm{Properties: []v1alpha1.PropertyRequirement{
		{Name: "p", Operator: v1alpha1.PropertyIn, Values: values, Type: kind},
	}})
}

func TestValidatePlacementPolicy_RulesWithoutAPIServer(t *testing.T) {
	const selector = "affinity.required[0].labelSelector"
	for _, test := range []struct {
		reason string
		policy v1alpha1.PlacementPolicy
		field  string
		want   string
	}{
		{
			"an invalid label key",
			term(v1alpha1.ClusterSelectorTerm{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"two words": "a"}}}),
			selector + ".matchLabels", "name part must consist of alphanumeric characters",
		},
		{
			"an invalid label value",
			term(v1alpha1.ClusterSelectorTerm{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "two words"}}}),
			selector + ".matchLabels", "a valid label must be",
		},
		{
			"an unknown operator of a label selector",
			selecting("a", "Gt", "5"),
			selector + ".matchExpressions[0].operator", "not a valid selector operator",
		},
		{
			"In without values",
			selecting("a", metav1.LabelSelectorOpIn),
			selector + ".matchExpressions[0].values", "must be specified",
		},
		{
			"a label selector of a preferred term",
			v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{Preferred: []v1alpha1.PreferredTerm{
				{Weight: 1, Term: selecting("a", metav1.LabelSelectorOpIn).Affinity.Required[0]}}}},
			"affinity.preferred[0].term.labelSelector.matchExpressions[0].values", "must be specified",
		},
		{
			"the second of several values is not a quantity",
			comparing(v1alpha1.PropertyQuantity, "5", "many"),
			"affinity.required[0].properties[0].values[1]", "values must be quantities such as 500m, 1.5 or 64Gi",
		},
		{
			"the second of several values is not a version",
			comparing(v1alpha1.PropertyVersion, "v1.2.3", "v1.2"),
			"affinity.required[0].properties[0].values[1]", "values must be semantic versions of three numbers",
		},
		{
			"an invalid pre-release",
			comparing(v1alpha1.PropertyVersion, "v1.2.3-_"),
			"affinity.required[0].properties[0].values[0]", "values must be semantic versions",
		},
		{
			"a profile with an invalid prefix",
			v1alpha1.PlacementPolicy{Profile: "a..b/c"},
			"profile", "profile must be a qualified name",
		},
		{
			"Gt with a large exponent",
			term(v1alpha1.ClusterSelectorTerm{
				Properties: []v1alpha1.PropertyRequirement{{Name: "p", Operator: v1alpha1.PropertyGt, Values: []string{"1e100"}}}}),
			"affinity.required[0].properties[0].values[0]", "values must be a quantity such as 64Gi",
		},
		{
			"group and version in one, as in apiVersion",
			v1alpha1.PlacementPolicy{RequiredAPIs: []metav1.GroupVersionKind{{Version: "apps/v1", Kind: "Deployment"}}},
			"requiredAPIs[0].version", "version must be the version of an API, such as v1",
		},
		{
			"an API group that is not a DNS name",
			v1alpha1.PlacementPolicy{
				RequiredAPIs: []metav1.GroupVersionKind{{Group: "Apps", Version: "v1", Kind: "Deployment"}}},
			"requiredAPIs[0].group", "group must be the group of an API, such as apps",
		},
		{
			"an API kind with a group",
			v1alpha1.PlacementPolicy{
				RequiredAPIs: []metav1.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "deployments.apps"}}},
			"requiredAPIs[0].kind", "kind must be the kind of an API, such as Deployment",
		},
		{
			"the second of two resources is invalid",
			v1alpha1.PlacementPolicy{Resources: corev1.ResourceList{"cpu": resource.MustParse("1"),
				"memory": resource.MustParse("-1")}},
			"resources[memory]", "resources must not be negative",
		},
		{
			"the second of two topology constraints is invalid",
			v1alpha1.PlacementPolicy{TopologySpread: []v1alpha1.TopologySpreadConstraint{
				{TopologyKey: "region", WhenUnsatisfiable: v1alpha1.ScheduleAnyway}, {TopologyKey: "zone"},
			}},
			"topologySpread[1].whenUnsatisfiable", "may only be set with type PickN",
		},
	} {
		errs := test.policy.Validate(nil)
		if len(errs) != 1 || errs[0].Field != test.field || !strings.Contains(errs[0].Error(), test.want) {
			t.Errorf("%s: want one error of %s with %q, got %v", test.reason, test.field, test.want, errs)
		}
	}
}

// TestValidatePlacementPolicy_AllErrorsInOrder tests that Validate returns all errors, with the given path, and always
// in the same order.
func TestValidatePlacementPolicy_AllErrorsInOrder(t *testing.T) {
	labels, resources := map[string]string{}, corev1.ResourceList{}
	for i := range 8 {
		labels[fmt.Sprintf("wrong %d", i)] = ""
		resources[corev1.ResourceName(fmt.Sprintf("r%d", i))] = resource.MustParse("-1")
	}
	policy := v1alpha1.PlacementPolicy{
		Type: v1alpha1.PickFixed, ClusterNames: []string{"East", "west"},
		Affinity: &v1alpha1.ClusterAffinity{
			Required: []v1alpha1.ClusterSelectorTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}},
		},
		Resources: resources,
	}
	errs := policy.Validate(field.NewPath("spec", "where"))
	var fields []string
	for _, e := range errs {
		fields = append(fields, e.Field)
	}
	want := []string{"spec.where.clusterNames[0]", "spec.where.affinity", "spec.where.resources"}
	for range labels {
		want = append(want, "spec.where.affinity.required[0].labelSelector.matchLabels")
	}
	for i := range 8 {
		want = append(want, fmt.Sprintf("spec.where.resources[r%d]", i))
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	text := errs.ToAggregate().Error()
	for range 20 {
		if again := policy.Validate(field.NewPath("spec", "where")).ToAggregate().Error(); again != text {
			t.Fatalf("the order of the errors depends on the order of a map:\n%s\n%s", text, again)
		}
	}
}

// TestValidatePlacementPolicy_KeepsPolicy tests that Validate does not change the policy.
func TestValidatePlacementPolicy_KeepsPolicy(t *testing.T) {
	policy := v1alpha1.PlacementPolicy{
		Type:           v1alpha1.PickN,
		Sorters:        []v1alpha1.PropertySorter{{Name: "cost"}},
		Tolerations:    []v1alpha1.Toleration{{Key: "k"}},
		TopologySpread: []v1alpha1.TopologySpreadConstraint{{TopologyKey: "region"}},
	}
	before := policy.DeepCopy()
	policy.Validate(nil)
	if diff := cmp.Diff(*before, policy); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
}
