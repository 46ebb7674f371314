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
	// lookAgainAfter is how long after kinds were missing they are looked for, plus up to a fifth of it.
	lookAgainAfter = 30 * time.Second
	// discoveryTimeout is how long one request for the hub's kinds may take.
	discoveryTimeout = 10 * time.Second
)

// kind is one that selectors name. What was found stays until something else is found: that the kind has gone, its
// watches say.
type kind struct {
	schema.GroupVersionKind
	audience
	began time.Time
	done  chan struct{} // closed when it has been looked for once

	mapping *meta.RESTMapping
	problem problem
}

func (k *kind) heard() audience { return k.audience }
func (*kind) close()            {}

func (k *kind) lookUp(mapper meta.RESTMapper) (*meta.RESTMapping, error) {
	if k.Version == "" {
		return mapper.RESTMapping(k.GroupKind())
	}
	return mapper.RESTMapping(k.GroupKind(), k.Version)
}

// wantKinds has an owner want the kinds of the asks, and returns them.
func (w *Watcher) wantKinds(owner types.NamespacedName, asks []ask) []*kind {
	var keys []schema.GroupVersionKind
	for i := range asks {
		if a := &asks[i]; a.problem.none() && !slices.Contains(keys, a.kind) {
			keys = append(keys, a.kind)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.kinds.want(owner, keys, func(key schema.GroupVersionKind) *kind {
		k := &kind{GroupVersionKind: key, audience: audience{}, began: w.options.Clock.Now(), done: make(chan struct{}),
			problem: unasked}
		w.ended.Go(func() {
			mapping, err := k.lookUp(w.options.Mapper)
			w.found(k, mapping, err)
		})
		return k
	})
	return w.kinds.wanted(owner)
}

// mapping is what is known of a kind, or else the trouble with it.
func (w *Watcher) mapping(key schema.GroupVersionKind) (*meta.RESTMapping, problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.kinds.all[key]; k != nil {
		return k.mapping, k.problem
	}
	return nil, stopping
}

// found takes in what a mapper says of a kind.
func (w *Watcher) found(k *kind, mapping *meta.RESTMapping, err error) {
	w.change(k.audience, func() bool {
		first := k.problem == unasked
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
		w.lookAgain()
		now := unmapped(k.GroupVersionKind, err)
		if !first && now.reason == k.problem.reason {
			return false
		}
		k.problem = now
		return true
	})
}

// lookAgain starts a goroutine that looks for missing kinds after a while. The caller has the lock.
func (w *Watcher) lookAgain() {
	if w.retrying || w.closed {
		return
	}
	w.retrying = true
	w.ended.Go(func() {
		for {
			timer := w.options.Clock.NewTimer(wait.Jitter(lookAgainAfter, 0.2))
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
				w.options.Log.Info("Kinds are missing and the hub does not say what it has; asking again.", "error", err.Error())
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

// missing are the kinds that were not found, or are found no more. If there are none, the search ends.
func (w *Watcher) missing() []*kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := map[schema.GroupVersionResource]bool{}
	for target, t := range w.watches.all {
		if t.problem.reason == ReasonUnknownKind {
			gone[target.GroupVersionResource] = true
		}
	}
	var missing []*kind
	for _, k := range w.kinds.all {
		if k.mapping == nil && k.problem != unasked || k.mapping != nil && gone[k.mapping.Resource] {
			missing = append(missing, k)
		}
	}
	w.retrying = len(missing) > 0
	return missing
}
