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

// text is that of an object, and where its number of replicas is. A number is put into the text: with overrides each
// cluster can have another one, and to decode and encode them all would take several times as long.
type text struct {
	object bundle.Object
	spec   []byte                  // a map
	number string                  // that is at spec.replicas; empty: nothing is there
	made   map[int32]bundle.Object // of it, by their replicas
}

var (
	errNotMap   = errors.New("must be a map")
	errNotWhole = errors.New("must be a whole number")
	errRange    = fmt.Errorf("must be from 0 to %d", math.MaxInt32)
)

// open fails where there cannot be a spec.replicas. A spec that is null, or not there, is empty.
func open(o *bundle.Object) (*text, error) {
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

// replicas returns the number, or why that is not what it must be.
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

// says is true if there are so many replicas already.
func (t *text) says(n int32) bool { return t.number == strconv.Itoa(int(n)) }

// with is the object with so many replicas: to the byte what [bundle.Of] makes of that, and the object itself if it
// says so.
func (t *text) with(n int32) bundle.Object {
	if t.says(n) {
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

// span is where in a text a field's value is, or if there is no such field, where that has to be put.
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

// locate finds a field in the text of a map as a [bundle.Object] has it: in order and without spaces.
func locate(text []byte, name string) span {
	i := min(1, len(text))
	for i < len(text) && text[i] == '"' {
		colon := skip(text, i)
		if colon >= len(text) {
			break
		}
		end := skip(text, colon+1)
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

// skip returns where the value ends that begins there.
func skip(text []byte, i int) int {
	for level := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++ // what is escaped ends no string
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

// unquote returns what a field is called. Fields are in the order of their names, not of how these are written.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var name string
	_ = json.Unmarshal(quoted, &name) // invalid text is no name of a field
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
