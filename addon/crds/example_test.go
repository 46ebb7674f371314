package crds_test

import (
	"fmt"
	"io/fs"

	"github.com/muster-sdk/muster/addon/crds"
)

// The definitions are also available as files, for installation by other means.
func Example() {
	names, err := fs.Glob(crds.Files, "*.yaml")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		fmt.Println(name)
	}
	// Output:
	// addon.muster.dev_addonconfigs.yaml
	// addon.muster.dev_addons.yaml
	// addon.muster.dev_addontemplates.yaml
	// addon.muster.dev_memberaddons.yaml
}
