package lookup

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// object is a configuration that somebody asks for. The lock of its Finder guards what changes.
type object struct {
	v1alpha1.ConfigReference
	*kind
	busy  chan struct{}                 // has somebody who reads it
	users map[types.NamespacedName]bool // whether they have seen what it is

	state
	known bool      // it was read once
	stale bool      // it has changed since it was read
	again time.Time // when to read it again; zero: when it changes
}

// state is what a configuration is. The zero value: missing.
type state struct {
	content *unstructured.Unstructured
	hash    string // of the content
	failure trouble
}

// matter is why nobody knows what the object is. The lock is held.
func (o *object) matter() trouble {
	switch {
	case !o.trouble.none():
		return o.trouble
	case !o.known:
		return unread
	}
	return o.failure
}

// release has a user want it no more. The lock is held.
func (o *object) release(user types.NamespacedName) {
	delete(o.users, user)
	if len(o.users) > 0 {
		return
	}
	delete(o.objects, o.ObjectName)
	if len(o.objects) == 0 {
		o.stop()
		delete(o.finder.kinds, o.resource)
	}
}

// outdated appends the users that have seen what it was. They are told once, until they have looked again. The lock is held.
func (o *object) outdated(users []types.NamespacedName) []types.NamespacedName {
	for user, seen := range o.users {
		if seen {
			o.users[user] = false
			users = append(users, user)
		}
	}
	return users
}

// look reads the object if it has changed, or was never read. Where several look one reads, and the others wait. A reading that took too long is a
// failure, [errSlow], and one that its caller gave up is none.
func (o *object) look(ctx context.Context) {
	f := o.finder
	select {
	case o.busy <- struct{}{}:
		defer func() { <-o.busy }()
	case <-ctx.Done():
		return
	}
	f.mu.Lock()
	fresh, had := !o.trouble.none() || o.known && !o.stale, o.state
	if !fresh {
		o.stale = false
	}
	f.mu.Unlock()
	if fresh {
		return
	}
	now := o.read(ctx, had)
	f.mu.Lock()
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSlow) {
		o.stale = true
		f.mu.Unlock()
		o.nudge()
		return
	}
	now.failure = now.failure.since(had.failure)
	var users []types.NamespacedName
	if !o.known || now.hash != had.hash || now.failure != had.failure {
		users = o.outdated(nil)
	}
	o.state, o.known, o.again = now, true, time.Time{}
	if !now.failure.none() {
		o.again = f.options.Clock.Now().Add(pause)
	}
	nudge := o.stale || !now.failure.none()
	f.mu.Unlock()
	if nudge { // it is to be looked at again
		o.nudge()
	}
	f.tell(users)
}

// read finds out what the object is, given what it was. Content that is the same by its metadata is not read.
func (o *object) read(ctx context.Context, had state) state {
	if failure := misplaced(o.ConfigReference, o.namespaced); !failure.none() {
		return state{failure: failure}
	}
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
	cached := o.prototype()
	switch err := o.finder.options.Cache.Get(ctx, key, cached); {
	case apierrors.IsNotFound(err):
		return state{}
	case err != nil:
		return state{failure: uncached(o.ConfigReference, err)}
	case had.content != nil && had.content.GetUID() == cached.GetUID() && had.content.GetResourceVersion() == cached.GetResourceVersion():
		return state{content: had.content, hash: had.hash}
	}
	content := &unstructured.Unstructured{}
	var err error
	if _, partial := cached.(*metav1.PartialObjectMetadata); partial {
		content.SetGroupVersionKind(o.gvk)
		err = o.finder.options.Live.Get(ctx, key, content)
	} else {
		content.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(cached)
		content.SetGroupVersionKind(o.gvk)
	}
	switch {
	case apierrors.IsNotFound(err):
		return state{}
	case err != nil:
		return state{failure: unreadable(o.resource, err)}
	}
	content.SetManagedFields(nil) // nobody needs them
	return state{content: content, hash: config.Hash(content)}
}
