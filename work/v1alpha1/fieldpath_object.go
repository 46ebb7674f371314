package v1alpha1

import (
	"fmt"
	"maps"
	"slices"
)

// The methods of this file work on decoded JSON: map[string]any, []any, string, bool, nil, and numbers as int64 or
// float64.

// Get returns the value at the path, without a copy. If the value is null, Get returns nil and true.
//
// A list item without the key protocol matches protocol "TCP", the default of Kubernetes: the paths of the API server
// contain all keys, but a manifest may omit the protocol.
func (p FieldPath) Get(object map[string]any) (value any, found bool) {
	value = object
	for _, e := range p {
		if value, found = e.get(value); !found {
			return nil, false
		}
	}
	return value, true
}

// Expand replaces each [*] of the path by the items and fields that exist in at least one of the objects, and returns
// the resulting paths. Items with a field name are identified by the name, other items by their index. A path without
// [*] is returned unchanged, even if no object has a value at the path.
func (p FieldPath) Expand(objects ...map[string]any) []FieldPath {
	at := slices.IndexFunc(p, func(e element) bool { return e.kind == anyElement })
	if at < 0 {
		return []FieldPath{p}
	}
	var children []element
	for _, object := range objects {
		parent, _ := p[:at].Get(object)
		for _, child := range childrenOf(parent) {
			if !slices.ContainsFunc(children, child.equal) {
				children = append(children, child)
			}
		}
	}
	var paths []FieldPath
	for _, child := range children {
		path := append(slices.Clip(p[:at]), child)
		paths = append(paths, append(path, p[at+1:]...).Expand(objects...)...)
	}
	return paths
}

// childrenOf returns the path elements of the items of a list, in order, or of the fields of a map, sorted by name.
func childrenOf(parent any) []element {
	var children []element
	switch parent := parent.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(parent)) {
			children = append(children, element{kind: fieldElement, name: name})
		}
	case []any:
		for i, item := range parent {
			fields, _ := item.(map[string]any)
			if name, named := fields["name"].(string); named {
				children = append(children, element{kind: keyElement, keys: map[string]any{"name": name}})
				continue
			}
			children = append(children, element{kind: indexElement, index: i})
		}
	}
	return children
}

// Set sets the value at the path, and creates missing parent fields. If the last element of the path identifies a list
// item by keys or by value, the value must match that element; if no item matches, the value is appended to the list.
// The object refers to the value without a copy. If Set returns an error, the object is unchanged; the error contains
// the path up to the element that failed.
func (p FieldPath) Set(object map[string]any, value any) error {
	if len(p) == 0 {
		return fmt.Errorf("the whole object cannot be set")
	}
	_, err := p.set(0, object, value)
	return err
}

// Remove removes the value at the path, and reports whether it existed. Empty maps and lists are kept.
func (p FieldPath) Remove(object map[string]any) bool {
	if len(p) == 0 {
		return false
	}
	last := len(p) - 1
	parent, found := p[:last].Get(object)
	if !found {
		return false
	}
	if _, found = p[last].get(parent); !found {
		return false
	}
	if fields, isMap := parent.(map[string]any); isMap {
		delete(fields, p[last].name)
		return true
	}
	// Build a new list: other objects may share the array of the existing one.
	var rest []any
	for i, item := range parent.([]any) {
		if !p[last].is(i, item) {
			rest = append(rest, item)
		}
	}
	if rest == nil {
		rest = []any{}
	}
	return p[:last].Set(object, rest) == nil
}

// set sets the value at the elements of the path from index i on, relative to holder, and returns the changed holder.
func (p FieldPath) set(i int, holder, value any) (any, error) {
	if i == len(p) {
		return value, nil
	}
	e, last := p[i], i == len(p)-1
	if last && !e.accepts(value) {
		return nil, fmt.Errorf("%s: the value is not the item that the path names", p[:i+1])
	}
	child, found := e.get(holder)
	if e.kind == fieldElement {
		fields, isMap := holder.(map[string]any)
		if holder == nil {
			fields, isMap = map[string]any{}, true
		}
		if !isMap {
			return nil, fmt.Errorf("%s: its parent is no map", p[:i+1])
		}
		child, err := p.set(i+1, child, value)
		if err == nil {
			fields[e.name] = child
		}
		return fields, err
	}

	items, isList := holder.([]any)
	switch {
	case holder != nil && !isList:
		return nil, fmt.Errorf("%s: its parent is no list", p[:i+1])
	case !found && (!last || e.kind == indexElement):
		return nil, fmt.Errorf("%s: there is no such item", p[:i+1])
	case !found:
		return append(slices.Clip(items), value), nil
	}
	child, err := p.set(i+1, child, value)
	if err == nil {
		items[e.find(items)] = child
	}
	return items, err
}

// get returns the child of holder that the element identifies.
func (e element) get(holder any) (any, bool) {
	switch holder := holder.(type) {
	case map[string]any:
		if e.kind == fieldElement {
			child, found := holder[e.name]
			return child, found
		}
	case []any:
		if i := e.find(holder); i >= 0 {
			return holder[i], true
		}
	}
	return nil, false
}

// find returns the index of the first item that the element identifies, or -1.
func (e element) find(items []any) int {
	for i, item := range items {
		if e.is(i, item) {
			return i
		}
	}
	return -1
}

// is reports whether the element identifies the item at index i of a list.
func (e element) is(i int, item any) bool {
	switch e.kind {
	case indexElement:
		return i == e.index
	case valueElement:
		return same(e.value, item)
	case keyElement:
		fields, isMap := item.(map[string]any)
		for name, want := range e.keys {
			got, found := fields[name]
			if !found && name == "protocol" {
				got = "TCP"
			}
			if !same(want, got) {
				return false
			}
		}
		return isMap && len(e.keys) > 0
	}
	return false
}

// accepts reports whether a value may be set at the element: an item that is identified by keys or by value must match
// the element.
func (e element) accepts(value any) bool {
	return e.kind == fieldElement || e.kind == indexElement || e.is(0, value)
}

func same(want, got any) bool { return want != nil && want == scalar(got) }
