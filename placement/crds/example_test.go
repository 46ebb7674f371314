package crds_test

import (
	"fmt"
	"io/fs"

	"github.com/muster-sdk/muster/placement/crds"
)

// This example lists the definitions as files, for installation by other means.
func Example() {
	names, err := fs.Glob(crds.Files, "*.yaml")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		fmt.Println(name)
	}
	// Output:
	// placement.muster.dev_clusterplacements.yaml
	// placement.muster.dev_clusterworksets.yaml
	// placement.muster.dev_placementdecisions.yaml
	// placement.muster.dev_placementevictions.yaml
	// placement.muster.dev_placements.yaml
	// placement.muster.dev_worksetrevisions.yaml
	// placement.muster.dev_worksets.yaml
}
