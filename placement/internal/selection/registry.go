package selection

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// audience are the owners that share something, and whether a Select has told them what it is. Who has not been told
// waits in a Select, and learns there.
type audience map[types.NamespacedName]bool

func (a audience) notified() []types.NamespacedName {
	owners := make([]types.NamespacedName, 0, len(a))
	for owner, notified := range a {
		if notified {
			owners = append(owners, owner)
		}
	}
	return owners
}

func (a audience) notify(owner types.NamespacedName) {
	if _, there := a[owner]; there {
		a[owner] = true
	}
}

// shared is what owners share: it begins with the first and ends with the last of them.
type shared interface {
	heard() audience
	close()
}

// registry has all that is shared, and who wants which of it.
type registry[K comparable, V shared] struct {
	all map[K]V
	of  map[types.NamespacedName][]K
}

// want has an owner want these and no others.
func (r *registry[K, V]) want(owner types.NamespacedName, keys []K, begin func(K) V) {
	if r.all == nil {
		r.all, r.of = map[K]V{}, map[types.NamespacedName][]K{}
	}
	for _, key := range keys {
		value, there := r.all[key]
		if !there {
			value = begin(key)
			r.all[key] = value
		}
		if _, listens := value.heard()[owner]; !listens {
			value.heard()[owner] = false
		}
	}
	for _, key := range r.of[owner] {
		if slices.Contains(keys, key) {
			continue
		}
		value := r.all[key]
		delete(value.heard(), owner)
		if len(value.heard()) == 0 {
			value.close()
			delete(r.all, key)
		}
	}
	if r.of[owner] = keys; len(keys) == 0 {
		delete(r.of, owner)
	}
}

// wanted are those that an owner wants.
func (r *registry[K, V]) wanted(owner types.NamespacedName) []V {
	values := make([]V, 0, len(r.of[owner]))
	for _, key := range r.of[owner] {
		values = append(values, r.all[key])
	}
	return values
}
