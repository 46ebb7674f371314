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

// entry is what is kept of an object of the hub.
type entry struct {
	bundle.Object
	err        error // why it cannot travel; then there is nothing but the name
	controlled bool  // it has a controller
}

// errNotAsked is the error of what the server sent though it was not asked for.
var errNotAsked = errors.New("the API server sent an object that was not requested")

// GetObjectMeta lets the reflector keep entries until its list is complete.
func (e *entry) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}
}

// entryOf makes an entry of an object as it comes from the hub.
func (t *watch) entryOf(object any) *entry {
	if e, made := object.(*entry); made {
		return e
	}
	u := object.(*unstructured.Unstructured)
	e := &entry{err: errNotAsked, controlled: metav1.GetControllerOfNoCopy(u) != nil}
	if t.asksFor(u) {
		e.Object, e.err = bundle.Clean(u)
	}
	// The text is in a buffer with room to grow, and what tells the objects of a target apart is their names.
	e.JSON = bytes.Clone(e.JSON)
	e.Group, e.Version, e.Kind = t.target.Group, t.target.Version, t.target.Kind
	e.Namespace, e.Name = u.GetNamespace(), u.GetName()
	if e.Namespace == t.target.Namespace {
		e.Namespace = t.target.Namespace
	}
	return e
}

// asksFor says whether an object is among those that the server was asked for. Extension servers need not know
// selectors.
func (t *watch) asksFor(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind() == t.target.GroupVersion().WithKind(t.target.Kind) &&
		u.GetNamespace() == t.target.Namespace &&
		(t.target.Name == "" || t.target.Name == u.GetName()) &&
		(t.labels.Empty() || t.labels.Matches(labels.Set(u.GetLabels())))
}

// keeps says whether an entry is worth a word: neither what was not asked for is, nor what never travels where it was
// not named.
func (t *watch) keeps(e *entry) bool {
	if errors.Is(e.err, errNotAsked) {
		return false
	}
	_, never := errors.AsType[*bundle.RefusedError](e.err)
	return !never || t.target.Name != ""
}

// same says whether two entries, nil if there is none, are the same to who selects them.
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

// Transformer has the reflector make entries as objects come, so that it never has the objects of a whole list.
func (t *watch) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return t.entryOf(object), nil }
}

// Add takes in an object that the reflector tells of.
func (t *watch) Add(object any) error {
	switch e := t.entryOf(object); {
	case e.Namespace != t.target.Namespace: // it has the name of another
	case t.keeps(e):
		t.put(e.Name, e)
	default:
		t.put(e.Name, nil)
	}
	return nil
}

// Update takes in an object that the reflector tells of.
func (t *watch) Update(object any) error { return t.Add(object) }

// Delete takes in that an object is gone, or out of the selector.
func (t *watch) Delete(object any) error {
	u := object.(*unstructured.Unstructured)
	if u.GetNamespace() == t.target.Namespace {
		t.put(u.GetName(), nil)
	}
	return nil
}

// Resync is for stores that tell of everything from time to time.
func (*watch) Resync() error { return nil }

func (t *watch) put(name string, e *entry) {
	t.change(t.audience, func() bool {
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

// Replace takes in a complete list.
func (t *watch) Replace(objects []any, _ string) error {
	entries := make(map[string]*entry, len(objects))
	for _, object := range objects {
		if e := t.entryOf(object); t.keeps(e) {
			entries[e.Name] = e
		}
	}
	t.change(t.audience, func() bool {
		changed := !maps.EqualFunc(t.entries, entries, same)
		t.entries, t.sorted = entries, nil
		what := listing
		if t.streaming {
			what = watching
		}
		return t.recovered(what) || changed
	})
	return nil
}

// list are the entries by name. The lock is held.
func (t *watch) list() []*entry {
	if t.sorted == nil {
		t.sorted = slices.SortedFunc(maps.Values(t.entries), func(a, b *entry) int { return cmp.Compare(a.Name, b.Name) })
	}
	return t.sorted
}
