package eviction

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func atLeast(value string) *v1alpha1.DisruptionBudget {
	return &v1alpha1.DisruptionBudget{MinAvailable: new(intstr.Parse(value))}
}

func atMost(value string) *v1alpha1.DisruptionBudget {
	return &v1alpha1.DisruptionBudget{MaxUnavailable: new(intstr.Parse(value))}
}

func available(names ...string) []Cluster {
	var clusters []Cluster
	for _, name := range names {
		clusters = append(clusters, Cluster{name, true})
	}
	return clusters
}

func TestPlan(t *testing.T) {
	for _, test := range []struct {
		reason string
		o      Observed
		want   []string
	}{
		{"without a budget all clusters are evicted",
			Observed{Published: available("a", "b"), Expected: 2, Evictions: []string{"a", "b"}},
			[]string{"a Evicted", "b Evicted"}},
		{"a cluster without a decision is not evicted",
			Observed{Published: available("a"), Expected: 1, Evictions: []string{"b"},
				Budget: atMost("0")}, []string{"b NotPlaced"}},
		{
			"the oldest eviction is executed, and the next one waits",
			Observed{Published: available("a", "b", "c"), Expected: 3, Evictions: []string{"c", "a"}, Budget: atLeast("2")},
			[]string{"c Evicted",
				"a BudgetExhausted: 2 of 3 clusters are available, and 2 must stay available (minAvailable: 2)."},
		},
		{
			"an unavailable cluster is evicted although an older eviction waits",
			Observed{Published: append(available("a", "b"), Cluster{Name: "c"}), Expected: 3, Evictions: []string{"a", "c"},
				Budget: atMost("1")},
			[]string{"a BudgetExhausted: 2 of 3 clusters are available, and 2 must stay available (maxUnavailable: 1).",
				"c Evicted"},
		},
		{
			"an expected cluster that is missing is unavailable",
			Observed{Published: available("a", "b"), Expected: 3, Evictions: []string{"a"}, Budget: atMost("1")},
			[]string{"a BudgetExhausted: 2 of 3 clusters are available, and 2 must stay available (maxUnavailable: 1)."},
		},
		{
			"two evictions of one cluster use the budget once",
			Observed{Published: available("a", "b", "c"), Expected: 3, Evictions: []string{"a", "a", "b"}, Budget: atLeast("1")},
			[]string{"a Evicted", "a Evicted", "b Evicted"},
		},
		{
			"a cluster that is replaced first does not use the budget",
			Observed{Published: available("a"), Expected: 1, Evictions: []string{"a"}, Budget: atMost("0"), ReplacesFirst: true},
			[]string{"a Evicted"},
		},
		{
			"a percentage includes clusters that are evicted already",
			Observed{Published: available("b", "c", "d"), Expected: 4, Evictions: []string{"b"}, Budget: atMost("25%")},
			[]string{"b BudgetExhausted: 3 of 4 clusters are available, and 3 must stay available (maxUnavailable: 25%)."},
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if diff := cmp.Diff(test.want, lines(Plan(test.o)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFit checks evictions without which, together or individually, the policy would give up more clusters.
func TestFit(t *testing.T) {
	o := func(budget string, evictions ...string) Observed {
		return Observed{Published: available("a", "b", "c"), Expected: 3, Evictions: evictions, Budget: atLeast(budget)}
	}
	const more = "BudgetExhausted: Without the cluster, the policy would remove other clusters, too: "
	for _, test := range []struct {
		reason string
		o      Observed
		never  []string // sets that do not fit; neither do their supersets
		want   []string
		calls  []string
	}{
		{"the policy is called with all evictions that the budget allows",
			o("1", "a", "b"), nil, []string{"a Evicted", "b Evicted"}, []string{"a b"}},
		{
			"the oldest eviction does not fit, and the next one does", o("1", "a", "b"), []string{"a"},
			[]string{"a " + more + "3 of 3 clusters are available, and 1 must stay available (minAvailable: 1).", "b Evicted"},
			[]string{"a b", "a", "b"},
		},
		{
			"the youngest eviction does not fit", o("1", "a", "b"), []string{"b"},
			[]string{"a Evicted", "b " + more + "2 of 3 clusters are available, and 1 must stay available (minAvailable: 1)."},
			[]string{"a b", "a", "a b"},
		},
		{
			"an eviction that does not fit does not use the budget", o("2", "a", "b"), []string{"a"},
			[]string{"a " + more + "3 of 3 clusters are available, and 2 must stay available (minAvailable: 2).", "b Evicted"},
			[]string{"a", "b"},
		},
		{
			"two evictions fit individually, but not together", o("1", "a", "b", "c"), []string{"a b"},
			[]string{"a Evicted", "b " + more + "2 of 3 clusters are available, and 1 must stay available (minAvailable: 1).",
				"c Evicted"}, []string{"a b", "a", "a b", "a c"},
		},
		{
			"two evictions of one cluster are passed to the policy once", o("1", "a", "a", "b"), []string{"b"},
			[]string{"a Evicted", "a Evicted", "b " + more +
				"2 of 3 clusters are available, and 1 must stay available (minAvailable: 1)."}, []string{"a b", "a", "a b"},
		},
		{"without an allowed eviction the policy is not called", o("3", "a"), nil,
			[]string{"a BudgetExhausted: 3 of 3 clusters are available, and 3 must stay available (minAvailable: 3)."}, nil},
		{
			"evictions without a budget must fit as well",
			Observed{Published: available("a"), Expected: 1, Evictions: []string{"a"}}, []string{"a"},
			[]string{"a " + more + "1 of 1 clusters are available"}, []string{"a"},
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			var calls []string
			results, err := Fit(test.o, func(clusters []string) (bool, error) {
				calls = append(calls, strings.Join(clusters, " "))
				return !slices.ContainsFunc(test.never, func(set string) bool {
					return !slices.ContainsFunc(strings.Fields(set), func(name string) bool {
						return !slices.Contains(clusters, name)
					})
				}), nil
			})
			require.NoError(t, err)
			require.Equal(t, test.want, lines(results))
			require.Equal(t, test.calls, calls)
		})
	}
	no := errors.New("no")
	for _, evictions := range [][]string{{"a"}, {"a", "b"}} {
		_, err := Fit(o("1", evictions...), func([]string) (bool, error) { return false, no })
		require.ErrorIs(t, err, no)
	}
}

func lines(results []Result) (lines []string) {
	for _, v := range results {
		line := v.Cluster + " " + v.Reason
		if v.Waits() {
			line += ": " + v.Message
		}
		lines = append(lines, line)
	}
	return lines
}

// TestFloor contains the examples for rounding of the documentation of PodDisruptionBudgets: half of 7 is 4, for
// minAvailable and for maxUnavailable.
func TestFloor(t *testing.T) {
	for _, test := range []struct {
		reason   string
		budget   *v1alpha1.DisruptionBudget
		expected int
		want     int
	}{
		{"no budget", nil, 7, 0},
		{"a number", atLeast("3"), 7, 3},
		{"minAvailable: half of 7 is rounded up to 4", atLeast("50%"), 7, 4},
		{"maxUnavailable: half of 7 is rounded up to 4, so 3 must be available", atMost("50%"), 7, 3},
		{"minAvailable above the number of clusters", atLeast("9"), 7, 7},
		{"maxUnavailable above the number of clusters", atMost("9"), 7, 0},
		{"minAvailable: all clusters", atLeast("100%"), 7, 7},
		{"maxUnavailable: no cluster", atMost("0%"), 7, 7},
		{"minAvailable: no cluster", atLeast("0"), 7, 0},
		{"a percentage of no clusters", atLeast("100%"), 0, 0},
		{"an invalid budget prevents all evictions", atMost("x"), 7, 7},
	} {
		if got := Floor(test.budget, test.expected); got != test.want {
			t.Errorf("%s: want %d, got %d", test.reason, test.want, got)
		}
	}
}

// TestPlan_RandomEvictions checks for random evictions that the budget is never exceeded, that no eviction waits
// unnecessarily, and that none is executed before an older one of equal effect.
func TestPlan_RandomEvictions(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	rapid.Check(t, func(t *rapid.T) {
		o := Observed{
			Expected:  rapid.IntRange(0, 7).Draw(t, "expected"),
			Evictions: rapid.SliceOfN(rapid.SampledFrom(names), 0, 8).Draw(t, "evictions"),
			Budget: rapid.SampledFrom([]*v1alpha1.DisruptionBudget{
				nil, atLeast("0"), atLeast("2"), atLeast("60%"), atLeast("100%"), atMost("0"), atMost("1"), atMost("40%"),
				atMost("100%"),
			}).Draw(t, "budget"),
		}
		isAvailable := map[string]bool{}
		before := 0
		for _, name := range rapid.Permutation(names).Draw(t, "order")[:rapid.IntRange(0, len(names)).Draw(t, "published")] {
			isAvailable[name] = rapid.Bool().Draw(t, name+" is available")
			o.Published = append(o.Published, Cluster{name, isAvailable[name]})
			if isAvailable[name] {
				before++
			}
		}
		after, floor, waiting := before, Floor(o.Budget, o.Expected), false
		left := map[string]bool{}
		results := Plan(o)
		for i, v := range results {
			wasAvailable, placed := isAvailable[v.Cluster]
			switch {
			case v.Cluster != o.Evictions[i]:
				t.Fatalf("result %d is for cluster %s, want %s", i, v.Cluster, o.Evictions[i])
			case !placed != (v.Reason == v1alpha1.ReasonNotPlaced):
				t.Fatalf("%s, placed: %v: unexpected reason %s", v.Cluster, placed, v.Reason)
			case v.Waits() && (!wasAvailable || o.Budget == nil):
				t.Fatalf("%s waits, but does not use the budget", v.Cluster)
			case v.Waits():
				waiting = true
			case placed && wasAvailable && !left[v.Cluster]:
				if waiting {
					t.Fatalf("%s is evicted before an older eviction", v.Cluster)
				}
				left[v.Cluster] = true
				after--
			}
		}
		if len(results) != len(o.Evictions) || after < min(before, floor) {
			t.Fatalf("%d available clusters of %d remain, want at least %d: %v", after, before, floor, results)
		}
		if waiting && after > floor {
			t.Fatalf("an eviction waits although %d clusters are available and only %d must be: %v", after, floor, results)
		}
	})
}
