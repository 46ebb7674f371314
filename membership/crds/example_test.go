package crds_test

import (
	"fmt"
	"io/fs"

	"github.com/muster-sdk/muster/membership/crds"
)

// The definitions are also available as files, for other installation tools.
func Example() {
	names, err := fs.Glob(crds.Files, "*.yaml")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		fmt.Println(name)
	}
	// Output:
	// membership.muster.dev_joinrequests.yaml
	// membership.muster.dev_jointokens.yaml
	// membership.muster.dev_memberclusters.yaml
	// membership.muster.dev_memberships.yaml
}
