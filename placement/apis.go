package placement

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// apisOf returns the kinds that a member serves. Nil: the member does not report them.
func apisOf(served []membershipv1alpha1.ServedAPIs) map[schema.GroupVersionKind]bool {
	if len(served) == 0 {
		return nil
	}
	apis := map[schema.GroupVersionKind]bool{}
	for i := range served {
		groupVersion, err := schema.ParseGroupVersion(served[i].GroupVersion)
		if err != nil {
			continue // no policy can require it
		}
		for _, kind := range served[i].Kinds {
			apis[groupVersion.WithKind(kind)] = true
		}
	}
	return apis
}

// catalog shares the sets of kinds between clusters that serve the same kinds. Most clusters of a fleet do, and a set
// takes about 20 kB.
type catalog struct {
	entries []catalogEntry // most recently used first
}

type catalogEntry struct {
	served []membershipv1alpha1.ServedAPIs
	apis   map[schema.GroupVersionKind]bool
}

// catalogSize is the number of different sets that are shared.
const catalogSize = 16

// of returns the result of apisOf from the catalog. The caller must not modify served.
func (c *catalog) of(served []membershipv1alpha1.ServedAPIs) map[schema.GroupVersionKind]bool {
	i := slices.IndexFunc(c.entries, func(e catalogEntry) bool {
		return slices.EqualFunc(e.served, served, func(a, b membershipv1alpha1.ServedAPIs) bool {
			return a.GroupVersion == b.GroupVersion && slices.Equal(a.Kinds, b.Kinds)
		})
	})
	entry := catalogEntry{served, nil}
	if i >= 0 {
		entry = c.entries[i]
		c.entries = slices.Delete(c.entries, i, i+1)
	} else {
		entry.apis = apisOf(served)
	}
	c.entries = slices.Insert(c.entries, 0, entry)
	c.entries = c.entries[:min(len(c.entries), catalogSize)]
	return entry.apis
}
