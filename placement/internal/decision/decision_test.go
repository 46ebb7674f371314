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
		{"nothing is chosen: there is no slice", nil, nil, []decision.Slice{}},
		{
			"what is chosen first comes in the order in which it was chosen",
			nil, chosen("b", "a"),
			[]decision.Slice{{Index: 0, Decisions: chosen("b", "a")}},
		},
		{
			"a cluster that stays keeps its place, whatever its rank is now",
			[]decision.Slice{{Index: 0, Decisions: chosen("b", "a", "c")}}, chosen("a", "d", "b"),
			[]decision.Slice{{Index: 0, Decisions: chosen("b", "a", "d")}},
		},
		{
			"a slice has no more than its share",
			nil, many(0, 101),
			[]decision.Slice{{Index: 0, Decisions: many(0, 100)}, {Index: 1, Decisions: many(100, 1)}},
		},
		{
			"none moves up when there is room again: who follows slice 1 would see it go",
			[]decision.Slice{{Index: 0, Decisions: many(0, 100)}, {Index: 1, Decisions: many(100, 1)}},
			append(many(1, 99), many(100, 1)...),
			[]decision.Slice{{Index: 0, Decisions: many(1, 99)}, {Index: 1, Decisions: many(100, 1)}},
		},
		{
			"new clusters fill the first room",
			[]decision.Slice{{Index: 0, Decisions: many(1, 99)}, {Index: 1, Decisions: many(100, 1)}},
			append(many(1, 101), chosen("x")...),
			[]decision.Slice{{Index: 0, Decisions: append(many(1, 99), many(101, 1)...)},
				{Index: 1, Decisions: append(many(100, 1), chosen("x")...)}},
		},
		{
			"a slice that is empty goes, and others keep their index",
			[]decision.Slice{{Index: 0, Decisions: chosen("a")}, {Index: 1, Decisions: chosen("b")}}, chosen("b"),
			[]decision.Slice{{Index: 1, Decisions: chosen("b")}},
		},
		{
			"an index that is free is taken again",
			[]decision.Slice{{Index: 1, Decisions: many(0, 100)}}, many(0, 101),
			[]decision.Slice{{Index: 0, Decisions: many(100, 1)}, {Index: 1, Decisions: many(0, 100)}},
		},
		{
			"what is said of a cluster is what is said of it now",
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

// TestLayIsSteady checks for random sequences of choices that each chosen cluster is in one slice, that none moves, and
// that there are no unnecessary writes.
func TestLayIsSteady(t *testing.T) {
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
				t.Fatalf("%d of %d clusters are in a slice", len(at), len(want))
			}
			for _, slice := range before {
				stay := slices.DeleteFunc(slices.Clone(slice.Decisions), func(d v1alpha1.ClusterDecision) bool {
					return !slices.Contains(want, d)
				})
				i := slices.IndexFunc(after, func(s decision.Slice) bool { return s.Index == slice.Index })
				if len(stay) > 0 && (i < 0 || !slices.Equal(stay, after[i].Decisions[:len(stay)])) {
					t.Fatalf("what stays of slice %d is not where it was", slice.Index)
				}
			}
			if diff := cmp.Diff(after, decision.Lay(after, want)); diff != "" {
				t.Fatal("the same choice again (-first +again)\n" + diff)
			}
			before = after
		}
	})
}
