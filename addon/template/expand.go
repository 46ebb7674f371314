package template

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Why a variable cannot be expanded. Errors wrap them.
var (
	ErrSyntax   = errors.New("a variable is ${NAME}, of letters, digits and '_', not beginning with a digit; as text ${ is $${")
	ErrUnknown  = errors.New("there is no such variable: no AddonConfig that counts sets it")
	ErrBuiltIn  = errors.New("the variable is built in, and no AddonConfig can set it")
	ErrTooLarge = fmt.Errorf("all strings with variables would have more than %d bytes", workv1alpha1.MaxManifestBytes)
)

var errEmpty = errors.New("it would be empty, and select all")

// start is what makes text a variable.
const start = "${"

// expander puts the values of variables into strings.
type expander struct {
	values map[string]string
	room   *int // how many bytes may still be made
}

// installedIn is one for what goes to another cluster, where the add-on is in that namespace. They share the room.
func (e *expander) installedIn(namespace string) *expander {
	values := maps.Clone(e.values)
	values[installNamespace] = namespace
	return &expander{values, e.room}
}

// installNamespace is the variable of that name.
const installNamespace = "INSTALL_NAMESPACE"

func newExpander(in Input) (*expander, error) {
	builtIn := map[string]string{"CLUSTER_NAME": in.Cluster, "ADDON_NAME": in.Addon, installNamespace: in.InstallNamespace}
	e := &expander{values: maps.Clone(builtIn), room: new(workv1alpha1.MaxManifestBytes)}
	for _, name := range slices.Sorted(maps.Keys(builtIn)) {
		if builtIn[name] == "" {
			return nil, fmt.Errorf("render a template: there is no %s", name)
		}
		if _, set := in.Settings.Variables[name]; set {
			return nil, fmt.Errorf("%s: %w", name, ErrBuiltIn)
		}
	}
	maps.Copy(e.values, in.Settings.Variables)
	return e, nil
}

// expand returns the text with the values of its variables.
func (e *expander) expand(text string) (string, error) {
	if !strings.Contains(text, start) {
		return text, nil
	}
	var out strings.Builder
	for rest := text; ; {
		before, after, found := strings.Cut(rest, start)
		if !found {
			out.WriteString(rest)
			break
		}
		plain := strings.TrimRight(before, "$")
		dollars := len(before) - len(plain) + 1
		out.WriteString(plain + strings.Repeat("$", dollars/2))
		if dollars%2 == 0 {
			out.WriteString(start[1:])
			rest = after
			continue
		}
		name, after, closed := strings.Cut(after, "}")
		if !closed || !isName(name) {
			// The text itself may be secret.
			line := 1 + strings.Count(text[:len(text)-len(rest)+len(before)], "\n")
			return "", fmt.Errorf("line %d: %w", line, ErrSyntax)
		}
		value, known := e.values[name]
		if !known {
			return "", fmt.Errorf("${%s}: %w", name, ErrUnknown)
		}
		if out.Len()+len(value) > *e.room {
			return "", fmt.Errorf("${%s}: %w", name, ErrTooLarge)
		}
		out.WriteString(value)
		rest = after
	}
	if *e.room -= out.Len(); *e.room < 0 {
		return "", ErrTooLarge
	}
	return out.String(), nil
}

func isName(text string) bool {
	for i, c := range []byte(text) {
		switch {
		case c == '_', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case '0' <= c && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return text != ""
}

// located is an error and the field that it is about.
type located struct {
	at  string
	err error
}

func (l *located) within(at workv1alpha1.FieldPath) *located {
	return &located{at.String() + l.at, l.err}
}

// all expands all strings in a value, in place, but for the names of fields. It returns the value, which is another one if it is a string
// itself. Where several fail the error is always the same.
func (e *expander) all(value any) (any, *located) {
	switch value := value.(type) {
	case string:
		expanded, err := e.expand(value)
		if err != nil {
			return nil, &located{"", err}
		}
		return expanded, nil
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			child, err := e.all(value[name])
			if err != nil {
				return nil, err.within(workv1alpha1.FieldPath{}.Field(name))
			}
			value[name] = child
		}
	case []any:
		for i := range value {
			child, err := e.all(value[i])
			if err != nil {
				return nil, err.within(workv1alpha1.FieldPath{}.Index(i))
			}
			value[i] = child
		}
	}
	return value, nil
}

// selector expands what objects are selected by that may have variables.
func (e *expander) selector(s *workv1alpha1.ManifestSelector, at string) error {
	for _, f := range []struct {
		name string
		text *string
	}{{"namespace", &s.Namespace}, {"name", &s.Name}} {
		expanded, err := e.expand(*f.text)
		if err == nil && expanded == "" && *f.text != "" {
			err = errEmpty
		}
		if err != nil {
			return &Error{Field: at + "." + f.name, Err: err}
		}
		*f.text = expanded
	}
	return nil
}
