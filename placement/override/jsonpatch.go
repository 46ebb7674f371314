package override

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// operation is a validated operation of a JSON patch.
type operation struct {
	op         v1alpha1.JSONPatchOp
	path, from []string
	value      any
	at         string // the field of the rule
}

func compileOperation(spec *v1alpha1.JSONPatchOperation, at *field.Path) (operation, error) {
	op := operation{op: spec.Op, path: split(spec.Path), from: split(spec.From), at: at.String()}
	if spec.Value == nil {
		return op, nil
	}
	value := at.Child("value").String()
	if err := utiljson.Unmarshal(spec.Value.Raw, &op.value); err != nil {
		return op, fmt.Errorf("%s: %w", value, errNotJSON)
	}
	return op, checkVariables(op.value, value)
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// split returns the names in a JSON pointer. Nil: the pointer refers to the whole object.
func split(pointer string) []string {
	if pointer == "" {
		return nil
	}
	names := strings.Split(pointer[1:], "/")
	for i := range names {
		names[i] = unescape.Replace(names[i])
	}
	return names
}

// do applies an operation. After an error the content must not be used.
func (e *edit) do(content map[string]any, o *operation) error {
	switch o.op {
	case v1alpha1.JSONPatchAdd, v1alpha1.JSONPatchReplace, v1alpha1.JSONPatchTest:
		value, err := e.copy(o.value, len(o.path))
		if err == nil {
			value, err = expandAll(value, e.expand)
		}
		switch {
		case err != nil:
			return within(".value", err)
		case o.op == v1alpha1.JSONPatchAdd:
			return e.add(content, o.path, value)
		case o.op == v1alpha1.JSONPatchReplace:
			return within(".path", change(content, o.path, replaceBy(value)))
		}
		is, err := get(content, o.path)
		if err == nil && !equal(is, value) {
			err = ErrTestFailed
		}
		return within(".path", err)
	case v1alpha1.JSONPatchRemove:
		return within(".path", change(content, o.path, e.remove))
	default: // move and copy
		value, err := get(content, o.from)
		if err == nil {
			value, err = e.copy(value, len(o.path))
		}
		if err == nil && o.op == v1alpha1.JSONPatchMove {
			err = change(content, o.from, e.remove)
		}
		if err != nil {
			return within(".from", err)
		}
		return e.add(content, o.path, value)
	}
}

// get returns the value at a path.
func get(node any, path []string) (any, error) {
	for _, name := range path {
		child, _, err := child(node, name)
		if err != nil {
			return nil, err
		}
		node = child
	}
	return node, nil
}

// child returns the field or item with a name, and the index of an item.
func child(node any, name string) (value any, i int, err error) {
	switch node := node.(type) {
	case map[string]any:
		if value, found := node[name]; found {
			return value, 0, nil
		}
	case []any:
		if i, ok := index(name); ok && i < len(node) {
			return node[i], i, nil
		}
	}
	return nil, 0, fmt.Errorf("%q: %w", name, ErrNoPath)
}

// index parses the index of an item: digits without leading zeros.
func index(name string) (int, bool) {
	i, err := strconv.Atoi(name)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == name
}

// change replaces the node that contains the last name of a path by the result of become.
func change(root map[string]any, path []string, become func(parent any, name string) (any, error)) error {
	var step func(node any, path []string) (any, error)
	step = func(node any, path []string) (any, error) {
		if len(path) == 1 {
			return become(node, path[0])
		}
		below, i, err := child(node, path[0])
		if err == nil {
			below, err = step(below, path[1:])
		}
		if err != nil {
			return nil, err
		}
		switch node := node.(type) {
		case map[string]any:
			node[path[0]] = below
		case []any:
			node[i] = below
		}
		return node, nil
	}
	_, err := step(root, path) // the root is a map, which is changed in place
	return err
}

func (e *edit) add(content map[string]any, path []string, value any) error {
	return within(".path", change(content, path, func(parent any, name string) (any, error) {
		switch parent := parent.(type) {
		case map[string]any:
			parent[name] = value
			return parent, nil
		case []any:
			i, ok := index(name)
			if name == "-" {
				i, ok = len(parent), true
			}
			if ok && i <= len(parent) {
				return slices.Insert(parent, i, value), e.charge(len(parent) - i)
			}
		}
		return nil, fmt.Errorf("%q: %w", name, ErrNoPath)
	}))
}

func replaceBy(value any) func(parent any, name string) (any, error) {
	return func(parent any, name string) (any, error) {
		_, i, err := child(parent, name)
		if err != nil {
			return nil, err
		}
		switch parent := parent.(type) {
		case map[string]any:
			parent[name] = value
		case []any:
			parent[i] = value
		}
		return parent, nil
	}
}

func (e *edit) remove(parent any, name string) (any, error) {
	_, i, err := child(parent, name)
	if err != nil {
		return nil, err
	}
	if items, isList := parent.([]any); isList {
		return slices.Delete(items, i, i+1), e.charge(len(items) - i)
	}
	delete(parent.(map[string]any), name)
	return parent, nil
}

// equal reports whether two values are equal as JSON.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, isMap := b.(map[string]any)
		if !isMap || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			if other, found := b[name]; !found || !equal(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, isList := b.([]any)
		return isList && slices.EqualFunc(a, b, equal)
	case int64:
		switch b := b.(type) {
		case int64:
			return a == b
		case float64:
			return same(a, b)
		}
		return false
	case float64:
		if b, isInt := b.(int64); isInt {
			return same(b, a)
		}
	}
	return a == b
}

// same compares an integer and a float exactly, although not every integer can be represented as a float.
func same(i int64, f float64) bool {
	return f == math.Trunc(f) && f >= math.MinInt64 && f < math.MaxInt64 && int64(f) == i
}
