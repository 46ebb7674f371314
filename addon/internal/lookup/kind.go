package lookup

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// kind is one that somebody asks for. The lock of its Finder guards what changes; what is of the hub stays as it is from when trouble is none.
type kind struct {
	finder   *Finder
	resource schema.GroupResource
	began    time.Time
	settled  chan struct{} // closed when it is watched, or the first try has failed
	wake     chan struct{} // has an object that is to be looked at
	life     context.Context
	stop     context.CancelFunc

	trouble trouble
	objects map[v1alpha1.ObjectName]*object

	gvk        schema.GroupVersionKind
	namespaced bool
	informer   cache.Informer
	handler    toolscache.ResourceEventHandlerRegistration
}

func newKind(f *Finder, resource schema.GroupResource) *kind {
	k := &kind{
		finder: f, resource: resource, began: f.options.Clock.Now(), settled: make(chan struct{}), wake: make(chan struct{}, 1),
		trouble: unasked, objects: map[v1alpha1.ObjectName]*object{},
	}
	k.life, k.stop = context.WithCancel(f.life)
	return k
}

// object is the one that a reference of this kind names. The lock is held.
func (k *kind) object(reference v1alpha1.ConfigReference) *object {
	o := k.objects[reference.ObjectName]
	if o == nil {
		o = &object{ConfigReference: reference, kind: k, busy: make(chan struct{}, 1), users: map[types.NamespacedName]bool{}}
		k.objects[reference.ObjectName] = o
	}
	return o
}

// prototype is an object for the cache to fill. Of two kinds it has whole objects, which our controllers use.
func (k *kind) prototype() client.Object {
	switch k.gvk {
	case v1alpha1.GroupVersion.WithKind("AddonConfig"):
		return &v1alpha1.AddonConfig{}
	case v1alpha1.GroupVersion.WithKind("AddonTemplate"):
		return &v1alpha1.AddonTemplate{}
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(k.gvk)
	return metadata
}

// run watches the kind for as long as somebody asks for it.
func (k *kind) run() {
	clock := k.finder.options.Clock
	for {
		trouble := k.begin(k.life)
		if k.life.Err() != nil {
			break
		}
		k.settle(trouble)
		if trouble.none() {
			break
		}
		timer := clock.NewTimer(pause)
		select {
		case <-k.life.Done():
		case <-k.synced():
		case <-timer.C():
		}
		timer.Stop()
	}
	for k.life.Err() == nil {
		due, next := k.due()
		for _, o := range due {
			ctx, cancel := context.WithTimeoutCause(k.life, patience, errSlow)
			o.look(ctx)
			cancel()
		}
		k.sleep(clock, next)
	}
	if k.handler != nil {
		_ = k.informer.RemoveEventHandler(k.handler) // fails only on one that is not its own
	}
}

// sleep waits until an object is to be looked at, at the given time if that is not zero.
func (k *kind) sleep(clock clock.Clock, next time.Time) {
	var timeout <-chan time.Time
	if !next.IsZero() {
		timer := clock.NewTimer(next.Sub(clock.Now()))
		defer timer.Stop()
		timeout = timer.C()
	}
	select {
	case <-k.life.Done():
	case <-k.wake:
	case <-timeout:
	}
}

// due are the objects to be looked at now, and when the next one is. Zero: nobody knows.
func (k *kind) due() (due []*object, next time.Time) {
	k.finder.mu.Lock()
	defer k.finder.mu.Unlock()
	now := k.finder.options.Clock.Now()
	for _, o := range k.objects {
		switch failed := !o.again.IsZero(); {
		case failed && !o.again.After(now):
			o.stale = true
			due = append(due, o)
		case failed && (next.IsZero() || o.again.Before(next)):
			next = o.again
		case o.stale:
			due = append(due, o)
		}
	}
	return due, next
}

func (k *kind) nudge() {
	select {
	case k.wake <- struct{}{}:
	default: // it is awake
	}
}

// settle takes in what became of a try to watch the kind.
func (k *kind) settle(now trouble) {
	f := k.finder
	f.mu.Lock()
	before := k.trouble
	now = now.since(before)
	k.trouble = now
	var users []types.NamespacedName
	if now != before {
		for _, o := range k.objects {
			users = o.outdated(users)
		}
	}
	select {
	case <-k.settled:
	default:
		close(k.settled)
	}
	f.mu.Unlock()
	switch {
	case now == before:
	case !now.none():
		f.options.Log.Info("Configurations of a kind cannot be watched; trying again.", "resource", k.resource.String(), "reason", now.clause)
	case before != unasked:
		f.options.Log.Info("Configurations of a kind are watched again.", "resource", k.resource.String())
	}
	slices.SortFunc(users, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	f.tell(slices.Compact(users)) // who asks for several is told once
}
