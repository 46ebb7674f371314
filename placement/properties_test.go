package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

func TestPropertiesOf(t *testing.T) {
	fleet := func(clusters ...*scheduler.Cluster) *scheduler.Snapshot {
		cache := &scheduler.Cache{}
		for _, c := range clusters {
			cache.Update(c)
		}
		return cache.Snapshot()
	}
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	east := &scheduler.Cluster{Name: "east", Properties: map[string]string{"price": "3", "version": "v1.36.0"},
		Available: cpu, Allocatable: corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}}
	requires := func(name string, operator v1alpha1.PropertyOperator) v1alpha1.PlacementPolicy {
		return v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{
			{Properties: []v1alpha1.PropertyRequirement{{Name: name, Operator: operator}}},
		}}}
	}
	sorts := func(name string) v1alpha1.PlacementPolicy {
		return v1alpha1.PlacementPolicy{Sorters: []v1alpha1.PropertySorter{{Name: name}}}
	}
	for _, test := range []struct {
		reason string
		policy v1alpha1.PlacementPolicy
		named  bool
		want   []string
	}{
		{"no property is named", v1alpha1.PlacementPolicy{}, false, nil},
		{"a property that a cluster reports", requires("price", v1alpha1.PropertyGt), true, nil},
		{"a typo", requires("prize", v1alpha1.PropertyGt), true, []string{
			`spec.policy.affinity.required[0].properties[0].name: no cluster reports a property "prize"; check the spelling, ` +
				`or configure the agents to report the property`,
		}},
		{"a resource instead of a property", requires("available/cpu", v1alpha1.PropertyGt), true, []string{
			`spec.policy.affinity.required[0].properties[0].name: no cluster reports a property "available/cpu"; resources ` +
				`are not properties: to require an amount of cpu, set spec.policy.resources`,
		}},
		{"an unknown property that must not exist", requires("gpu", v1alpha1.PropertyDoesNotExist), false, nil},
		{"a sorter by a property", sorts("price"), true, nil},
		{"a sorter by a resource", sorts("available/cpu"), true, nil},
		{"a sorter by a resource without its prefix", sorts("cpu"), true, []string{
			`spec.policy.sorters[0].name: no cluster reports a property "cpu"; to sort by the resource, write "available/cpu"`,
		}},
		{"a sorter by an available resource that is only allocatable", sorts("available/example.com/gpu"), true, []string{
			`spec.policy.sorters[0].name: no cluster reports "available/example.com/gpu"; to sort by the resource, write ` +
				`"allocatable/example.com/gpu"`,
		}},
		{"a sorter by a property that is not a number", sorts("version"), true, []string{
			`spec.policy.sorters[0].name: property "version" is not a number on any cluster, so it has no effect on ` +
				`the order; choose a numeric property`,
		}},
		{"a preference with a typo", v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{
			Preferred: []v1alpha1.PreferredTerm{
				{Weight: 1, Term: requires("prize", v1alpha1.PropertyGt).Affinity.Required[0]},
			},
		}}, true, []string{
			`spec.policy.affinity.preferred[0].term.properties[0].name: no cluster reports a property "prize"; check the ` +
				`spelling, or configure the agents to report the property`,
		}},
		{"a sorter by a resource with a typo", sorts("available/cpuu"), true, []string{
			`spec.policy.sorters[0].name: no cluster reports a resource "cpuu"; check the spelling`,
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			got := propertiesOf(&test.policy, nil, fleet(east, &scheduler.Cluster{Name: "west"}))
			if diff := cmp.Diff(properties{test.named, test.want}, got, cmp.AllowUnexported(properties{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := propertiesOf(&test.policy, nil, fleet()); got.named || len(got.unknown) > 0 {
				t.Errorf("without clusters: %+v", got)
			}
		})
	}
}

// TestPropertiesOf_DecisionGroups checks that the properties that decision groups name are compared with the fleet,
// too.
func TestPropertiesOf_DecisionGroups(t *testing.T) {
	cache := &scheduler.Cache{}
	cache.Update(&scheduler.Cluster{Name: "east", Properties: map[string]string{"tier": "gold"}})
	group := func(property string) []v1alpha1.DecisionGroup {
		return []v1alpha1.DecisionGroup{{Name: "first", Properties: []v1alpha1.PropertyRequirement{
			{Name: property, Operator: v1alpha1.PropertyEq, Values: []string{"gold"}},
		}}}
	}
	for property, want := range map[string][]string{"tier": nil, "teir": {
		`spec.decisionGroups[0].properties[0].name: no cluster reports a property "teir"; check the spelling, or configure ` +
			`the agents to report the property`,
	}} {
		got := propertiesOf(&v1alpha1.PlacementPolicy{}, group(property), cache.Snapshot())
		if diff := cmp.Diff(properties{true, want}, got, cmp.AllowUnexported(properties{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", property, diff)
		}
	}
}

// TestPropertiesCondition checks that the condition exists only while the Placement names properties.
func TestPropertiesCondition(t *testing.T) {
	var status v1alpha1.PlacementStatus
	for _, test := range []struct {
		properties properties
		want       metav1.ConditionStatus
	}{
		{properties{}, ""},
		{properties{named: true, unknown: []string{"a"}}, metav1.ConditionFalse},
		{properties{named: true}, metav1.ConditionTrue},
		{properties{}, ""},
	} {
		test.properties.set(&status, 1, metav1.Now())
		var got metav1.ConditionStatus
		if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionPropertiesKnown); c != nil {
			got = c.Status
		}
		if got != test.want {
			t.Errorf("%+v: %q, want %q", test.properties, got, test.want)
		}
	}
}
