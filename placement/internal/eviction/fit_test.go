package eviction

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestFit_RandomRestrictions checks for any restrictions of a policy that the executed evictions are those of the last
// accepted call, and that no eviction waits that could be executed with the older ones.
func TestFit_RandomRestrictions(t *testing.T) {
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
		excluded := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID), 0, 4).Draw(t,
			"excluded sets")
		fits := func(clusters []string) bool {
			return !slices.ContainsFunc(excluded, func(set []string) bool {
				return !slices.ContainsFunc(set, func(name string) bool { return !slices.Contains(clusters, name) })
			})
		}
		var accepted []string
		results, err := Fit(o, func(clusters []string) (bool, error) {
			if fits(clusters) {
				accepted = slices.Clone(clusters)
			}
			return fits(clusters), nil
		})
		if err != nil || len(results) != len(o.Evictions) {
			t.Fatalf("%v: %v", err, results)
		}
		var evicted []string
		for i, v := range results {
			if !v.Waits() {
				if !slices.Contains(evicted, v.Cluster) {
					evicted = append(evicted, v.Cluster)
				}
				continue
			}
			alone := o
			alone.Evictions = append(slices.Clip(evicted), o.Evictions[i])
			planned := Plan(alone)
			if !planned[len(planned)-1].Waits() && fits(alone.Evictions) {
				t.Fatalf("%s waits, but fits together with %q", v.Cluster, evicted)
			}
		}
		if !slices.Equal(slices.Sorted(slices.Values(evicted)), slices.Sorted(slices.Values(accepted))) {
			t.Fatalf("%q are evicted, but the policy accepted %q last", evicted, accepted)
		}
	})
}
