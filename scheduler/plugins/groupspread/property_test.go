package groupspread_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

func drawConstraint(t *rapid.T, label string) v1alpha1.GroupSpreadConstraint {
	c := groups(label, rapid.Int32Range(0, 3).Draw(t, label+" least"), rapid.Int32Range(0, 3).Draw(t, label+" most"))
	if c.MaxGroups > 0 {
		c.MaxGroups = max(c.MaxGroups, c.MinGroups)
	}
	return c
}

func drawNaive(t *rapid.T, labels ...string) *naive {
	n := &naive{wanted: rapid.IntRange(1, 9).Draw(t, "wanted")}
	for _, label := range labels {
		n.constraints = append(n.constraints, drawConstraint(t, label))
	}
	// There are few values, so that there are ties.
	scores, values := rapid.SampledFrom([]float64{0, 0, 10, 20, 50}),
		rapid.SampledFrom([]string{"a", "a", "b", "b", "c", "d", ""})
	for i := range rapid.IntRange(1, 8).Draw(t, "clusters") {
		c := cluster(fmt.Sprint("c", i), scores.Draw(t, "score"))
		for _, label := range labels {
			if value := values.Draw(t, label); value != "" {
				c.Labels[label] = value
			}
		}
		n.clusters = append(n.clusters, c)
		if rapid.Bool().Draw(t, "bound") {
			n.bound = append(n.bound, c.Name)
		}
	}
	return n
}

// choose returns the choice of the plugin, and checks that it does not depend on the order of the clusters.
func (n *naive) choose(t *rapid.T, spec v1alpha1.PlacementPolicy) []string {
	policy, err := scheduler.NewPolicy(&spec)
	require.NoError(t, err)
	s, request := newScheduler(t), &scheduler.Request{Name: "test", Policy: policy, Bound: n.bound}
	result, err := s.Schedule(t.Context(), snapshot(n.clusters), request)
	require.NoError(t, err)
	other, err := s.Schedule(t.Context(), snapshot(rapid.Permutation(n.clusters).Draw(t, "order")), request)
	require.NoError(t, err)
	if diff := cmp.Diff(names(result), names(other)); diff != "" {
		t.Fatalf("the result depends on the order of the clusters:\n%s", diff)
	}
	return names(result)
}

// TestPickN checks that one constraint with PickN maximizes the clusters, the total score and the clusters that stay.
func TestPickN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNaive(t, "provider")
		got := n.choose(t, rebalanced(pick(int32(n.wanted), n.constraints...)))
		want := n.best()
		if !want.valid {
			require.Subset(t, n.bound, got, "no choice is possible, so the bound clusters stay")
			return
		}
		require.Equal(t, want, n.evaluate(n.setOf(got)), "%v", got)
	})
}

// TestPickAll checks that one constraint with PickAll chooses all clusters of the highest-ranking groups.
func TestPickAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNaive(t, "provider")
		n.wanted = -1
		want := n.all()
		groups := map[string]bool{}
		for _, c := range n.clusters {
			if group, has := c.Labels["provider"]; has {
				groups[group] = true
			}
		}
		if len(groups) < int(n.constraints[0].MinGroups) { // no choice is possible, so the bound clusters stay
			want = n.bound
		}
		if diff := cmp.Diff(want, n.choose(t, rebalanced(all(n.constraints...)))); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

// TestSeveralConstraints checks that a choice satisfies several constraints.
func TestSeveralConstraints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNaive(t, "provider", "region", "tier")
		spec := pick(int32(n.wanted), n.constraints...)
		if rapid.Bool().Draw(t, "all") {
			n.wanted, spec = -1, all(n.constraints...)
		}
		if got := n.choose(t, rebalanced(spec)); !isSubset(n.bound, got) {
			require.True(t, n.evaluate(n.setOf(got)).valid, "%v violates a constraint", got)
		}
	})
}

// TestChosenClustersStay checks that chosen clusters stay, that added clusters satisfy the constraints, and that a
// second decision changes nothing.
func TestChosenClustersStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNaive(t, []string{"provider", "region"}[:rapid.IntRange(1, 2).Draw(t, "labels")]...)
		spec := pick(int32(n.wanted), n.constraints...)
		if rapid.Bool().Draw(t, "all") {
			n.wanted, spec = -1, all(n.constraints...)
		}
		before, got := n.bound, n.choose(t, spec)
		switch {
		case n.wanted >= 0 && len(before) >= n.wanted:
			require.Subset(t, before, got)
			require.Len(t, got, n.wanted)
		default:
			require.Subset(t, got, before)
		}
		for _, constraint := range n.constraints {
			groups, had, added := map[string]bool{}, map[string]bool{}, false
			for _, c := range n.clusters {
				group, has := c.Labels[constraint.Label]
				chosen, was := slices.Contains(got, c.Name), slices.Contains(before, c.Name)
				if chosen && !was {
					added = true
					require.True(t, has, "%s was added and has no group", c.Name)
				}
				groups[group] = groups[group] || has && chosen
				had[group] = had[group] || has && was
			}
			count := func(of map[string]bool) int {
				return len(slices.DeleteFunc(slices.Collect(maps.Keys(of)), func(group string) bool { return !of[group] }))
			}
			if added {
				require.GreaterOrEqual(t, count(groups), int(constraint.MinGroups))
			}
			if most := int(constraint.MaxGroups); most > 0 {
				require.LessOrEqual(t, count(groups), max(most, count(had)))
			}
		}
		n.bound = got
		require.Equal(t, got, n.choose(t, spec), "the second decision differs")
	})
}

func isSubset(of, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(of, name) })
}

func rebalanced(policy v1alpha1.PlacementPolicy) v1alpha1.PlacementPolicy {
	policy.Rebalance = v1alpha1.RebalanceAlways
	return policy
}

// TestChoiceIsStable checks that a choice is repeated, independently of the other clusters that could be chosen.
func TestChoiceIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNaive(t, "provider")
		n.bound = nil
		spec := pick(int32(n.wanted), n.constraints...)
		n.bound = n.choose(t, spec)
		if diff := cmp.Diff(n.bound, n.choose(t, spec)); diff != "" {
			t.Fatalf("-before +now:\n%s", diff)
		}
	})
}

// TestHighestGroups checks that the limits and the number of clusters hold if the search for the maximum total is
// replaced.
func TestHighestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const wanted = 700 // 5 of 10 groups: above the limit of 4,194,304
		var clusters []*scheduler.Cluster
		sizes := rapid.SliceOfN(rapid.IntRange(1, 200), 10, 10).Draw(t, "sizes")
		for group, size := range sizes {
			score := float64(rapid.IntRange(0, 100).Draw(t, "score"))
			for i := range size {
				clusters = append(clusters, cluster(fmt.Sprintf("c%d-%d", group, i), score, fmt.Sprint("provider=", group)))
			}
		}
		n := &naive{clusters: clusters, wanted: wanted,
			constraints: []v1alpha1.GroupSpreadConstraint{groups("provider", 2, 5)}}
		got := n.choose(t, pick(wanted, n.constraints...))
		values := map[string]bool{}
		for _, name := range got {
			values[name[:2]] = true
		}
		require.LessOrEqual(t, len(values), 5)
		require.GreaterOrEqual(t, len(values), 2)
		require.Len(t, got, min(wanted, greatest(sizes, 5)))
	})
}

// greatest returns the sum of the n greatest numbers.
func greatest(of []int, n int) int {
	sum := 0
	for i, a := range of {
		before := 0
		for j, b := range of {
			if b > a || b == a && j < i {
				before++
			}
		}
		if before < n {
			sum += a
		}
	}
	return sum
}
