package topologyspread_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// TestExtend checks that chosen clusters stay, that every constraint permits each new cluster, and that no other
// cluster could be added.
func TestExtend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zones, tiers := rapid.SampledFrom([]string{"a", "a", "b", "c", ""}), rapid.SampledFrom([]string{"x", "x", "y", ""})
		constraints := []v1alpha1.TopologySpreadConstraint{drawConstraint(t, "zone")}
		if rapid.Bool().Draw(t, "tiers") {
			constraints = append(constraints, drawConstraint(t, "tier"))
		}
		n := drawNaive(t, func(int) []string {
			return append(label("zone", zones.Draw(t, "zone")), label("tier", tiers.Draw(t, "tier"))...)
		}, constraints...)
		if len(n.bound) == 0 || len(n.bound) > n.wanted {
			t.Skip("no cluster is added to the bound ones")
		}
		got := n.extend(t, n.bound)
		if missing := slices.DeleteFunc(slices.Clone(n.bound), func(name string) bool {
			return slices.Contains(got, name)
		}); len(missing) > 0 {
			t.Fatalf("bound clusters %v are not in %v", missing, got)
		}
		if len(got) > n.wanted {
			t.Fatalf("want at most %d clusters, got %v", n.wanted, got)
		}
		for _, c := range n.clusters {
			chosen, before := slices.Contains(got, c.Name), slices.Contains(n.bound, c.Name)
			switch {
			case chosen && !before && !n.permits(slices.DeleteFunc(slices.Clone(got), func(name string) bool {
				return name == c.Name
			}), c):
				t.Fatalf("%s was added to %v and violates a constraint: %v", c.Name, n.bound, got)
			case !chosen && len(got) < n.wanted && n.permits(got, c):
				t.Fatalf("%s could be added to %v", c.Name, got)
			}
		}
		if diff := cmp.Diff(got, n.extend(t, got)); diff != "" {
			t.Fatalf("the second decision differs (-first +second):\n%s", diff)
		}
	})
}

func (n *naive) extend(t *rapid.T, bound []string) []string {
	spec := pick(int32(n.wanted), n.constraints...)
	policy, err := scheduler.NewPolicy(&spec)
	require.NoError(t, err)
	result, err := newScheduler(t).Schedule(t.Context(), snapshot(n.clusters),
		&scheduler.Request{Name: "test", Policy: policy, Bound: bound})
	require.NoError(t, err)
	return names(result)
}

// permits reports whether the constraints permit adding a cluster to others.
func (n *naive) permits(others []string, added *scheduler.Cluster) bool {
	for _, constraint := range n.constraints {
		if constraint.WhenUnsatisfiable == v1alpha1.ScheduleAnyway {
			continue
		}
		domain, has := added.Labels[constraint.TopologyKey]
		if !has {
			return false
		}
		counts := map[string]int{}
		for _, c := range n.clusters {
			value, has := c.Labels[constraint.TopologyKey]
			chosen := c == added || slices.Contains(others, c.Name)
			if !has || !n.candidate(c) && !slices.Contains(n.bound, c.Name) {
				continue
			}
			if counts[value] += 0; chosen {
				counts[value]++
			}
		}
		fewest := 1000
		for _, count := range counts {
			fewest = min(fewest, count)
		}
		if constraint.MinDomains != nil && len(counts) < int(*constraint.MinDomains) {
			fewest = 0
		}
		if counts[domain]-fewest > int(constraint.MaxSkew) {
			return false
		}
	}
	return true
}
