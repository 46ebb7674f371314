package placement

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

func groupsFor(t require.TestingT, spec v1alpha1.PlacementSpec) groups {
	grouping, err := newGroups(&spec)
	require.NoError(t, err)
	return grouping
}

func partsOf(size string) v1alpha1.PlacementSpec {
	return v1alpha1.PlacementSpec{ClustersPerDecisionGroup: new(intstr.Parse(size))}
}

// texts formats decisions as cluster:group.part.
func texts(decisions []v1alpha1.ClusterDecision) (out []string) {
	for _, d := range decisions {
		out = append(out, fmt.Sprintf("%s:%s.%d", d.ClusterName, d.Group, d.GroupPart))
	}
	return out
}

func selected(names ...string) []published {
	var all []*scheduler.Cluster
	for _, name := range names {
		all = append(all, &scheduler.Cluster{Name: name})
	}
	return asChosen(choices(all...))
}

func TestGroups_ByLabels(t *testing.T) {
	grouping := groupsFor(t, v1alpha1.PlacementSpec{DecisionGroups: []v1alpha1.DecisionGroup{
		{Name: "canary", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "canary"}}},
		{Name: "eu", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}},
	}})
	c := func(name, tier, region string) *scheduler.Cluster {
		return &scheduler.Cluster{Name: name, Labels: map[string]string{"tier": tier, "region": region}}
	}
	all := asChosen(choices(c("b", "", "us"), c("a", "", "eu"), c("d", "canary", "eu"), c("c", "", "eu")))
	require.Equal(t, []string{"d:canary.0", "a:eu.0", "c:eu.0", "b:.0"}, texts(grouping.decisions(nil, all)))
}

func TestGroups_ByProperties(t *testing.T) {
	grouping := groupsFor(t, v1alpha1.PlacementSpec{DecisionGroups: []v1alpha1.DecisionGroup{{
		Name: "new", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}},
		Properties: []v1alpha1.PropertyRequirement{{
			Name: "version", Operator: v1alpha1.PropertyGe, Type: v1alpha1.PropertyVersion, Values: []string{"1.36.0"},
		}},
	}}})
	c := func(name, region, version string) *scheduler.Cluster {
		return &scheduler.Cluster{
			Name: name, Labels: map[string]string{"region": region}, Properties: map[string]string{"version": version},
		}
	}
	all := asChosen(choices(
		c("old", "eu", "1.35.9"), c("match", "eu", "1.36.1"), c("elsewhere", "us", "1.36.1"),
		&scheduler.Cluster{Name: "unknown", Labels: map[string]string{"region": "eu"}},
	))
	require.Equal(t, []string{"match:new.0", "old:.0", "elsewhere:.0", "unknown:.0"}, texts(grouping.decisions(nil, all)))
}

func TestGroups_Invalid(t *testing.T) {
	for name, test := range map[string]struct {
		spec v1alpha1.PlacementSpec
		want string
	}{
		"selector": {v1alpha1.PlacementSpec{DecisionGroups: []v1alpha1.DecisionGroup{{Selector: metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}},
		}}}}, "spec.decisionGroups[0].selector"},
		"property": {v1alpha1.PlacementSpec{DecisionGroups: []v1alpha1.DecisionGroup{
			{Properties: []v1alpha1.PropertyRequirement{
				{Name: "a", Operator: v1alpha1.PropertyGt},
			}}}}, "spec.decisionGroups[0].properties[0].values"},
		"no clusters":  {partsOf("0"), "spec.clustersPerDecisionGroup must be a number from 1"},
		"zero percent": {partsOf("0%"), "spec.clustersPerDecisionGroup must be a number from 1"},
		"a text":       {partsOf("some"), "spec.clustersPerDecisionGroup must be a number from 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newGroups(&test.spec)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestGroups_Parts(t *testing.T) {
	entry := func(name string, part int32) v1alpha1.ClusterDecision {
		return v1alpha1.ClusterDecision{ClusterName: name, GroupPart: part}
	}
	before := []decision.Slice{{Decisions: []v1alpha1.ClusterDecision{entry("a", 0), entry("b", 0), entry("c", 1),
		entry("d", 1)}}}
	elsewhere := []decision.Slice{{Decisions: []v1alpha1.ClusterDecision{{ClusterName: "a", Group: "canary",
		GroupPart: 1}}}}
	for name, test := range map[string]struct {
		size   string
		before []decision.Slice
		chosen []published
		want   []string
	}{
		"the best clusters are in the first part": {"2", nil, selected("c", "a", "b"), []string{"c:.0", "a:.0", "b:.1"}},
		"percentages are rounded up": {"34%", nil, selected("a", "b", "c", "d"), []string{"a:.0", "b:.0", "c:.1",
			"d:.1"}},
		"all in one part": {"100%", nil, selected("a", "b", "c"), []string{"a:.0", "b:.0", "c:.0"}},
		"clusters keep their part": {"2", before, selected("d", "c", "b", "a"), []string{"d:.1", "c:.1", "b:.0",
			"a:.0"}},
		"new clusters fill the first part": {"2", before, selected("x", "b", "c", "d"), []string{"x:.0", "b:.0", "c:.1",
			"d:.1"}},
		"an empty part does not move the others": {"2", before, selected("c", "d"), []string{"c:.1", "d:.1"}},
		"a part that became too large": {"1", before, selected("a", "b", "c", "d"), []string{"a:.0", "b:.2", "c:.1",
			"d:.3"}},
		"a cluster of another group": {"1", elsewhere, selected("a"), []string{"a:.0"}},
		"no clusters":                {"50%", before, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, texts(groupsFor(t, partsOf(test.size)).decisions(test.before, test.chosen)))
		})
	}
	undivided := groupsFor(t, v1alpha1.PlacementSpec{}).decisions(before, selected("c"))
	require.Equal(t, []string{"c:.0"}, texts(undivided), "the Placement does not divide groups any more")
}

// TestGroups_PartsAreSteady checks that no part is too large, that the number of parts is bounded, and that a cluster
// that stays changes its part only if the maximum size has become smaller.
func TestGroups_PartsAreSteady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before []decision.Slice
		smallest := 1 << 20
		for range rapid.IntRange(1, 5).Draw(t, "rounds") {
			size := rapid.SampledFrom([]string{"1", "3", "50", "1%", "10%", "100%"}).Draw(t, "size")
			ids := rapid.SliceOfDistinct(rapid.IntRange(0, 250), rapid.ID[int]).Draw(t, "chosen")
			var names []string
			for _, id := range ids {
				names = append(names, fmt.Sprintf("c-%03d", id))
			}
			grouping := groupsFor(t, partsOf(size))
			got := grouping.decisions(before, selected(names...))
			limit := grouping.sizeFor(len(names))
			count := map[int32]int{}
			for _, d := range got {
				count[d.GroupPart]++
				if count[d.GroupPart] > limit {
					t.Fatalf("part %d has more than %d clusters", d.GroupPart, limit)
				}
			}
			if len(before) == 0 && len(count) > maxParts {
				t.Fatalf("%d parts", len(count))
			}
			former := map[string]int32{}
			for _, slice := range before {
				for _, d := range slice.Decisions {
					former[d.ClusterName] = d.GroupPart
				}
			}
			for _, d := range got {
				if part, known := former[d.ClusterName]; known && limit >= smallest && part != d.GroupPart {
					t.Fatalf("%s moved from part %d to part %d", d.ClusterName, part, d.GroupPart)
				}
			}
			smallest = limit
			before = decision.Lay(before, got)
			again := grouping.decisions(before, selected(names...))
			require.Equal(t, texts(got), texts(again), "the same choice again")
		}
	})
}
