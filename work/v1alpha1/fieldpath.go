package v1alpha1

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// FieldPath identifies a field of an object. Its text has the syntax that the API server uses for the fields of a
// server-side apply conflict. Reported differences use the same syntax:
//
//   - .spec.replicas: a field. A name with special characters is quoted, as in .data["game.properties"].
//   - .spec.containers[name="web"].image: a field of the list item with this key. Several keys are possible, such as
//     [containerPort=80,protocol="TCP"].
//   - .metadata.finalizers[="example.com/a"]: the item with this value, in a list of strings, numbers or booleans.
//   - .spec.args[0]: the list item at this index.
//   - .spec.containers[*].image: a field of all items of a list, or of all fields of a map. [FieldPath.Expand] replaces
//     [*]; Get, Set and Remove do not support it.
//
// The API server does not quote names. The text after .metadata.labels or .metadata.annotations is therefore parsed as
// one name, up to the end: .metadata.annotations.example.com/note is the annotation example.com/note. Everywhere else,
// a name with dots must be in brackets and quotes.
//
// The zero value is the path of the whole object. A FieldPath is immutable: its methods return new paths.
//
// +kubebuilder:object:generate=false
type FieldPath []element

// element is one step of a path.
//
// +kubebuilder:object:generate=false
type element struct {
	kind  elementKind
	name  string         // of a field
	keys  map[string]any // of an item
	value any            // of a plain item
	index int
}

type elementKind int

const (
	fieldElement elementKind = iota
	keyElement
	valueElement
	indexElement
	anyElement // all items of a list, or all fields of a map
)

// Field returns the path of a field of the object or map at this path.
func (p FieldPath) Field(name string) FieldPath {
	return p.with(element{kind: fieldElement, name: name})
}

// Item returns the path of the item with these keys, of the list at this path. The values are strings, numbers or
// booleans; other values never match.
func (p FieldPath) Item(keys map[string]any) FieldPath {
	plain := make(map[string]any, len(keys))
	for name, value := range keys {
		plain[name] = scalar(value)
	}
	return p.with(element{kind: keyElement, keys: plain})
}

// Value returns the path of the item with this string, number or boolean, of the list at this path.
func (p FieldPath) Value(value any) FieldPath {
	return p.with(element{kind: valueElement, value: scalar(value)})
}

// Index returns the path of the item at an index, of the list at this path.
func (p FieldPath) Index(index int) FieldPath {
	return p.with(element{kind: indexElement, index: index})
}

func (p FieldPath) with(e element) FieldPath { return append(slices.Clip(p), e) }

// HasPrefix reports whether the path is equal to prefix, or below it.
func (p FieldPath) HasPrefix(prefix FieldPath) bool {
	return len(p) >= len(prefix) && slices.EqualFunc(p[:len(prefix)], prefix, element.equal)
}

// Matches reports whether the path matches a pattern, or is below a match. [*] in the pattern matches any item or
// field. An item of the pattern may have a subset of the keys.
func (p FieldPath) Matches(pattern FieldPath) bool {
	if len(p) < len(pattern) {
		return false
	}
	for i, e := range pattern {
		switch {
		case e.kind == anyElement:
		case e.kind == keyElement && p[i].kind == keyElement:
			for name, value := range e.keys {
				if got, has := p[i].keys[name]; !has || got != value {
					return false
				}
			}
		case !e.equal(p[i]):
			return false
		}
	}
	return true
}

// Equal reports whether both paths are equal.
func (p FieldPath) Equal(other FieldPath) bool { return len(p) == len(other) && p.HasPrefix(other) }

func (e element) equal(other element) bool {
	return e.kind == other.kind && e.name == other.name && e.value == other.value && e.index == other.index &&
		maps.Equal(e.keys, other.keys)
}

// String returns the path in the form that [ParseFieldPath] parses.
func (p FieldPath) String() string {
	var text strings.Builder
	for i, e := range p {
		switch e.kind {
		case fieldElement:
			last := i == len(p)-1
			switch {
			case isPlain(e.name) && (last || !p[:i].isFreeForm()):
				text.WriteString("." + e.name)
			default:
				text.WriteString("[" + strconv.Quote(e.name) + "]")
			}
		case keyElement:
			pairs := make([]string, 0, len(e.keys))
			for _, name := range slices.Sorted(maps.Keys(e.keys)) {
				value := scalarText(e.keys[name])
				if !isPlain(name) {
					name = strconv.Quote(name)
				}
				pairs = append(pairs, name+"="+value)
			}
			text.WriteString("[" + strings.Join(pairs, ",") + "]")
		case valueElement:
			text.WriteString("[=" + scalarText(e.value) + "]")
		case indexElement:
			text.WriteString("[" + strconv.Itoa(e.index) + "]")
		case anyElement:
			text.WriteString("[*]")
		}
	}
	return text.String()
}

// isFreeForm reports whether the path is that of labels or annotations: maps whose keys usually contain dots, and whose
// values are strings.
func (p FieldPath) isFreeForm() bool {
	if len(p) < 2 {
		return false
	}
	parent, e := p[len(p)-2], p[len(p)-1]
	return parent.kind == fieldElement && parent.name == "metadata" &&
		e.kind == fieldElement && (e.name == "labels" || e.name == "annotations")
}

// isPlain reports whether a name needs no quotes. A name that begins with an asterisk needs quotes, because [*] matches
// all items.
func isPlain(name string) bool {
	return name != "" && name[0] != '*' && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r == '.' || !isPlainRune(r)
	})
}

func isPlainRune(r rune) bool {
	return r != utf8.RuneError && unicode.IsGraphic(r) && !unicode.IsSpace(r) && !strings.ContainsRune(`[]"=,`, r)
}

// scalar returns a string, number or boolean in a form in which equal values compare equal: integers of all types
// become int64. For any other value, it returns nil.
func scalar(value any) any {
	switch v := value.(type) {
	case string, bool, int64:
		return v
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case float64:
		const exact = 1 << 53 // up to here a float64 has every whole number
		switch {
		case v == math.Trunc(v) && math.Abs(v) <= exact:
			return int64(v)
		case !math.IsNaN(v) && !math.IsInf(v, 0):
			return v
		}
	}
	return nil
}

func scalarText(value any) string {
	switch v := value.(type) {
	case string:
		return strconv.Quote(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return "null"
}
