package eviction

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestFitKeepsItsPromises checks for any restrictions of a policy that the executed evictions are those of the last
// accepted call, and that no eviction waits that could be executed with the older ones.
func TestFitKeepsItsPromises(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	rapid.Check(t, func(t *rapid.T) {
		o := Observed{
			Expected:  len(names),
			Evictions: rapid.SliceOfN(rapid.SampledFrom(names), 0, 8).Draw(t, "evictions"),
			Budget: rapid.SampledFrom([]*v1alpha1.DisruptionBudget{nil, atLeast("0"), atLeast("2"), atMost("1"),
				atMost("50%")}).Draw(t, "budget"),
		}
		for _, name := range names {
			o.Published = append(o.Published, Cluster{name, rapid.Bool().Draw(t, name+" is available")})
		}
		tooMuch := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID), 0, 4).Draw(t,
			"too much together")
		fits := func(clusters []string) bool {
			return !slices.ContainsFunc(tooMuch, func(set []string) bool {
				return !slices.ContainsFunc(set, func(name string) bool { return !slices.Contains(clusters, name) })
			})
		}
		var agreed []string
		results, err := Fit(o, func(clusters []string) (bool, error) {
			if fits(clusters) {
				agreed = slices.Clone(clusters)
			}
			return fits(clusters), nil
		})
		if err != nil || len(results) != len(o.Evictions) {
			t.Fatalf("%v: %v", err, results)
		}
		var going []string
		for i, v := range results {
			if !v.Waits() {
				if !slices.Contains(going, v.Cluster) {
					going = append(going, v.Cluster)
				}
				continue
			}
			alone := o
			alone.Evictions = append(slices.Clip(going), o.Evictions[i])
			planned := Plan(alone)
			if !planned[len(planned)-1].Waits() && fits(alone.Evictions) {
				t.Fatalf("%s waits, and could go with %q", v.Cluster, going)
			}
		}
		if !slices.Equal(slices.Sorted(slices.Values(going)), slices.Sorted(slices.Values(agreed))) {
			t.Fatalf("%q go, and the policy agreed to %q last", going, agreed)
		}
	})
}
