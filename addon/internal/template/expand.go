package template

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Errors of variables. The errors of [Render] wrap them.
var (
	ErrSyntax = errors.New("a variable is ${NAME}, of letters, digits and '_', not beginning with a digit; as " +
		"text ${ is $${")
	ErrUnknown  = errors.New("the variable does not exist: no applicable AddonConfig sets it")
	ErrBuiltIn  = errors.New("the variable is built in, and an AddonConfig cannot set it")
	ErrTooLarge = fmt.Errorf("the strings with variables must be at most %d bytes long in total",
		workv1alpha1.MaxManifestBytes)
)

var errEmpty = errors.New("the value is empty, which would select all objects")

// start begins a variable.
const start = "${"

// expander replaces variables in strings.
type expander struct {
	values map[string]string
	room   *int // the remaining bytes for results
}

// installedIn returns an expander for another cluster with its install namespace. Both share the remaining bytes.
func (e *expander) installedIn(namespace string) *expander {
	values := maps.Clone(e.values)
	values[installNamespace] = namespace
	return &expander{values, e.room}
}

// installNamespace is the name of the variable with the install namespace.
const installNamespace = "INSTALL_NAMESPACE"

func newExpander(in Input) (*expander, error) {
	builtIn := map[string]string{"CLUSTER_NAME": in.Cluster, "ADDON_NAME": in.Addon, installNamespace: in.InstallNamespace}
	e := &expander{values: maps.Clone(builtIn), room: new(workv1alpha1.MaxManifestBytes)}
	for _, name := range slices.Sorted(maps.Keys(builtIn)) {
		if builtIn[name] == "" {
			return nil, fmt.Errorf("render a template: %s is empty", name)
		}
		if _, set := in.Settings.Variables[name]; set {
			return nil, fmt.Errorf("%s: %w", name, ErrBuiltIn)
		}
	}
	maps.Copy(e.values, in.Settings.Variables)
	return e, nil
}

// expand replaces the variables of a string.
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
			// The message contains only the line, since the text may be secret.
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

// located is an error with its field.
type located struct {
	at  string
	err error
}

func (l *located) within(at workv1alpha1.FieldPath) *located {
	return &located{at.String() + l.at, l.err}
}

// all replaces the variables in all strings of a value, in place, except field names. It returns the value, which is a
// new one if it is a string. If several replacements fail, the returned error is deterministic.
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

// selector replaces the variables in the selector of an option.
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
