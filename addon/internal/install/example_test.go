package install_test

import (
	"fmt"

	"github.com/muster-sdk/muster/addon/internal/install"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// One cluster has just been selected, one is no longer selected, and one belongs to a Placement that a user is about to
// create again.
func ExampleDecide() {
	plan := install.Decide(install.Observed{
		Strategy: v1alpha1.InstallStrategy{Type: v1alpha1.InstallPlacements, Placements: []v1alpha1.PlacementInstall{
			{Namespace: "fleet", Name: "edge"}, {Namespace: "fleet", Name: "all"},
		}},
		Placements: []install.Placement{
			{Namespace: "fleet", Name: "all", State: install.Decided,
				Clusters: []install.Cluster{{Name: "east"}, {Name: "west"}}},
		},
		Members: []install.Member{{Name: "east", Joined: true}, {Name: "north", Joined: true}, {Name: "west", Joined: true}},
		MemberAddons: []install.MemberAddon{
			{Member: "north", InstalledBy: "fleet/all"},
			{Member: "west", InstalledBy: "fleet/edge"},
		},
	})
	for _, d := range plan.Decisions {
		fmt.Printf("%s %s %s, by %q\n", d.Member, d.Action, d.Reason, d.Placement)
	}
	for _, share := range plan.Shares {
		fmt.Println(share.Placement, len(share.Clusters))
	}
	fmt.Println(plan.Problems[0])
	// Output:
	// east Create Chosen, by "fleet/all"
	// north Keep Uncertain, by ""
	// west Keep Chosen, by "fleet/edge"
	// fleet/edge 1
	// fleet/all 1
	// Placement fleet/edge does not exist: the add-on stays on its members until the Placement is created or removed from spec.install.
}
