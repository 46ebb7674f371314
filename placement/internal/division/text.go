package division

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/muster-sdk/muster/placement/bundle"
)

// text is the text of an object, and the position of its number of replicas. Numbers are inserted into the text: with
// overrides each cluster can have a different one, and decoding and encoding all objects would take several times as
// long.
type text struct {
	object bundle.Object
	spec   []byte                  // a JSON map
	number string                  // the text at spec.replicas; empty: there is none
	made   map[int32]bundle.Object // the resulting objects, by number of replicas
}

var (
	errNotMap   = errors.New("must be a map")
	errNotWhole = errors.New("must be a whole number")
	errRange    = fmt.Errorf("must be from 0 to %d", math.MaxInt32)
)

// parseReplicas returns an error if the object cannot have spec.replicas. A spec that is null or missing is empty.
func parseReplicas(o *bundle.Object) (*text, error) {
	t := &text{object: *o, spec: locate(o.JSON, "spec").value(o.JSON)}
	switch {
	case isNull(t.spec):
		t.spec = []byte("{}")
	case t.spec[0] != '{':
		return nil, errNotMap
	}
	if number := locate(t.spec, "replicas").value(t.spec); !isNull(number) {
		t.number = string(number)
	}
	return t, nil
}

func isNull(value []byte) bool { return len(value) == 0 || string(value) == "null" }

// replicas returns the number, or an error if it is invalid.
func (t *text) replicas() (int32, error) {
	value, err := strconv.ParseInt(t.number, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return 0, errNotWhole
	case err != nil || value < 0 || value > math.MaxInt32:
		return 0, errRange
	}
	return int32(value), nil
}

// hasNumber reports whether the object already has this number.
func (t *text) hasNumber(n int32) bool { return t.number == strconv.Itoa(int(n)) }

// with returns the object with n replicas. Its text is identical to the result of [bundle.Of]. If the object has n
// replicas already, with returns the object itself.
func (t *text) with(n int32) bundle.Object {
	if t.hasNumber(n) {
		return t.object
	}
	if made, found := t.made[n]; found {
		return made
	}
	out := set(t.object.JSON, "spec", set(t.spec, "replicas", strconv.AppendInt(nil, int64(n), 10)))
	if t.made == nil {
		t.made = make(map[int32]bundle.Object, 1)
	}
	made := bundle.Object{ResourceIdentifier: t.object.ResourceIdentifier, JSON: out, Hash: sha256.Sum256(out)}
	t.made[n] = made
	return made
}

// span is the position of a field's value in a text. If the field does not exist, it is the position at which it must
// be inserted.
type span struct {
	start, end int
	found      bool
}

func (s span) value(text []byte) []byte {
	if !s.found {
		return nil
	}
	return text[s.start:s.end]
}

// locate finds a field in the text of a map as in a [bundle.Object]: sorted, and without spaces.
func locate(text []byte, name string) span {
	i := min(1, len(text))
	for i < len(text) && text[i] == '"' {
		colon := skipValue(text, i)
		if colon >= len(text) {
			break
		}
		end := skipValue(text, colon+1)
		switch order := bytes.Compare(unquote(text[i:colon]), []byte(name)); {
		case order == 0:
			return span{colon + 1, end, true}
		case order > 0:
			return span{i, i, false}
		}
		if i = end; i < len(text) && text[i] == ',' {
			i++
		}
	}
	return span{i, i, false}
}

// skipValue returns the end of the value that begins at i.
func skipValue(text []byte, i int) int {
	for level := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++ // an escaped character does not end a string
				}
			}
		case '{', '[':
			level++
			continue
		case '}', ']':
			if level == 0 {
				return i
			}
			level--
		case ',':
			if level == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if level == 0 {
			return min(i+1, len(text))
		}
	}
	return len(text)
}

// unquote returns the name of a field. Fields are sorted by their names, not by the escaped form of these.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var name string
	_ = json.Unmarshal(quoted, &name) // invalid text is not the name of a field
	return []byte(name)
}

// set returns the text of a map with a field set.
func set(text []byte, name string, value []byte) []byte {
	at := locate(text, name)
	if at.found {
		return slices.Concat(text[:at.start], value, text[at.end:])
	}
	entry := slices.Concat([]byte(`"`+name+`":`), value)
	switch {
	case text[at.start] != '}':
		entry = append(entry, ',')
	case at.start > 1:
		entry = append([]byte(","), entry...)
	}
	return slices.Concat(text[:at.start], entry, text[at.start:])
}
