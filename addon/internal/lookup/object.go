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
	"github.com/muster-sdk/muster/internal/sharedwatch"
)

// object is a requested configuration. The lock of its Finder protects the variable fields.
type object struct {
	v1alpha1.ConfigReference
	*kind
	busy  chan struct{} // full while a goroutine reads it
	users sharedwatch.Users[types.NamespacedName]

	state
	known bool      // it was read at least once
	stale bool      // it has changed since it was read
	again time.Time // the time of the next attempt; zero: at the next change
}

// state is the state of a configuration. The zero value: it does not exist.
type state struct {
	content   *unstructured.Unstructured
	hash      string // hash of the content
	readError lookupError
}

// unknownBecause returns the reason why the state of the object is unknown. The lock must be held.
func (o *object) unknownBecause() lookupError {
	switch {
	case !o.lookupError.none():
		return o.lookupError
	case !o.known:
		return errNotRead
	}
	return o.readError
}

// Users implements [sharedwatch.Shared].
func (o *object) Users() sharedwatch.Users[types.NamespacedName] { return o.users }

// Close implements [sharedwatch.Shared].
func (o *object) Close() {
	delete(o.objects, o.ObjectName)
	if len(o.objects) == 0 {
		o.stop()
		delete(o.finder.kinds, o.resource)
	}
}

// look reads the object if it has changed or was never read. Of concurrent callers one reads, and the others wait. A
// timeout is a failure, [errSlow]; a canceled call is not.
func (o *object) look(ctx context.Context) {
	f := o.finder
	select {
	case o.busy <- struct{}{}:
		defer func() { <-o.busy }()
	case <-ctx.Done():
		return
	}
	f.mu.Lock()
	fresh, had := !o.lookupError.none() || o.known && !o.stale, o.state
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
	now.readError = now.readError.since(had.readError)
	var users []types.NamespacedName
	if !o.known || now.hash != had.hash || now.readError != had.readError {
		users = o.users.Outdated()
	}
	o.state, o.known, o.again = now, true, time.Time{}
	if !now.readError.none() {
		o.again = f.options.Clock.Now().Add(pause)
	}
	nudge := o.stale || !now.readError.none()
	f.mu.Unlock()
	if nudge { // it must be read again
		o.nudge()
	}
	f.notify(users)
}

// read reads the object, given its previous state. Content is not read again if the metadata has not changed.
func (o *object) read(ctx context.Context, had state) state {
	if lookupError := misplaced(o.ConfigReference, o.served.namespaced); !lookupError.none() {
		return state{readError: lookupError}
	}
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
	cached := o.prototype()
	switch err := o.finder.options.Cache.Get(ctx, key, cached); {
	case apierrors.IsNotFound(err):
		return state{}
	case err != nil:
		return state{readError: uncached(o.ConfigReference, err)}
	case had.content != nil && had.content.GetUID() == cached.GetUID() &&
		had.content.GetResourceVersion() == cached.GetResourceVersion():
		return state{content: had.content, hash: had.hash}
	}
	content := &unstructured.Unstructured{}
	var err error
	if _, partial := cached.(*metav1.PartialObjectMetadata); partial {
		content.SetGroupVersionKind(o.served.gvk)
		err = o.finder.options.Live.Get(ctx, key, content)
	} else {
		content.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(cached)
		content.SetGroupVersionKind(o.served.gvk)
	}
	switch {
	case apierrors.IsNotFound(err):
		return state{}
	case err != nil:
		return state{readError: unreadable(o.resource, err)}
	}
	content.SetManagedFields(nil) // they are not used
	return state{content: content, hash: config.Hash(content)}
}
