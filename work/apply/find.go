package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

func objectKey(id v1alpha1.ResourceIdentifier) client.ObjectKey {
	return client.ObjectKey{Namespace: id.Namespace, Name: id.Name}
}

// lookup returns what a watch knows of an object; nil: nothing.
func (e *Engine) lookup(t *task) *metav1.PartialObjectMetadata {
	if e.options.Metadata == nil {
		return nil
	}
	return e.options.Metadata.Lookup(t.id.GroupVersionKind(), objectKey(t.id))
}

// see finds out what an object is like, unless that is known already.
func (e *Engine) see(ctx context.Context, owner Owner, t *task) error {
	if t.looked {
		return nil
	}
	if watched := e.lookup(t); watched != nil {
		t.seen = e.recall(owner, t).latest(look(watched, owner))
		return nil
	}
	m := e.recall(owner, t)
	if now := e.options.Clock.Now(); m.rejected.blocksReads(t.hash, now) {
		return &heldBackError{err: m.rejected.err, wait: m.rejected.wait(t.hash, "", now)}
	}
	if t.assumed = t.isNew(m); t.assumed {
		t.seen = nil
		return nil
	}
	return e.readMetadata(ctx, owner, t)
}

// isNew reports whether an object most likely does not exist: it was never applied, and nothing says that it is in the
// way. To create it is then tried without a read. The API server refuses that where the object exists.
func (t *task) isNew(m memory) bool {
	if t.Manifest == nil {
		return false
	}
	never := t.Takeover == "" || t.Takeover == v1alpha1.TakeoverNever
	return t.uid == "" && t.ran == "" && m.written == nil && m.rejected.count == 0 && !m.existed && never &&
		t.Mode != v1alpha1.CreateOnly && !t.onlyLooks() && !t.published()
}

// readMetadata reads the metadata of an object from the API server. If that is forbidden it is not tried on each
// reconcile.
func (e *Engine) readMetadata(ctx context.Context, owner Owner, t *task) error {
	err := e.ask(ctx, owner, t)
	if forbidden(err) {
		m := e.recall(owner, t)
		m.rejected = m.rejected.again(t.hash, "", e.options.Clock.Now(), err)
		m.rejected.read = true
		e.remember(owner, t, m)
	}
	return err
}

// ask has the API server say what an object is like.
func (e *Engine) ask(ctx context.Context, owner Owner, t *task) error {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(t.id.GroupVersionKind())
	err := e.client.Get(ctx, objectKey(t.id), object)
	switch {
	case err == nil:
		t.seen = look(object, owner)
	case apierrors.IsNotFound(err) && !unserved(err):
		t.seen = nil
	default:
		return fmt.Errorf("read its metadata: %w", err)
	}
	t.looked = true
	return nil
}

// read returns the whole of an object.
func (e *Engine) read(ctx context.Context, id v1alpha1.ResourceIdentifier) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(id.GroupVersionKind())
	if err := e.client.Get(ctx, objectKey(id), live); err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	return live, nil
}

const (
	// prefetchFrom is how many objects of a kind in a namespace are worth a list.
	prefetchFrom = 4
	// prefetchPage bounds what a list answers at a time; what is in a namespace has no bounds.
	prefetchPage = 500
	// pageWorth is how many reads a page costs as much as, about.
	pageWorth = 10
)

// prefetch lists where many objects are to be looked at. What it does not find out is found out one by one.
func (e *Engine) prefetch(ctx context.Context, owner Owner, unknown []*task) {
	type place struct {
		kind      schema.GroupVersionKind
		namespace string
	}
	groups := map[place]map[string]*task{}
	for _, t := range unknown {
		in := place{t.id.GroupVersionKind(), t.id.Namespace}
		if groups[in] == nil {
			groups[in] = map[string]*task{}
		}
		groups[in][t.id.Name] = t
	}
	for in, group := range groups {
		if len(group) >= prefetchFrom {
			e.list(ctx, owner, in.kind, group)
		}
	}
}

// list looks at objects of one kind in one namespace, by their names. It gives up when there is so much else that it
// does not pay, or when it fails: it may be allowed to read what it may not list.
func (e *Engine) list(ctx context.Context, owner Owner, kind schema.GroupVersionKind, group map[string]*task) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	var namespace string
	for _, t := range group {
		namespace = t.id.Namespace
	}
	kind.Kind += "List"
	options := &client.ListOptions{Namespace: namespace, Limit: prefetchPage}
	for range 1 + len(group)/pageWorth {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := e.client.List(ctx, list, options); err != nil {
			return
		}
		for i := range list.Items {
			if t := group[list.Items[i].Name]; t != nil {
				t.seen, t.looked = look(&list.Items[i], owner), true
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			for _, t := range group {
				t.looked = true // and not there, if it was in no page
			}
			return
		}
	}
}
