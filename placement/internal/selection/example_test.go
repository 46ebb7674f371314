package selection_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/placement/internal/selection"
)

// The WorkSets in the namespaces of a platform team may select more than their own objects, here
// CustomResourceDefinitions.
func ExampleOwnNamespace() {
	allow := func(owner types.NamespacedName, target selection.Target) error {
		definitions := schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
		if owner.Namespace == "platform" && target.GroupKind() == definitions {
			return nil
		}
		return selection.OwnNamespace(owner, target)
	}
	_ = selection.Options{Allow: allow}

	definitions := selection.Target{
		GroupVersionResource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
			Resource: "customresourcedefinitions"},
		Kind: "CustomResourceDefinition",
	}
	secrets := selection.Target{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret",
		Namespace: "shop",
	}
	for _, owner := range []types.NamespacedName{{Namespace: "platform", Name: "kinds"},
		{Namespace: "shop", Name: "web"}} {
		for _, target := range []selection.Target{definitions, secrets} {
			fmt.Printf("%s, %s: %v\n", owner, target, allow(owner, target))
		}
	}
	// Output:
	// platform/kinds, customresourcedefinitions.apiextensions.k8s.io: <nil>
	// platform/kinds, secrets in namespace shop: the WorkSet selects secrets in namespace shop, which is not its own namespace: create a WorkSet there, or ask the hub's administrator for a SelectionGrant
	// shop/web, customresourcedefinitions.apiextensions.k8s.io: the WorkSet selects customresourcedefinitions.apiextensions.k8s.io, but the only cluster-scoped object that a WorkSet can select is its own Namespace, by name: ask the hub's administrator for a SelectionGrant
	// shop/web, secrets in namespace shop: <nil>
}
