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

// Readiness tells the controller of Placements where what WorkSets distribute does its work, so that a placement that has to leave a cluster can
// wait for its replacement, and a disruption budget counts what is really there. Make it by [NewReadiness], and give it to both:
//
//	ready := workset.NewReadiness()
//	placement.SetupWithManager(mgr, placement.Options{Ready: ready})
//	workset.SetupWithManager(mgr, workset.Options{Readiness: ready})
//
// A cluster is ready for a Placement when all WorkSets of that Placement are available on it, by what it was told last. It is a
// placement.ReadinessNotifier, and may be used concurrently.
type Readiness struct {
	mu        sync.Mutex
	sets      map[types.NamespacedName]standing                          // by WorkSet
	of        map[types.NamespacedName]map[types.NamespacedName]standing // the same, by Placement
	listeners map[int]func(placement types.NamespacedName)
	next      int

	awaited map[types.NamespacedName]bool // the WorkSets that existed at the start and were not reconciled yet; nil: not known
	known   chan struct{}                 // closed when there are none
}

// standing is where one WorkSet is available.
type standing struct {
	placements []types.NamespacedName
	ready      map[string]bool // by cluster
}

// NewReadiness makes a Readiness.
func NewReadiness() *Readiness {
	return &Readiness{
		sets: map[types.NamespacedName]standing{}, of: map[types.NamespacedName]map[types.NamespacedName]standing{},
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

// knowledgeTimeout is how long Notify waits for the first look at all WorkSets.
const knowledgeTimeout = 5 * time.Minute

// Notify has a function called with each placement that Ready may say something else of than before. It returns when all WorkSets
// that there were at the start have been looked at, with an error if that takes five minutes.
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
	ctx, cancel := context.WithTimeoutCause(ctx, knowledgeTimeout,
		errors.New("the controller of WorkSets has not looked at all of them: is it in the same manager, with workset.Options.Readiness?"))
	defer cancel()
	select {
	case <-r.known:
		return stop, nil
	case <-ctx.Done():
		stop()
		return nil, context.Cause(ctx)
	}
}

// await takes in which WorkSets there are at the start.
func (r *Readiness) await(sets []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaited = map[types.NamespacedName]bool{}
	for _, set := range sets {
		r.awaited[set] = true
	}
	r.settle()
}

// looked takes in that a WorkSet was looked at, whatever came of that.
func (r *Readiness) looked(set types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.awaited, set); r.awaited != nil {
		r.settle()
	}
}

func (r *Readiness) settle() {
	if len(r.awaited) > 0 {
		return
	}
	select {
	case <-r.known:
	default:
		close(r.known)
	}
}

// set takes in where a WorkSet is available now; the zero standing: it is gone.
func (r *Readiness) set(name types.NamespacedName, now standing) {
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
			r.of[placement] = map[types.NamespacedName]standing{}
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

// standing is where the WorkSet is available, as it was found.
func (l *look) standing() standing {
	s := standing{ready: make(map[string]bool, len(l.clusters))}
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
