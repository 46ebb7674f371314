package crds_test

import (
	"embed"
	"fmt"
	"io/fs"

	"github.com/muster-sdk/muster/work/crds"
)

// The definitions are also available as files, for installation by other means.
func Example() {
	for _, files := range []embed.FS{crds.Hub, crds.Member} {
		names, err := fs.Glob(files, "*.yaml")
		if err != nil {
			panic(err)
		}
		fmt.Println(names)
	}
	// Output:
	// [work.muster.dev_works.yaml]
	// [work.muster.dev_appliedworks.yaml]
}
