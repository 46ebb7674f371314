package workset_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/workset"
)

// A hub decides Placements and distributes WorkSets.
func Example() {
	setup := func(mgr manager.Manager) error {
		if err := placement.SetupWithManager(mgr, placement.Options{}); err != nil {
			return err
		}
		return workset.SetupWithManager(mgr, workset.Options{})
	}
	_ = setup
}

// The platform team of a hub keeps objects for the clusters of all teams in one namespace. Every WorkSet may select
// them, except for Secrets.
func ExampleOptions() {
	options := workset.Options{
		Allow: func(owner types.NamespacedName, target workset.Target) error {
			if target.Namespace == "platform" && target.GroupResource() != (schema.GroupResource{Resource: "secrets"}) {
				return nil
			}
			return workset.OwnNamespace(owner, target)
		},
	}
	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	for _, target := range []workset.Target{
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "platform",
			Name: "proxy"},
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Namespace: "shop",
			Name: "db"},
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Namespace: "platform",
			Name: "ca"},
	} {
		fmt.Printf("%s: %v\n", target, options.Allow(web, target))
	}
	// Output:
	// configmaps "proxy" in namespace platform: <nil>
	// secrets "db" in namespace shop: <nil>
	// secrets "ca" in namespace platform: the WorkSet selects secrets "ca" in namespace platform, which is not its own namespace: create a WorkSet there, or ask the hub's administrator for a SelectionGrant
}
