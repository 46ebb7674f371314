package placement

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// apisOf is what a member serves, or nil where it does not tell.
func apisOf(served []membershipv1alpha1.ServedAPIs) map[schema.GroupVersionKind]bool {
	if len(served) == 0 {
		return nil
	}
	apis := map[schema.GroupVersionKind]bool{}
	for i := range served {
		groupVersion, err := schema.ParseGroupVersion(served[i].GroupVersion)
		if err != nil {
			continue // no policy can ask for that
		}
		for _, kind := range served[i].Kinds {
			apis[groupVersion.WithKind(kind)] = true
		}
	}
	return apis
}

// catalog has clusters that serve the same share what says so: most of a fleet do, and each would need some 20 kB of its own.
type catalog struct {
	entries []catalogEntry // the one that was used last first
}

type catalogEntry struct {
	served []membershipv1alpha1.ServedAPIs
	apis   map[schema.GroupVersionKind]bool
}

// catalogSize is how many different sets of APIs a fleet may have before they are made anew each time.
const catalogSize = 16

// of is apisOf, made once. The caller keeps served as it is.
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
