package apply_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/work/apply"
)

func ExampleWave() {
	for _, kind := range []schema.GroupKind{{Kind: "Namespace"}, {Kind: "ConfigMap"}, {Group: "example.com", Kind: "Shop"},
		{Group: "apps", Kind: "Deployment"}} {
		fmt.Println(kind.Kind, apply.Wave(kind))
	}
	// Output:
	// Namespace 0
	// ConfigMap 10
	// Shop 30
	// Deployment 40
}

// The inventory that is recorded before an apply, and the entries to prune after an object was removed from the set.
func ExampleStale() {
	object := func(name string) apply.Object {
		return apply.Object{Manifest: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": name},
		}}}
	}
	inventory := apply.Ahead(nil, []apply.Object{object("prices"), object("colors")})
	for _, resource := range inventory {
		fmt.Println("recorded", resource)
	}
	for _, resource := range apply.Stale(inventory, []apply.Object{object("prices")}) {
		fmt.Println("stale", resource)
	}
	// Output:
	// recorded ConfigMap shop/colors
	// recorded ConfigMap shop/prices
	// stale ConfigMap shop/colors
}
