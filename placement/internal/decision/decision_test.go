package decision_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func chosen(names ...string) []v1alpha1.ClusterDecision {
	var decisions []v1alpha1.ClusterDecision
	for _, name := range names {
		decisions = append(decisions, v1alpha1.ClusterDecision{ClusterName: name})
	}
	return decisions
}

// many returns n clusters, beginning with the number first, as in c-000.
func many(first, n int) []v1alpha1.ClusterDecision {
	var decisions []v1alpha1.ClusterDecision
	for i := range n {
		decisions = append(decisions, chosen(fmt.Sprintf("c-%03d", first+i))...)
	}
	return decisions
}

func TestLay(t *testing.T) {
	for _, test := range []struct {
		reason string
		before []decision.Slice
		chosen []v1alpha1.ClusterDecision
		want   []decision.Slice
	}{
		{"no chosen clusters need no slice", nil, nil, []decision.Slice{}},
		{
			"the first clusters are in the chosen order",
			nil, chosen("b", "a"),
			[]decision.Slice{{Index: 0, Decisions: chosen("b", "a")}},
		},
		{
			"a cluster that stays keeps its position",
			[]decision.Slice{{Index: 0, Decisions: chosen("b", "a", "c")}}, chosen("a", "d", "b"),
			[]decision.Slice{{Index: 0, Decisions: chosen("b", "a", "d")}},
		},
		{
			"a slice has at most 100 clusters",
			nil, many(0, 101),
			[]decision.Slice{{Index: 0, Decisions: many(0, 100)}, {Index: 1, Decisions: many(100, 1)}},
		},
		{
			"clusters do not move to a slice with free positions",
			[]decision.Slice{{Index: 0, Decisions: many(0, 100)}, {Index: 1, Decisions: many(100, 1)}},
			append(many(1, 99), many(100, 1)...),
			[]decision.Slice{{Index: 0, Decisions: many(1, 99)}, {Index: 1, Decisions: many(100, 1)}},
		},
		{
			"new clusters fill the first free positions",
			[]decision.Slice{{Index: 0, Decisions: many(1, 99)}, {Index: 1, Decisions: many(100, 1)}},
			append(many(1, 101), chosen("x")...),
			[]decision.Slice{{Index: 0, Decisions: append(many(1, 99), many(101, 1)...)},
				{Index: 1, Decisions: append(many(100, 1), chosen("x")...)}},
		},
		{
			"an empty slice is removed, and others keep their index",
			[]decision.Slice{{Index: 0, Decisions: chosen("a")}, {Index: 1, Decisions: chosen("b")}}, chosen("b"),
			[]decision.Slice{{Index: 1, Decisions: chosen("b")}},
		},
		{
			"a free index is used again",
			[]decision.Slice{{Index: 1, Decisions: many(0, 100)}}, many(0, 101),
			[]decision.Slice{{Index: 0, Decisions: many(100, 1)}, {Index: 1, Decisions: many(0, 100)}},
		},
		{
			"the group of a cluster is updated",
			[]decision.Slice{{Index: 0, Decisions: []v1alpha1.ClusterDecision{{ClusterName: "a", Group: "canary"}}}},
			[]v1alpha1.ClusterDecision{{ClusterName: "a", Group: "rest"}},
			[]decision.Slice{{Index: 0, Decisions: []v1alpha1.ClusterDecision{{ClusterName: "a", Group: "rest"}}}},
		},
		{
			"a cluster that is in two slices stays in the first",
			[]decision.Slice{{Index: 1, Decisions: chosen("a", "b")}, {Index: 0, Decisions: chosen("a")}}, chosen("a", "b"),
			[]decision.Slice{{Index: 0, Decisions: chosen("a")}, {Index: 1, Decisions: chosen("b")}},
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if diff := cmp.Diff(test.want, decision.Lay(test.before, test.chosen)); diff != "" {
				t.Error("(-want +got)\n" + diff)
			}
		})
	}
}

// TestLay_RandomChoices checks for random sequences of choices that each chosen cluster is in one slice, that none
// moves, and that there are no unnecessary writes.
func TestLay_RandomChoices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before []decision.Slice
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			names := rapid.SliceOfDistinct(rapid.IntRange(0, 350), rapid.ID[int]).Draw(t, "chosen")
			var want []v1alpha1.ClusterDecision
			for _, name := range names {
				want = append(want, many(name, 1)...)
			}
			after := decision.Lay(before, want)
			at := map[string]int{}
			for _, slice := range after {
				if n := len(slice.Decisions); n == 0 || n > v1alpha1.MaxDecisions {
					t.Fatalf("slice %d has %d clusters", slice.Index, n)
				}
				for _, d := range slice.Decisions {
					if _, twice := at[d.ClusterName]; twice {
						t.Fatalf("%s is in two slices", d.ClusterName)
					}
					at[d.ClusterName] = slice.Index
				}
			}
			if len(at) != len(want) {
				t.Fatalf("%d clusters are in a slice, want %d", len(at), len(want))
			}
			for _, slice := range before {
				stay := slices.DeleteFunc(slices.Clone(slice.Decisions), func(d v1alpha1.ClusterDecision) bool {
					return !slices.Contains(want, d)
				})
				i := slices.IndexFunc(after, func(s decision.Slice) bool { return s.Index == slice.Index })
				if len(stay) > 0 && (i < 0 || !slices.Equal(stay, after[i].Decisions[:len(stay)])) {
					t.Fatalf("the remaining clusters of slice %d have moved", slice.Index)
				}
			}
			if diff := cmp.Diff(after, decision.Lay(after, want)); diff != "" {
				t.Fatal("the same choice changes the slices (-first +again)\n" + diff)
			}
			before = after
		}
	})
}
