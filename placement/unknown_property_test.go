package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// TestUnknownProperty_Condition checks that a property and a sorter that can never match are reported in the condition
// PropertiesKnown of the Placement, with the field and the remedy, and that this ends when a cluster reports them.
func TestUnknownProperty_Condition(t *testing.T) { testkit.Virtual(t, testUnknownPropertyCondition) }

func testUnknownPropertyCondition(t *testing.T) {
	reports := func(name, property string) *scheduler.Cluster {
		return cluster(name, "eu", func(c *scheduler.Cluster) {
			c.Properties = map[string]string{property: "3"}
			c.Available = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
		})
	}
	h, s, clock := newHub(t), newSource(reports("a", "other")), clocktesting.NewFakeClock(time.Now())
	h.start(placement.Options{Clusters: s, Clock: clock})
	requires := func(property string) v1alpha1.PlacementPolicy {
		return v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{{
			Properties: []v1alpha1.PropertyRequirement{
				{Name: property, Operator: v1alpha1.PropertyGt, Values: []string{"1"}},
			},
		}}}}
	}
	sorts := func(name string) v1alpha1.PlacementPolicy {
		policy := pick(1)
		policy.Sorters = []v1alpha1.PropertySorter{{Name: name}}
		return policy
	}
	h.create("resource", requires("available/cpu"))
	h.create("typo", requires("prize"))
	h.create("sorter", sorts("available/cpuu"))
	h.create("fine", sorts("available/cpu"))
	h.create("late", sorts("prize")) // chooses a, so a report of b causes no decision
	known := func(name string) metav1.Condition {
		if c := meta.FindStatusCondition(h.get(name).Status.Conditions, v1alpha1.ConditionPropertiesKnown); c != nil {
			return *c
		}
		return metav1.Condition{}
	}
	for name, message := range map[string]string{
		"resource": "to require an amount of cpu, set spec.policy.resources",
		"typo":     `spec.policy.affinity.required[0].properties[0].name: no cluster reports a property "prize"`,
		"late":     `spec.policy.sorters[0].name: no cluster reports a property "prize"`,
		"sorter":   `spec.policy.sorters[0].name: no cluster reports a resource "cpuu"`,
	} {
		h.Holds(name+" has the condition", func() bool { return known(name).Status == metav1.ConditionFalse })
		require.Equal(t, v1alpha1.ReasonUnknownProperty, known(name).Reason)
		require.Contains(t, known(name).Message, message)
	}
	h.Holds("a known name is reported as known", func() bool { return known("fine").Status == metav1.ConditionTrue })

	s.set(reports("b", "prize"))
	clock.Step(5 * time.Minute)
	for _, name := range []string{"typo", "late"} {
		h.Holds("the property is known", func() bool { return known(name).Status == metav1.ConditionTrue })
	}
	require.Equal(t, metav1.ConditionFalse, known("sorter").Status)
}
