package apply

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// The API server records which fields each manager has applied. A manager that changes the value of a field, or removes
// the field, takes it from all other managers. So as long as our manager owns all fields of the manifest, no other
// client has changed them. The metadata of the object is sufficient to find that out, and defaults and admission do not
// matter. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management.

func parseFields(fields []byte) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(fields)); err != nil {
		return nil, fmt.Errorf("read the managed fields: %w", err)
	}
	return set, nil
}

// unmanaged and unmanagedMeta are the fields that are never in managed fields.
var unmanaged = map[string]bool{"apiVersion": true, "kind": true}
var unmanagedMeta = map[string]bool{"name": true, "namespace": true, "creationTimestamp": true, "generation": true,
	"selfLink": true}

// fieldCoverage compares manifests with the fields that our field manager owns.
type fieldCoverage struct {
	others func() *fieldpath.Set // of all other field managers
}

// covers reports whether all fields of a manifest are in the set. For empty lists and maps see [cover.asEmpty].
func (c fieldCoverage) covers(set *fieldpath.Set, manifest map[string]any) bool {
	for name, field := range manifest {
		switch {
		case unmanaged[name]:
		case name == "metadata":
			meta, _ := field.(map[string]any)
			at := fieldpath.Path{fieldName(name)}
			children := set.WithPrefix(at[0])
			for name, field := range meta {
				if !unmanagedMeta[name] && !c.element(at, children, fieldName(name), field, meta) {
					return false
				}
			}
		case !c.element(nil, set, fieldName(name), field, manifest):
			return false
		}
	}
	return true
}

func fieldName(name string) fieldpath.PathElement { return fieldpath.PathElement{FieldName: &name} }

// element reports whether a field is in the set as an element. An element without children is a scalar, an empty list
// or map, or an atomic field.
//
// The map that contains the field is in; nil: a list does.
func (c fieldCoverage) element(
	parent fieldpath.Path, set *fieldpath.Set, element fieldpath.PathElement, field any, in map[string]any,
) bool {
	children, granular := set.Children.Get(element)
	if !granular {
		return set.Members.Has(element) || isEmpty(field) && c.asEmpty(parent, element, field, in)
	}
	at := append(parent.Copy(), element)
	switch field := field.(type) {
	case map[string]any:
		for name, inner := range field {
			if !c.element(at, children, fieldName(name), inner, field) {
				return false
			}
		}
		return true
	case []any:
		return c.items(at, children, field)
	default:
		return false
	}
}

// asEmpty reports whether an empty list or map is unchanged although our manager does not own it. The API server drops
// most empty lists and maps, and their managed fields. The field has been changed if another manager owns the whole of
// it. Items that another manager has added are additions: applying an empty list does not remove them.
//
// A map that is the only field of a list item besides its keys, such as emptyDir of a volume, may be a member of a
// union. It has also been changed if another manager owns a field next to it.
func (c fieldCoverage) asEmpty(parent fieldpath.Path, element fieldpath.PathElement, field any,
	in map[string]any) bool {
	others := descend(c.others(), parent)
	if _, isMap := field.(map[string]any); isMap && isAllOf(parent, in) {
		mine := func(e fieldpath.PathElement) bool { return e.FieldName != nil && *e.FieldName != "name" }
		_, edited := elementOf(others, fieldpath.NewSet(), mine)
		return !edited
	}
	return !others.Members.Has(element) || !others.WithPrefix(element).Empty()
}

// isAllOf reports whether a map is a list item that has only one field besides its keys.
func isAllOf(path fieldpath.Path, item map[string]any) bool {
	if len(path) == 0 || path[len(path)-1].Key == nil {
		return false
	}
	return len(item) == len(*path[len(path)-1].Key)+1
}

// isEmpty reports whether a value is an empty list or map, a map of nothing else, or null.
func isEmpty(field any) bool {
	switch field := field.(type) {
	case nil:
		return true
	case []any:
		return len(field) == 0
	case map[string]any:
		for _, inner := range field {
			if !isEmpty(inner) {
				return false
			}
		}
		return true
	}
	return false
}

// items reports whether all items of a list are in the set, each as another element.
func (c fieldCoverage) items(at fieldpath.Path, set *fieldpath.Set, items []any) bool {
	taken := fieldpath.NewSet()
	for _, match := range []func(fieldpath.PathElement, any) bool{isExactly, isDefaulted} {
		var rest []any
		for _, item := range items {
			element, found := elementOf(set, taken, func(e fieldpath.PathElement) bool { return match(e, item) })
			if !found {
				rest = append(rest, item)
				continue
			}
			if !c.element(at, set, element, item, nil) {
				return false
			}
			taken.Members.Insert(element)
		}
		items = rest
	}
	return len(items) == 0
}

// elementOf returns an element of a list that matches and is not taken.
func elementOf(set, taken *fieldpath.Set, is func(fieldpath.PathElement) bool) (fieldpath.PathElement, bool) {
	for element := range set.Members.All() {
		if is(element) && !taken.Members.Has(element) {
			return element, true
		}
	}
	for element := range set.Children.All() {
		if is(element) && !taken.Members.Has(element) {
			return element, true
		}
	}
	return fieldpath.PathElement{}, false
}

// isExactly reports whether an element identifies an item that has all keys.
func isExactly(element fieldpath.PathElement, item any) bool {
	if element.Value != nil {
		return value.Equals(*element.Value, value.NewValueInterface(item))
	}
	matched, keys := keysOf(element, item)
	return keys > 0 && matched == keys
}

// isDefaulted reports whether an element may identify an item that lacks keys which the API server defaults, such as
// the protocol of a port.
func isDefaulted(element fieldpath.PathElement, item any) bool {
	matched, _ := keysOf(element, item)
	return matched > 0
}

// keysOf returns how many keys of an element an item has with the same values, and how many keys the element has. Both
// are 0 if a value differs.
func keysOf(element fieldpath.PathElement, item any) (matched, keys int) {
	fields, _ := item.(map[string]any)
	if element.Key == nil || fields == nil {
		return 0, 0
	}
	for _, key := range *element.Key {
		got, has := fields[key.Name]
		switch {
		case has && !value.Equals(key.Value, value.NewValueInterface(got)):
			return 0, 0
		case has:
			matched++
		}
	}
	return matched, len(*element.Key)
}

// pathOf converts a path of managed fields.
func pathOf(path fieldpath.Path) v1alpha1.FieldPath {
	var out v1alpha1.FieldPath
	for _, element := range path {
		switch {
		case element.FieldName != nil:
			out = out.Field(*element.FieldName)
		case element.Key != nil:
			keys := map[string]any{}
			for _, key := range *element.Key {
				keys[key.Name] = key.Value.Unstructured()
			}
			out = out.Item(keys)
		case element.Value != nil:
			out = out.Value((*element.Value).Unstructured())
		case element.Index != nil:
			out = out.Index(*element.Index)
		}
	}
	return out
}
