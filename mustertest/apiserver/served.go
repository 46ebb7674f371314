package apiserver

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
)

// servedKinds contains the kinds that a server serves.
type servedKinds struct {
	mu         sync.RWMutex
	byResource map[schema.GroupVersionResource]*kinds.Kind
	ordered    []*kinds.Kind // in the order in which discovery lists them
}

// kind returns the kind that is served under a resource, or nil.
func (k *servedKinds) kind(resource schema.GroupVersionResource) *kinds.Kind {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.byResource[resource]
}

// inOrder returns all served kinds.
func (k *servedKinds) inOrder() []*kinds.Kind {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.ordered
}

// stored returns a kind whose objects are stored under the resource. It prefers a kind that needs no conversion. It
// returns nil if there is none.
func (k *servedKinds) stored(resource schema.GroupResource) *kinds.Kind {
	k.mu.RLock()
	defer k.mu.RUnlock()
	var found *kinds.Kind
	for _, kind := range k.ordered {
		if kind.Storage == resource && !kind.Virtual() && (found == nil || found.Converts()) {
			found = kind
		}
	}
	return found
}

// add adds further served kinds.
func (k *servedKinds) add(further ...*kinds.Kind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, kind := range further {
		k.byResource[kind.Resource] = kind
	}
	k.ordered = slices.Concat(k.ordered, further)
}

// replace replaces the served kinds of a CustomResourceDefinition.
func (k *servedKinds) replace(definition string, with []*kinds.Kind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ordered := slices.DeleteFunc(slices.Clone(k.ordered), func(kind *kinds.Kind) bool {
		gone := !kind.Builtin() && kind.Resource.GroupResource().String() == definition
		if gone {
			delete(k.byResource, kind.Resource)
		}
		return gone
	})
	for _, kind := range with {
		k.byResource[kind.Resource] = kind
		ordered = append(ordered, kind)
	}
	k.ordered = ordered
}

// definitions returns the name of the CustomResourceDefinition of each custom kind.
func (k *servedKinds) definitions() []string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	var names []string
	for _, kind := range k.ordered {
		if !kind.Builtin() {
			names = append(names, kind.Resource.GroupResource().String())
		}
	}
	return names
}
