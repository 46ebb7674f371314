package assume

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Object is an object with the metadata of the API, or a record of one.
type Object interface {
	metav1.Object
	comparable
}

// Cache contains the newest known version of each object of one kind. The zero value is ready for use.
//
// The caller protects a Cache with the lock that also protects what it derives from the objects, such as an index. The
// objects are shared with the caller and must not be modified.
type Cache[T Object] struct {
	entries map[types.NamespacedName]*entry[T]
}

// entry is the state of one object.
type entry[T Object] struct {
	object  T         // the zero value: it does not exist
	writing int       // the number of writes in progress
	gone    types.UID // of a deleted object that a watch, or the response to a write, can still contain
}

// Change is the effect of a call on an object. The zero value: none.
type Change[T Object] struct {
	// Before and After are the object before and after the call. The zero value: it does not exist.
	Before, After T
}

// Any reports whether there was a change.
func (c Change[T]) Any() bool { return c.Before != c.After }

// Get returns an object. The zero value: it does not exist.
func (c *Cache[T]) Get(name types.NamespacedName) T {
	if e := c.entries[name]; e != nil {
		return e.object
	}
	var none T
	return none
}

// Len returns the number of objects that exist or are being written.
func (c *Cache[T]) Len() int { return len(c.entries) }

// Observe records an object that a watch reported or that was read, unless a newer version is known.
func (c *Cache[T]) Observe(object T) Change[T] {
	return c.update(nameOf(object), func(e *entry[T]) {
		var none T
		if e.gone != object.GetUID() && (e.object == none || Newer(object, e.object)) {
			e.object = object
			if e.writing == 0 {
				e.gone = "" // the next version of the deleted object would be older
			}
		}
	})
}

// Replace records an object that was read from the API server although an older version than the known one: the store
// was restored. It has no effect if the known version is not the given one any more.
func (c *Cache[T]) Replace(known, object T) Change[T] {
	return c.update(nameOf(object), func(e *entry[T]) {
		if e.object == known {
			e.object = object
		}
	})
}

// ObserveDeletion records that an object does not exist any more. Another object of its name is not affected.
func (c *Cache[T]) ObserveDeletion(object T) Change[T] {
	return c.update(nameOf(object), func(e *entry[T]) {
		var none T
		switch {
		case e.writing > 0:
			e.gone = object.GetUID() // the response to the write can contain it
		case e.gone == object.GetUID():
			e.gone = ""
		}
		if e.object != none && e.object.GetUID() == object.GetUID() {
			e.object = none
		}
	})
}

// AssumeDeletion records that the API server has deleted an object, until a watch reports it.
func (c *Cache[T]) AssumeDeletion(object T) Change[T] {
	return c.update(nameOf(object), func(e *entry[T]) {
		var none T
		if e.object != none && e.object.GetUID() == object.GetUID() {
			e.object, e.gone = none, object.GetUID()
		}
	})
}

// BeginWrite records that an object is about to be written. The returned function records the response, once. The zero
// value: the write failed.
func (c *Cache[T]) BeginWrite(name types.NamespacedName) (end func(object T) Change[T]) {
	c.update(name, func(e *entry[T]) { e.writing++ })
	return func(object T) Change[T] {
		return c.update(name, func(e *entry[T]) {
			var none T
			e.writing--
			if object != none && e.gone != object.GetUID() && (e.object == none || !Behind(object, e.object)) {
				e.object = object
			}
			if e.writing == 0 {
				e.gone = ""
			}
		})
	}
}

// update changes an entry, and removes it if nothing is left of it.
func (c *Cache[T]) update(name types.NamespacedName, change func(*entry[T])) Change[T] {
	var none T
	e := c.entries[name]
	if e == nil {
		if c.entries == nil {
			c.entries = map[types.NamespacedName]*entry[T]{}
		}
		e = &entry[T]{}
		c.entries[name] = e
	}
	before := e.object
	change(e)
	if e.object == none && e.writing == 0 && e.gone == "" {
		delete(c.entries, name)
	}
	return Change[T]{Before: before, After: e.object}
}

func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// Newer reports whether one version of an object is newer than another.
func Newer(came, known metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(came.GetResourceVersion(), known.GetResourceVersion())
	return err != nil || order > 0
}

// Behind reports whether one version of an object, such as that of a cache, is older than another, such as the one that
// was written last.
func Behind(cached, written metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written.GetResourceVersion())
	return err == nil && order < 0
}
