package override

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-sdk/muster/scheduler"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Causes of an [Error]. Errors wrap them.
var (
	ErrSyntax = errors.New("a variable must be name, labels[\"key\"] or properties[\"name\"] of muster.cluster, " +
		"optionally followed by :- and a default; write $${muster. for the literal text")
	ErrIdentity = errors.New(
		"apiVersion, kind, metadata.name and metadata.namespace are the same for all clusters and cannot have variables")
	ErrNoValue    = errors.New("the cluster has no such value, and the variable has no default")
	ErrTooLarge   = fmt.Errorf("the result would exceed %d bytes", workv1alpha1.MaxManifestBytes)
	ErrTooDeep    = fmt.Errorf("maps and lists would be nested more than %d levels deep", workv1alpha1.MaxManifestDepth)
	ErrNoPath     = errors.New("the path does not exist")
	ErrTestFailed = errors.New("the test failed: the value at the path differs")
)

// start is the text that begins a variable.
const start = "${muster."

// lookup returns the value of a variable, and reports whether the cluster has one.
type lookup func(v variable) (string, bool)

// variable is a variable of a cluster.
type variable struct {
	of       string // name, labels or properties
	name     string // of the label or property
	fallback *string
}

func (v variable) String() string {
	if v.of == "name" {
		return "muster.cluster.name"
	}
	return fmt.Sprintf("muster.cluster.%s[%q]", v.of, v.name)
}

// Expand returns the text with the values of its variables. The error is [ErrSyntax], [ErrNoValue] or [ErrTooLarge],
// and names the variable.
func Expand(text string, cluster *scheduler.Cluster) (string, error) {
	return expand(text, of(cluster), workv1alpha1.MaxManifestBytes)
}

func of(cluster *scheduler.Cluster) lookup {
	return func(v variable) (string, bool) {
		switch v.of {
		case "name":
			return cluster.Name, true
		case "labels":
			value, found := cluster.Labels[v.name]
			return value, found
		default:
			value, found := cluster.Properties[v.name]
			return value, found
		}
	}
}

// expand replaces variables, and adds at most room bytes in total.
func expand(text string, find lookup, room int) (string, error) {
	if !strings.Contains(text, start) {
		return text, nil
	}
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, start)
		if !found {
			out.WriteString(text)
			return out.String(), nil
		}
		plain := strings.TrimRight(before, "$")
		dollars := len(before) - len(plain) + 1
		out.WriteString(plain + strings.Repeat("$", dollars/2))
		if dollars%2 == 0 {
			out.WriteString(start[1:])
			text = after
			continue
		}
		v, rest, err := parse(after)
		if err != nil {
			return "", err
		}
		value, err := v.value(find)
		if err != nil {
			return "", err
		}
		if out.Len()+len(value) > room {
			return "", fmt.Errorf("%s: %w", v, ErrTooLarge)
		}
		out.WriteString(value)
		text = rest
	}
}

// value returns the value of the variable, or its default.
func (v variable) value(find lookup) (string, error) {
	value, found := find(v)
	switch {
	case v.fallback != nil && value == "":
		return *v.fallback, nil
	case !found:
		return "", fmt.Errorf("%s: %w", v, ErrNoValue)
	default:
		return value, nil
	}
}

// parse parses a variable after ${muster. and returns the text that follows the variable.
func parse(text string) (v variable, rest string, err error) {
	wrong := func() (variable, string, error) {
		shown, _, _ := strings.Cut(text, "}")
		return variable{}, "", fmt.Errorf("%s%.100s: %w", start, shown, ErrSyntax)
	}
	rest, found := strings.CutPrefix(text, "cluster.")
	if !found {
		return wrong()
	}
	for _, v.of = range []string{"name", "labels[", "properties["} {
		if rest, found = strings.CutPrefix(rest, v.of); found {
			break
		}
	}
	if !found {
		return wrong()
	}
	if of, isMap := strings.CutSuffix(v.of, "["); isMap {
		v.of = of
		if rest == "" || rest[0] != '"' && rest[0] != '\'' {
			return wrong()
		}
		if v.name, rest, found = strings.Cut(rest[1:], rest[:1]+"]"); !found || v.name == "" {
			return wrong()
		}
	}
	if after, found := strings.CutPrefix(rest, ":-"); found {
		end := strings.IndexAny(after, "{}") // a { in the default is a syntax error: it is not followed by the closing }
		if end < 0 {
			return wrong()
		}
		v.fallback = new(after[:end])
		rest = after[end:]
	}
	if rest, found = strings.CutPrefix(rest, "}"); !found {
		return wrong()
	}
	return v, rest, nil
}

// checkVariables returns an error for variables in the strings of a value that cannot be parsed, independently of a
// cluster.
func checkVariables(value any, at string) error {
	_, err := expandAll(value, func(text string) (string, error) {
		_, err := expand(text, func(variable) (string, bool) { return "", true }, len(text))
		return text, err
	})
	return within(at, err)
}

// expandAll replaces all strings in a value by the result of a function, in place. It returns the value, which is a new
// one if it is a string itself. If several strings fail, the error is always the same one.
func expandAll(value any, expand func(string) (string, error)) (any, error) {
	switch value := value.(type) {
	case string:
		return expand(value)
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			child, err := expandAll(value[name], expand)
			if err != nil {
				return nil, within(workv1alpha1.FieldPath{}.Field(name).String(), err)
			}
			value[name] = child
		}
	case []any:
		for i := range value {
			child, err := expandAll(value[i], expand)
			if err != nil {
				return nil, within(workv1alpha1.FieldPath{}.Index(i).String(), err)
			}
			value[i] = child
		}
	}
	return value, nil
}

// located is an error and the field that it is about.
type located struct {
	at  string
	err error
}

func (l *located) Error() string { return l.at + ": " + l.err.Error() }
func (l *located) Unwrap() error { return l.err }

// within puts a field before that of an error.
func within(at string, err error) error {
	if err == nil {
		return nil
	}
	if inner, isLocated := errors.AsType[*located](err); isLocated {
		return &located{at + inner.at, inner.err}
	}
	return &located{at, err}
}
