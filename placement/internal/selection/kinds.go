package selection

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/restmapper"
)

const (
	// missingKindsInterval is the interval between lookups of missing kinds. Up to a fifth of it is added.
	missingKindsInterval = 30 * time.Second
	// discoveryTimeout limits one discovery request.
	discoveryTimeout = 10 * time.Second
)

// kind is a kind that selectors name. Its mapping stays until another one is found. If the kind is no longer served,
// its watches fail.
type kind struct {
	schema.GroupVersionKind
	users users
	began time.Time
	done  chan struct{} // closed after the first lookup

	mapping *meta.RESTMapping
	problem problem
}

// Users implements [sharedwatch.Shared].
func (k *kind) Users() users { return k.users }

// Close implements [sharedwatch.Shared].
func (*kind) Close() {}

func (k *kind) lookUp(mapper meta.RESTMapper) (*meta.RESTMapping, error) {
	if k.Version == "" {
		return mapper.RESTMapping(k.GroupKind())
	}
	return mapper.RESTMapping(k.GroupKind(), k.Version)
}

// wantKinds registers an owner for the kinds of selectors, and returns them.
func (w *Watcher) wantKinds(owner types.NamespacedName, parsed []parsedSelector) []*kind {
	var keys []schema.GroupVersionKind
	for i := range parsed {
		if a := &parsed[i]; a.problem.none() && !slices.Contains(keys, a.kind) {
			keys = append(keys, a.kind)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.kinds.Want(owner, keys, func(key schema.GroupVersionKind) *kind {
		k := &kind{GroupVersionKind: key, users: users{}, began: w.options.Clock.Now(), done: make(chan struct{}),
			problem: notDiscovered}
		w.ended.Go(func() {
			mapping, err := k.lookUp(w.options.Mapper)
			w.found(k, mapping, err)
		})
		return k
	})
	return w.kinds.Wanted(owner)
}

// mapping returns the mapping of a kind, or the reason why it is unknown.
func (w *Watcher) mapping(key schema.GroupVersionKind) (*meta.RESTMapping, problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k, wanted := w.kinds.Get(key); wanted {
		return k.mapping, k.problem
	}
	return nil, stopping
}

// found records the result of a lookup.
func (w *Watcher) found(k *kind, mapping *meta.RESTMapping, err error) {
	w.change(k.users, func() bool {
		first := k.problem == notDiscovered
		if first {
			close(k.done)
		}
		switch {
		case err == nil:
			before := k.mapping
			k.mapping, k.problem = mapping, problem{}
			return before == nil || before.Resource != mapping.Resource || before.Scope.Name() != mapping.Scope.Name()
		case k.mapping != nil:
			return false
		}
		w.retryMissingKinds()
		now := mappingProblem(k.GroupVersionKind, err)
		if !first && now.reason == k.problem.reason {
			return false
		}
		k.problem = now
		return true
	})
}

// retryMissingKinds starts a goroutine that looks up missing kinds after missingKindsInterval. The caller holds the
// lock.
func (w *Watcher) retryMissingKinds() {
	if w.retrying || w.closed {
		return
	}
	w.retrying = true
	w.ended.Go(func() {
		for {
			timer := w.options.Clock.NewTimer(wait.Jitter(missingKindsInterval, 0.2))
			select {
			case <-timer.C():
			case <-w.life.Done():
				timer.Stop()
				return
			}
			missing := w.missing()
			if len(missing) == 0 {
				return
			}
			groups, err := restmapper.GetAPIGroupResources(w.discovery)
			if err != nil {
				w.options.Log.Info("Failed to discover missing kinds, retrying", "error", err.Error())
				continue
			}
			mapper := restmapper.NewDiscoveryRESTMapper(groups)
			for _, k := range missing {
				mapping, err := k.lookUp(mapper)
				w.found(k, mapping, err)
			}
		}
	})
}

// missing returns the kinds that were not found or are no longer served. If there are none, the lookups end.
func (w *Watcher) missing() []*kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := map[schema.GroupVersionResource]bool{}
	for target, t := range w.watches.All() {
		if t.failure.problem.reason == ReasonUnknownKind {
			gone[target.GroupVersionResource] = true
		}
	}
	var missing []*kind
	for _, k := range w.kinds.All() {
		if k.mapping == nil && k.problem != notDiscovered || k.mapping != nil && gone[k.mapping.Resource] {
			missing = append(missing, k)
		}
	}
	w.retrying = len(missing) > 0
	return missing
}
