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

func atLeast(what string) *v1alpha1.DisruptionBudget {
	return &v1alpha1.DisruptionBudget{MinAvailable: new(intstr.Parse(what))}
}

func atMost(what string) *v1alpha1.DisruptionBudget {
	return &v1alpha1.DisruptionBudget{MaxUnavailable: new(intstr.Parse(what))}
}

func on(available ...string) []Cluster {
	var clusters []Cluster
	for _, name := range available {
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
		{"without a budget all go", Observed{Published: on("a", "b"), Expected: 2, Evictions: []string{"a", "b"}},
			[]string{"a Evicted", "b Evicted"}},
		{"where nothing is, there is nothing to leave", Observed{Published: on("a"), Expected: 1, Evictions: []string{"b"},
			Budget: atMost("0")}, []string{"b NotPlaced"}},
		{
			"the oldest goes, the next waits",
			Observed{Published: on("a", "b", "c"), Expected: 3, Evictions: []string{"c", "a"}, Budget: atLeast("2")},
			[]string{"c Evicted",
				"a BudgetExhausted: 2 of 3 clusters are available, and 2 must stay available (minAvailable: 2)."},
		},
		{
			"who is not available costs nothing, even after one that waits",
			Observed{Published: append(on("a", "b"), Cluster{Name: "c"}), Expected: 3, Evictions: []string{"a", "c"},
				Budget: atMost("1")},
			[]string{"a BudgetExhausted: 2 of 3 clusters are available, and 2 must stay available (maxUnavailable: 1).",
				"c Evicted"},
		},
		{
			"one that was chosen and is missing counts as not available",
			Observed{Published: on("a", "b"), Expected: 3, Evictions: []string{"a"}, Budget: atMost("1")},
			[]string{"a BudgetExhausted: 2 of 3 clusters are available, and 2 must stay available (maxUnavailable: 1)."},
		},
		{
			"two evictions of one cluster cost one",
			Observed{Published: on("a", "b", "c"), Expected: 3, Evictions: []string{"a", "a", "b"}, Budget: atLeast("1")},
			[]string{"a Evicted", "a Evicted", "b Evicted"},
		},
		{
			"nobody is lost who is replaced before",
			Observed{Published: on("a"), Expected: 1, Evictions: []string{"a"}, Budget: atMost("0"), ReplacesFirst: true},
			[]string{"a Evicted"},
		},
		{
			"a quarter of all, with those that are evicted already",
			Observed{Published: on("b", "c", "d"), Expected: 4, Evictions: []string{"b"}, Budget: atMost("25%")},
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
		return Observed{Published: on("a", "b", "c"), Expected: 3, Evictions: evictions, Budget: atLeast(budget)}
	}
	const more = "BudgetExhausted: Without the cluster, the policy would remove other clusters, too: "
	for _, test := range []struct {
		reason string
		o      Observed
		never  []string // sets that do not fit, and all that have them in them
		want   []string
		asked  []string
	}{
		{"all that the budget allows", o("1", "a", "b"), nil, []string{"a Evicted", "b Evicted"}, []string{"a b"}},
		{
			"the oldest takes more along, the next goes", o("1", "a", "b"), []string{"a"},
			[]string{"a " + more + "3 of 3 clusters are available, and 1 must stay available (minAvailable: 1).", "b Evicted"},
			[]string{"a b", "a", "b"},
		},
		{
			"the youngest takes more along", o("1", "a", "b"), []string{"b"},
			[]string{"a Evicted", "b " + more + "2 of 3 clusters are available, and 1 must stay available (minAvailable: 1)."},
			[]string{"a b", "a", "a b"},
		},
		{
			"one that does not go takes nothing of the budget", o("2", "a", "b"), []string{"a"},
			[]string{"a " + more + "3 of 3 clusters are available, and 2 must stay available (minAvailable: 2).", "b Evicted"},
			[]string{"a", "b"},
		},
		{
			"each would fit, but not both", o("1", "a", "b", "c"), []string{"a b"},
			[]string{"a Evicted", "b " + more + "2 of 3 clusters are available, and 1 must stay available (minAvailable: 1).",
				"c Evicted"}, []string{"a b", "a", "a b", "a c"},
		},
		{
			"two evictions of one cluster are one", o("1", "a", "a", "b"), []string{"b"},
			[]string{"a Evicted", "a Evicted", "b " + more +
				"2 of 3 clusters are available, and 1 must stay available (minAvailable: 1)."}, []string{"a b", "a", "a b"},
		},
		{"none may go: nothing is asked", o("3", "a"), nil,
			[]string{"a BudgetExhausted: 3 of 3 clusters are available, and 3 must stay available (minAvailable: 3)."}, nil},
		{
			"what costs nothing of the budget is asked about too",
			Observed{Published: on("a"), Expected: 1, Evictions: []string{"a"}}, []string{"a"},
			[]string{"a " + more + "1 of 1 clusters are available"}, []string{"a"},
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			var asked []string
			results, err := Fit(test.o, func(clusters []string) (bool, error) {
				asked = append(asked, strings.Join(clusters, " "))
				return !slices.ContainsFunc(test.never, func(set string) bool {
					return !slices.ContainsFunc(strings.Fields(set), func(name string) bool {
						return !slices.Contains(clusters, name)
					})
				}), nil
			})
			require.NoError(t, err)
			require.Equal(t, test.want, lines(results))
			require.Equal(t, test.asked, asked)
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
		{"half of 7 must be available: 4", atLeast("50%"), 7, 4},
		{"half of 7 need not be available: 4, so 3 must", atMost("50%"), 7, 3},
		{"more than there are is all", atLeast("9"), 7, 7},
		{"fewer than none is none", atMost("9"), 7, 0},
		{"all must", atLeast("100%"), 7, 7},
		{"none may be missing", atMost("0%"), 7, 7},
		{"none must", atLeast("0"), 7, 0},
		{"of none there is none", atLeast("100%"), 0, 0},
		{"what no API server lets in holds everybody", atMost("x"), 7, 7},
	} {
		if got := Floor(test.budget, test.expected); got != test.want {
			t.Errorf("%s: got %d, want %d", test.reason, got, test.want)
		}
	}
}

// TestPlanKeepsItsPromises checks for random evictions that the budget is never exceeded, that no eviction waits
// unnecessarily, and that none is executed before an older one of equal effect.
func TestPlanKeepsItsPromises(t *testing.T) {
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
		available := map[string]bool{}
		before := 0
		for _, name := range rapid.Permutation(names).Draw(t, "order")[:rapid.IntRange(0, len(names)).Draw(t, "published")] {
			available[name] = rapid.Bool().Draw(t, name+" is available")
			o.Published = append(o.Published, Cluster{name, available[name]})
			if available[name] {
				before++
			}
		}
		after, floor, waits := before, Floor(o.Budget, o.Expected), false
		left := map[string]bool{}
		results := Plan(o)
		for i, v := range results {
			isAvailable, placed := available[v.Cluster]
			switch {
			case v.Cluster != o.Evictions[i]:
				t.Fatalf("verdict %d is about %s, not %s", i, v.Cluster, o.Evictions[i])
			case !placed != (v.Reason == v1alpha1.ReasonNotPlaced):
				t.Fatalf("%s, placed: %v, is %s", v.Cluster, placed, v.Reason)
			case v.Waits() && (!isAvailable || o.Budget == nil):
				t.Fatalf("%s waits, and costs nothing", v.Cluster)
			case v.Waits():
				waits = true
			case placed && isAvailable && !left[v.Cluster]:
				if waits {
					t.Fatalf("%s has overtaken one that is older", v.Cluster)
				}
				left[v.Cluster] = true
				after--
			}
		}
		if len(results) != len(o.Evictions) || after < min(before, floor) {
			t.Fatalf("%d available clusters of %d remain, and %d must: %v", after, before, floor, results)
		}
		if waits && after > floor {
			t.Fatalf("an eviction waits, although %d clusters are available and %d must be: %v", after, floor, results)
		}
	})
}
