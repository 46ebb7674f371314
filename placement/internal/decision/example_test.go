package decision_test

import (
	"fmt"

	"github.com/muster-sdk/muster/placement/internal/decision"
)

// ExampleLay replaces one of three clusters. The others keep their positions.
func ExampleLay() {
	before := decision.Lay(nil, chosen("east", "north", "west"))
	for _, slice := range decision.Lay(before, chosen("west", "south", "east")) {
		for _, d := range slice.Decisions {
			fmt.Println(slice.Index, d.ClusterName)
		}
	}
	// Output:
	// 0 east
	// 0 west
	// 0 south
}
