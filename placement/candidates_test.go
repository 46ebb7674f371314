package placement

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins"
	"github.com/muster-sdk/muster/tenancy"
)

// TestRestrict_Properties decides after random changes of sets, bindings, labels and clusters. It checks that each
// newly chosen cluster is allowed, and that PickAll leaves a chosen cluster only if the rules deny it or the cluster
// was removed.
func TestRestrict_Properties(t *testing.T) {
	decider, err := scheduler.New(scheduler.Options{Registry: plugins.Registry(),
		Profiles: []scheduler.Profile{plugins.DefaultProfile()}})
	if err != nil {
		t.Fatal(err)
	}
	values := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		var fleet scheduler.Cache
		var views filteredFleets
		sets, bindings := map[string]tenancy.Set{}, map[string]tenancy.Binding{}
		rules := tenancy.NewRules("shop", nil, nil)
		policy := v1alpha1.PlacementPolicy{Type: v1alpha1.PickAll}
		if rapid.Bool().Draw(t, "pick two") {
			policy = v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(2))}
		}
		compiled, err := scheduler.NewPolicy(&policy)
		if err != nil {
			t.Fatal(err)
		}
		var laid []decision.Slice
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			name := rapid.SampledFrom(values).Draw(t, "name")
			switch rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				selector := rapid.SampledFrom([]labels.Selector{
					nil, labels.Everything(), labels.SelectorFromSet(labels.Set{"k": "a"}),
				}).Draw(t, "selector")
				sets[name] = tenancy.Set{Name: name, Selector: selector}
			case 1:
				delete(sets, name)
			case 2:
				bindings[name] = tenancy.Binding{
					Namespace: rapid.SampledFrom([]string{"shop", "bank"}).Draw(t, "namespace"), Name: name,
					Set: rapid.SampledFrom(values).Draw(t, "set"), Deleted: rapid.Bool().Draw(t, "deleted"),
				}
			case 3:
				delete(bindings, name)
			case 4:
				fleet.Remove(name)
			default:
				fleet.Update(&scheduler.Cluster{
					Name: name, Labels: map[string]string{"k": rapid.SampledFrom(values).Draw(t, "label")}, Joined: true,
					Healthy: true,
				})
			}
			if rapid.Bool().Draw(t, "observed") {
				rules = tenancy.NewRules("shop", slices.Collect(maps.Values(sets)), slices.Collect(maps.Values(bindings)))
			}

			whole := fleet.Snapshot()
			before := namesOf(laid)
			a := accessOf(rules, "shop", laid, before, whole)
			snapshot := views.use("shop/web", a.view(), a.excludes()).of(whole)
			views.keep("shop/web", a.view())
			result, err := decider.Schedule(t.Context(), snapshot, &scheduler.Request{
				Name: "shop/web", Policy: compiled, Bound: slices.Sorted(maps.Keys(before)),
			})
			if err != nil {
				t.Fatal(err)
			}
			all := asChosen(result.Chosen)
			on := map[string]bool{}
			for _, p := range all {
				on[p.cluster.Name] = true
				if !before[p.cluster.Name] && !allows(rules, p.cluster) {
					t.Fatalf("cluster %s is newly chosen and not allowed", p.cluster.Name)
				}
				if a.denies(p.cluster.Name) {
					t.Fatalf("cluster %s is chosen and denied", p.cluster.Name)
				}
			}
			for name := range before {
				if _, exists := whole.Slot(name); exists && policy.Type == v1alpha1.PickAll && !on[name] && !a.denies(name) {
					t.Fatalf("cluster %s was withdrawn without a request", name)
				}
			}
			laid = decision.Lay(laid, a.record(groups{}.decisions(laid, all), all))
			for _, slice := range laid {
				for _, d := range slice.Decisions {
					if d.Binding == "" {
						t.Fatalf("cluster %s has no binding on record", d.ClusterName)
					}
				}
			}
		}
	})
}
