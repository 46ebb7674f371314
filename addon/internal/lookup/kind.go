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
	"github.com/muster-sdk/muster/internal/sharedwatch"
)

// kind is a requested kind. The lock of its Finder protects the variable fields; the others do not change once the kind
// is found.
type kind struct {
	finder    *Finder
	resource  schema.GroupResource
	began     time.Time
	attempted chan struct{} // closed when it is watched, or the first attempt has failed
	wake      chan struct{} // signals an object that must be read
	life      context.Context
	stop      context.CancelFunc

	lookupError lookupError
	objects     map[v1alpha1.ObjectName]*object

	served   servedKind
	informer cache.Informer
	handler  toolscache.ResourceEventHandlerRegistration
}

// servedKind is the kind that the hub serves for a resource.
type servedKind struct {
	gvk        schema.GroupVersionKind
	namespaced bool
}

func newKind(f *Finder, resource schema.GroupResource) *kind {
	k := &kind{
		finder: f, resource: resource, began: f.options.Clock.Now(), attempted: make(chan struct{}),
		wake:        make(chan struct{}, 1),
		lookupError: errNotDiscovered, objects: map[v1alpha1.ObjectName]*object{},
	}
	k.life, k.stop = context.WithCancel(f.life)
	return k
}

// newObject adds the object of a reference of this kind. The lock must be held.
func (k *kind) newObject(reference v1alpha1.ConfigReference) *object {
	o := &object{ConfigReference: reference, kind: k, busy: make(chan struct{}, 1),
		users: sharedwatch.Users[types.NamespacedName]{}}
	k.objects[reference.ObjectName] = o
	return o
}

// prototype returns an object for the cache. Two kinds are cached completely because the add-on controllers use them.
func (k *kind) prototype() client.Object {
	switch k.served.gvk {
	case v1alpha1.GroupVersion.WithKind("AddonConfig"):
		return &v1alpha1.AddonConfig{}
	case v1alpha1.GroupVersion.WithKind("AddonTemplate"):
		return &v1alpha1.AddonTemplate{}
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(k.served.gvk)
	return metadata
}

// run watches the kind while it has users.
func (k *kind) run() {
	clock := k.finder.options.Clock
	for {
		lookupError := k.begin(k.life)
		if k.life.Err() != nil {
			break
		}
		k.record(lookupError)
		if lookupError.none() {
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
			ctx, cancel := context.WithTimeoutCause(k.life, timeout, errSlow)
			o.look(ctx)
			cancel()
		}
		k.sleep(clock, next)
	}
	if k.handler != nil {
		_ = k.informer.RemoveEventHandler(k.handler) // fails only for a foreign handler
	}
}

// sleep waits until an object must be read, or until the given time if it is not zero.
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

// due returns the objects that must be read now, and the time of the next one. Zero: none.
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
	default: // already signaled
	}
}

// record processes the result of an attempt to watch the kind.
func (k *kind) record(now lookupError) {
	f := k.finder
	f.mu.Lock()
	before := k.lookupError
	now = now.since(before)
	k.lookupError = now
	var users []types.NamespacedName
	if now != before {
		for _, o := range k.objects {
			users = append(users, o.users.Outdated()...)
		}
	}
	select {
	case <-k.attempted:
	default:
		close(k.attempted)
	}
	f.mu.Unlock()
	switch {
	case now == before:
	case !now.none():
		f.options.Log.Info("Cannot watch configurations of a kind; retrying", "resource", k.resource.String(), "reason",
			now.clause)
	case before != errNotDiscovered:
		f.options.Log.Info("Watching configurations of a kind again", "resource", k.resource.String())
	}
	slices.SortFunc(users, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	f.notify(slices.Compact(users)) // a user of several objects is notified once
}
