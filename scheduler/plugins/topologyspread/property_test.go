package topologyspread_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// scores has few values, so that there are ties.
var scores = rapid.SampledFrom([]float64{0, 0, 10, 20, 50})

// drawConstraint draws a constraint with any settings.
func drawConstraint(t *rapid.T, key string) v1alpha1.TopologySpreadConstraint {
	c := spread(key, rapid.Int32Range(1, 3).Draw(t, key+" skew"))
	if rapid.Bool().Draw(t, key+" anyway") {
		c.WhenUnsatisfiable = v1alpha1.ScheduleAnyway
	} else if rapid.Bool().Draw(t, key+" has a minimum") {
		c.MinDomains = new(rapid.Int32Range(1, 5).Draw(t, key+" domains"))
	}
	return c
}

// check compares the choice of the plugin with that of naive, and checks that it does not depend on the order of
// clusters.
func check(t *rapid.T, n *naive, evaluate func(got []string)) {
	spec := pick(int32(n.wanted), n.constraints...)
	spec.Rebalance = v1alpha1.RebalanceAlways
	policy, err := scheduler.NewPolicy(&spec)
	require.NoError(t, err)
	s, request := newScheduler(t), &scheduler.Request{Name: "test", Policy: policy, Bound: n.bound}
	result, err := s.Schedule(t.Context(), snapshot(n.clusters), request)
	require.NoError(t, err)
	evaluate(names(result))

	other, err := s.Schedule(t.Context(), snapshot(rapid.Permutation(n.clusters).Draw(t, "order")), request)
	require.NoError(t, err)
	if diff := cmp.Diff(names(result), names(other)); diff != "" {
		t.Fatalf("the result depends on the order of the clusters:\n%s", diff)
	}
}

func drawNaive(t *rapid.T, labels func(i int) []string, constraints ...v1alpha1.TopologySpreadConstraint) *naive {
	n := &naive{wanted: rapid.IntRange(0, 9).Draw(t, "wanted"), constraints: constraints}
	for i := range rapid.IntRange(1, 8).Draw(t, "clusters") {
		c := cluster(fmt.Sprint("c", i), scores.Draw(t, "score"), labels(i)...)
		n.clusters = append(n.clusters, c)
		if rapid.Bool().Draw(t, "bound") {
			n.bound = append(n.bound, c.Name)
		}
	}
	return n
}

func (n *naive) mustChoose(t *rapid.T) func(got []string) {
	return func(got []string) {
		set, _ := n.best()
		if diff := cmp.Diff(n.names(set), got); diff != "" {
			t.Fatalf("best outcome %+v, chosen outcome %+v (-want +got):\n%s", n.evaluate(set), n.evaluate(n.setOf(got)), diff)
		}
	}
}

// TestOneConstraint checks that the choice for one constraint is the one that doc.go specifies.
func TestOneConstraint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zones := rapid.SampledFrom([]string{"a", "a", "a", "b", "b", "c", "d", ""})
		n := drawNaive(t, func(int) []string { return label("zone", zones.Draw(t, "zone")) }, drawConstraint(t, "zone"))
		check(t, n, n.mustChoose(t))
	})
}

// TestNestedConstraints checks that the choice for nested domains is the one that doc.go specifies.
func TestNestedConstraints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		constraints := []v1alpha1.TopologySpreadConstraint{drawConstraint(t, "region"), drawConstraint(t, "zone")}
		if rapid.Bool().Draw(t, "rack") {
			constraints = append(constraints, drawConstraint(t, "rack"))
		}
		constraints = rapid.Permutation(constraints).Draw(t, "constraints")
		places := rapid.SampledFrom([][]string{
			{"region=eu", "zone=eu-a", "rack=1"}, {"region=eu", "zone=eu-a", "rack=1"}, {"region=eu", "zone=eu-a", "rack=2"},
			{"region=eu", "zone=eu-b", "rack=3"}, {"region=us", "zone=us-a", "rack=4"}, {"region=us", "zone=us-b", "rack=5"},
			{"region=us", "zone=us-b", "rack=6"}, {"region=us"}, {"region=eu", "zone=eu-b"}, {},
		})
		n := drawNaive(t, func(int) []string { return places.Draw(t, "place") }, constraints...)
		check(t, n, n.mustChoose(t))
	})
}

// TestCrossingConstraints checks that the choice for two families that cross is the one that doc.go specifies.
func TestCrossingConstraints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := [][]string{{"region=a", "region=b", "region=c", ""}, {"provider=a", "provider=b", "provider=c", ""}}
		constraints := []v1alpha1.TopologySpreadConstraint{drawConstraint(t, "region"), drawConstraint(t, "provider")}
		if rapid.Bool().Draw(t, "zones") {
			places[0] = []string{"region=a zone=1", "region=a zone=2", "region=b zone=3", "region=b", ""}
			constraints = append(constraints, drawConstraint(t, "zone"))
		}
		if rapid.Bool().Draw(t, "accounts") {
			places[1] = []string{"provider=a account=1", "provider=a account=2", "provider=b account=3", "provider=b account=4"}
			constraints = append(constraints, drawConstraint(t, "account"))
		}
		n := drawNaive(t, func(int) (labels []string) {
			for _, values := range places {
				labels = append(labels, strings.Fields(rapid.SampledFrom(values).Draw(t, "place"))...)
			}
			return labels
		}, rapid.Permutation(constraints).Draw(t, "constraints")...)
		check(t, n, n.mustChoose(t))
	})
}

// TestManyCrossingConstraints checks the same for three or four families with few clusters.
func TestManyCrossingConstraints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := []string{"region", "provider", "tier", "version"}[:rapid.IntRange(3, 4).Draw(t, "keys")]
		var constraints []v1alpha1.TopologySpreadConstraint
		for _, key := range keys {
			constraints = append(constraints, drawConstraint(t, key))
		}
		values := rapid.SampledFrom([]string{"a", "b", "c", "a", "b", ""})
		n := drawNaive(t, func(int) (labels []string) {
			for _, key := range keys {
				labels = append(labels, label(key, values.Draw(t, key))...)
			}
			return labels
		}, constraints...)
		check(t, n, n.mustChoose(t))
	})
}

// TestChoiceIsStable checks that a choice is repeated, independently of the other clusters that could be chosen.
func TestChoiceIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zones := rapid.SampledFrom([]string{"a", "a", "b", "c", ""})
		n := drawNaive(t, func(int) []string { return label("zone", zones.Draw(t, "zone")) }, drawConstraint(t, "zone"))
		n.bound = nil
		set, _ := n.best()
		n.bound = n.names(set)
		check(t, n, func(got []string) {
			if !slices.Equal(n.bound, got) {
				t.Fatalf("first choice %v, second choice %v", n.bound, got)
			}
		})
	})
}

func label(key, value string) []string {
	if value == "" {
		return nil
	}
	return []string{key + "=" + value}
}

// TestManyLevels tests two zones with a large skew, optionally with tiers, so that there are many levels to choose
// from.
func TestManyLevels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SampledFrom([]string{"a", "b"})
		n := &naive{wanted: rapid.IntRange(3, 9).Draw(t, "wanted")}
		keys := []string{"zone", "tier"}[:rapid.IntRange(1, 2).Draw(t, "keys")]
		for _, key := range keys {
			n.constraints = append(n.constraints, spread(key, rapid.Int32Range(1, 8).Draw(t, "skew")))
		}
		for i := range rapid.IntRange(8, 10).Draw(t, "clusters") {
			var labels []string
			for _, key := range keys {
				labels = append(labels, label(key, values.Draw(t, key))...)
			}
			n.clusters = append(n.clusters, cluster(fmt.Sprintf("c%02d", i), float64(rapid.IntRange(0, 100).Draw(t, "score")),
				labels...))
		}
		check(t, n, n.mustChoose(t))
	})
}
