package selection

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/muster-sdk/muster/placement/bundle"
)

// entry is the cached part of an object of the hub.
type entry struct {
	bundle.Object
	err        error // the reason why the object cannot be distributed; then the entry has only a name
	controlled bool  // whether a controller owns the object
}

// errNotRequested is the error of an object that the API server sent although the object does not match the selector.
var errNotRequested = errors.New("the API server sent an object that was not requested")

// GetObjectMeta lets the reflector store the entries of an incomplete list by name.
func (e *entry) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}
}

// entryOf returns the entry of an object of the hub.
func (t *watch) entryOf(object any) *entry {
	if e, made := object.(*entry); made {
		return e
	}
	u := object.(*unstructured.Unstructured)
	e := &entry{err: errNotRequested, controlled: metav1.GetControllerOfNoCopy(u) != nil}
	if t.matchesTarget(u) {
		e.Object, e.err = bundle.Clean(u)
	}
	// The buffer of the text has spare capacity, and its copy has none. All objects of a target have the same kind.
	e.JSON = bytes.Clone(e.JSON)
	e.Group, e.Version, e.Kind = t.target.Group, t.target.Version, t.target.Kind
	e.Namespace, e.Name = u.GetNamespace(), u.GetName()
	if e.Namespace == t.target.Namespace {
		e.Namespace = t.target.Namespace
	}
	return e
}

// matchesTarget reports whether an object matches the target. Extension API servers can ignore selectors.
func (t *watch) matchesTarget(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind() == t.target.GroupVersion().WithKind(t.target.Kind) &&
		u.GetNamespace() == t.target.Namespace &&
		(t.target.Name == "" || t.target.Name == u.GetName()) &&
		(t.labels.Empty() || t.labels.Matches(labels.Set(u.GetLabels())))
}

// mustKeep reports whether an entry is kept. Objects that do not match the selector are dropped. Objects of kinds that
// are never distributed are kept only if the selector names them.
func (t *watch) mustKeep(e *entry) bool {
	if errors.Is(e.err, errNotRequested) {
		return false
	}
	_, never := errors.AsType[*bundle.RefusedError](e.err)
	return !never || t.target.Name != ""
}

// same reports whether two entries have the same content for the owners that select them. Nil means no entry.
func same(a, b *entry) bool {
	switch {
	case a == nil || b == nil:
		return a == b
	case a.controlled != b.controlled:
		return false
	case a.err != nil || b.err != nil:
		return a.err != nil && b.err != nil && a.err.Error() == b.err.Error()
	default:
		return a.Hash == b.Hash
	}
}

var _ cache.TransformingStore = &watch{}

// Transformer lets the reflector convert objects one by one, so that a whole list of objects is never in memory.
func (t *watch) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return t.entryOf(object), nil }
}

// Add records an object that the watch reported.
func (t *watch) Add(object any) error {
	switch e := t.entryOf(object); {
	case e.Namespace != t.target.Namespace: // another object can have this name
	case t.mustKeep(e):
		t.put(e.Name, e)
	default:
		t.put(e.Name, nil)
	}
	return nil
}

// Update records an object that the watch reported.
func (t *watch) Update(object any) error { return t.Add(object) }

// Delete records that an object was deleted, or does not match the selector any more.
func (t *watch) Delete(object any) error {
	u := object.(*unstructured.Unstructured)
	if u.GetNamespace() == t.target.Namespace {
		t.put(u.GetName(), nil)
	}
	return nil
}

// Resync does nothing: the store has no handlers.
func (*watch) Resync() error { return nil }

func (t *watch) put(name string, e *entry) {
	t.change(t.users, func() bool {
		if same(t.entries[name], e) {
			return false
		}
		t.sorted = nil
		if delete(t.entries, name); e != nil {
			t.entries[name] = e
		}
		return true
	})
}

// Replace records a complete list.
func (t *watch) Replace(objects []any, _ string) error {
	entries := make(map[string]*entry, len(objects))
	for _, object := range objects {
		if e := t.entryOf(object); t.mustKeep(e) {
			entries[e.Name] = e
		}
	}
	t.change(t.users, func() bool {
		changed := !maps.EqualFunc(t.entries, entries, same)
		t.entries, t.sorted = entries, nil
		return t.recovered(t.lists) || changed
	})
	return nil
}

// list returns the entries, sorted by name. The caller holds the lock.
func (t *watch) list() []*entry {
	if t.sorted == nil {
		t.sorted = slices.SortedFunc(maps.Values(t.entries), func(a, b *entry) int { return cmp.Compare(a.Name, b.Name) })
	}
	return t.sorted
}
