package revision

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/placement/bundle"
)

// Info is what is known of a revision without reading it.
type Info struct {
	// Name of the revision, by [Name].
	Name string
	// Number counts up with each change. A revision that comes again gets a new one.
	Number int64
	// CreatedAt is when it was first there.
	CreatedAt time.Time
	// Objects is how many it has.
	Objects int
	// Hash of its content.
	Hash bundle.Hash
	// Complete says that all of it is there. What is not complete was not saved to the end, and cannot be loaded.
	Complete bool

	parts []part // in the order of their places
}

// part is a WorkSetRevision.
type part struct {
	name            string
	uid             types.UID
	resourceVersion string
	place           place
}

// newestFirst orders revisions.
func newestFirst(a, b Info) int {
	return cmp.Or(cmp.Compare(b.Number, a.Number), b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.Name, b.Name))
}

// Prune returns the revisions to delete, the oldest first: all but those in use, and the newest of the others, as many
// as the limit says. Incomplete ones that are not in use go, too, and do not count. Whatever the clusters are to have,
// or have, is to be in use, complete or not. The order of the revisions makes no difference; they are not changed.
func Prune(all []Info, inUse func(name string) bool, limit int) []Info {
	var out []Info
	kept := 0
	for _, info := range slices.SortedFunc(slices.Values(all), newestFirst) {
		switch {
		case inUse(info.Name):
		case info.Complete && kept < limit:
			kept++
		default:
			out = append(out, info)
		}
	}
	slices.Reverse(out)
	return out
}
