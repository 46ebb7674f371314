package revision

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/placement/bundle"
)

// Info contains the metadata of a revision.
type Info struct {
	// Name is the name of the revision, as returned by [Name].
	Name string
	// Number increases with each change. If a former revision becomes the newest again, it gets a new number.
	Number int64
	// CreatedAt is the time at which the revision was first created.
	CreatedAt time.Time
	// Objects is the number of its objects.
	Objects int
	// Hash is the hash of its content.
	Hash bundle.Hash
	// Complete is true if all parts exist. Saving an incomplete revision was interrupted, and it cannot be loaded.
	Complete bool

	parts []part // sorted by place
}

// part identifies one WorkSetRevision of a revision.
type part struct {
	name            string
	uid             types.UID
	resourceVersion string
	place           place
}

// newestFirst compares revisions, so that the newest is sorted first.
func newestFirst(a, b Info) int {
	return cmp.Or(cmp.Compare(b.Number, a.Number), b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.Name, b.Name))
}

// Prune returns the revisions to delete, the oldest first. It keeps the revisions in use, and of the others the newest
// complete ones up to the limit. Incomplete revisions that are not in use are deleted, and do not count. inUse must
// return true for every revision that clusters have or must have, complete or not. The order of all is not significant.
// Prune does not change it.
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
