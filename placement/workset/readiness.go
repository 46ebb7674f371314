package workset

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/placement/rollout"
)

// Readiness reports to the controller of Placements on which clusters WorkSets are available, so that failover waits
// for replacements and disruption budgets count available workloads. Create it with [NewReadiness] and pass it to both
// controllers:
//
//	ready := workset.NewReadiness()
//	placement.SetupWithManager(mgr, placement.Options{Ready: ready})
//	workset.SetupWithManager(mgr, workset.Options{Readiness: ready})
//
// A cluster is ready for a Placement when all WorkSets of the Placement are available on it, in the revision that is
// assigned to the cluster. Readiness implements placement.ReadinessNotifier. Its methods may be called concurrently.
type Readiness struct {
	mu        sync.Mutex
	sets      map[types.NamespacedName]availability                          // by WorkSet
	of        map[types.NamespacedName]map[types.NamespacedName]availability // the same, by Placement
	listeners map[int]func(placement types.NamespacedName)
	next      int

	awaited map[types.NamespacedName]bool // WorkSets that existed at the start and were not reconciled yet; nil: unknown
	known   chan struct{}                 // closed when awaited is empty
}

// availability lists the clusters on which a WorkSet is available.
type availability struct {
	placements []types.NamespacedName
	ready      map[string]bool // by cluster
}

// NewReadiness returns a Readiness.
func NewReadiness() *Readiness {
	return &Readiness{
		sets: map[types.NamespacedName]availability{}, of: map[types.NamespacedName]map[types.NamespacedName]availability{},
		listeners: map[int]func(types.NamespacedName){}, known: make(chan struct{}),
	}
}

// Ready reports whether all WorkSets of the placement are available on the cluster.
func (r *Readiness) Ready(placement types.NamespacedName, cluster string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.of[placement] {
		if !s.ready[cluster] {
			return false
		}
	}
	return true
}

// startTimeout is how long Notify waits for the first reconcile of all WorkSets.
const startTimeout = 5 * time.Minute

// Notify calls changed with each Placement for which the result of Ready may have changed. It returns when all WorkSets
// that existed at the start were reconciled, with an error if that takes more than five minutes.
func (r *Readiness) Notify(ctx context.Context, changed func(placement types.NamespacedName)) (stop func(), _ error) {
	r.mu.Lock()
	id := r.next
	r.next++
	r.listeners[id] = changed
	r.mu.Unlock()
	stop = func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.listeners, id)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		errors.New("the WorkSet controller has not observed all WorkSets: add it to the same manager, with "+
			"workset.Options.Readiness"))
	defer cancel()
	select {
	case <-r.known:
		return stop, nil
	case <-ctx.Done():
		stop()
		return nil, context.Cause(ctx)
	}
}

// await records the WorkSets that exist at the start.
func (r *Readiness) await(sets []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaited = map[types.NamespacedName]bool{}
	for _, set := range sets {
		r.awaited[set] = true
	}
	r.closeIfKnown()
}

// reconciled records that a WorkSet was reconciled, with or without an error.
func (r *Readiness) reconciled(set types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.awaited, set); r.awaited != nil {
		r.closeIfKnown()
	}
}

func (r *Readiness) closeIfKnown() {
	if len(r.awaited) > 0 {
		return
	}
	select {
	case <-r.known:
	default:
		close(r.known)
	}
}

// set records the availability of a WorkSet. The zero availability means that the WorkSet does not exist.
func (r *Readiness) set(name types.NamespacedName, now availability) {
	r.mu.Lock()
	before := r.sets[name]
	if maps.Equal(before.ready, now.ready) && slices.Equal(before.placements, now.placements) {
		r.mu.Unlock()
		return
	}
	for _, placement := range before.placements {
		if delete(r.of[placement], name); len(r.of[placement]) == 0 {
			delete(r.of, placement)
		}
	}
	delete(r.sets, name)
	for _, placement := range now.placements {
		if r.of[placement] == nil {
			r.of[placement] = map[types.NamespacedName]availability{}
		}
		r.of[placement][name] = now
		r.sets[name] = now
	}
	listeners := slices.Collect(maps.Values(r.listeners))
	r.mu.Unlock()
	affected := map[types.NamespacedName]bool{}
	for _, placement := range slices.Concat(before.placements, now.placements) {
		affected[placement] = true
	}
	for placement := range affected {
		for _, changed := range listeners {
			changed(placement)
		}
	}
}

// availability returns the availability of the WorkSet.
func (l *reconciliation) availability() availability {
	s := availability{ready: make(map[string]bool, len(l.clusters))}
	for _, reference := range l.set.Spec.Placements {
		s.placements = append(s.placements, types.NamespacedName{Namespace: l.set.Namespace, Name: reference.Name})
	}
	for _, t := range l.clusters {
		if t.health == rollout.Succeeded {
			s.ready[t.name] = true
		}
	}
	return s
}
