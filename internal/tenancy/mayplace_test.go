package tenancy_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/internal/tenancy"
)

var names = rapid.SampledFrom([]string{"a", "b", "c"})

// drawSets returns sets with different names.
func drawSets(t *rapid.T) []tenancy.Set {
	var sets []tenancy.Set
	for _, name := range []string{"a", "b", "c"} {
		selector := rapid.SampledFrom([]labels.Selector{
			nil, labels.Nothing(), labels.Everything(),
			labels.SelectorFromSet(labels.Set{"k": "a"}), labels.SelectorFromSet(labels.Set{"k": "b"}),
		}).Draw(t, "selector")
		if rapid.Bool().Draw(t, "exists") {
			sets = append(sets, tenancy.Set{Name: name, Selector: selector})
		}
	}
	return sets
}

func drawBinding(t *rapid.T) tenancy.Binding {
	return tenancy.Binding{
		Namespace: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "namespace of a binding"),
		Name:      names.Draw(t, "name"), Set: names.Draw(t, "set"),
	}
}

func TestMayPlaceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sets := drawSets(t)
		bindings := rapid.SliceOfN(rapid.Custom(drawBinding), 0, 6).Draw(t, "bindings")
		namespace := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "namespace")
		cluster := labels.Set{"k": names.Draw(t, "label")}
		got := tenancy.MayPlace(namespace, cluster, sets, bindings)

		// The answer equals the definition, written without an index.
		want := false
		for _, b := range bindings {
			for _, s := range sets {
				want = want || namespace != "" && b.Namespace == namespace && b.Set == s.Name &&
					s.Selector != nil && s.Selector.Matches(cluster)
			}
		}
		if got.Allowed != want {
			t.Fatalf("MayPlace is %+v, want allowed %t", got, want)
		}
		// A grant names a binding that exists; a denial names none.
		named := tenancy.Binding{Namespace: namespace, Name: got.Binding, Set: got.Set}
		if got.Allowed != slices.Contains(bindings, named) {
			t.Fatalf("MayPlace is %+v, which does not agree with the bindings %+v", got, bindings)
		}
		more := append(slices.Clone(bindings), drawBinding(t))
		if got.Allowed && !tenancy.MayPlace(namespace, cluster, sets, more).Allowed {
			t.Fatalf("another binding removed a permission: %+v", more)
		}
		slices.Reverse(bindings)
		slices.Reverse(sets)
		if again := tenancy.MayPlace(namespace, cluster, sets, bindings); again != got {
			t.Fatalf("MayPlace is %+v, and %+v in the opposite order", got, again)
		}
		if g := tenancy.MayPlace(namespace, cluster, sets, nil); g.Allowed {
			t.Fatalf("MayPlace without bindings is %+v", g)
		}
	})
}

func TestNilEvaluatorDenies(t *testing.T) {
	var e *tenancy.Evaluator
	if g := e.MayPlace("shop", nil); g.Allowed {
		t.Errorf("the nil Evaluator allows: %+v", g)
	}
	if g := new(tenancy.Evaluator).MayPlace("shop", nil); g.Allowed {
		t.Errorf("the zero Evaluator allows: %+v", g)
	}
}

func ExampleMayPlace() {
	sets := []tenancy.Set{{Name: "europe", Selector: labels.SelectorFromSet(labels.Set{"region": "eu"})}}
	bindings := []tenancy.Binding{{Namespace: "shop", Name: "use-europe", Set: "europe"}}
	fmt.Printf("%+v\n", tenancy.MayPlace("shop", labels.Set{"region": "eu"}, sets, bindings))
	fmt.Printf("%+v\n", tenancy.MayPlace("shop", labels.Set{"region": "us"}, sets, bindings))
	// Output:
	// {Allowed:true Binding:use-europe Set:europe}
	// {Allowed:false Binding: Set:}
}
