package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// ParseFieldPath parses a path in the form of [FieldPath]. The error names the position, in bytes from 0, and the
// expected input.
func ParseFieldPath(text string) (FieldPath, error) {
	p := pathParser{text: text}
	var path FieldPath
	for p.at < len(text) {
		e, err := p.element(path)
		if err != nil {
			return nil, fmt.Errorf("field path %q, position %d: %w", text, p.at, err)
		}
		path = append(path, e)
	}
	if len(path) == 0 {
		return nil, fmt.Errorf("field path %q is empty: it begins with a field, such as .spec", text)
	}
	return path, nil
}

type pathParser struct {
	text string
	at   int
}

func (p *pathParser) element(parent FieldPath) (element, error) {
	switch {
	case p.take("."):
		name := p.plain(parent.isFreeForm())
		if name == "" {
			return element{}, fmt.Errorf(`expected the name of a field; a name with other than plain characters is written ` +
				`["name"], without a dot`)
		}
		return element{kind: fieldElement, name: name}, nil
	case p.take("["):
		return p.bracket()
	}
	return element{}, fmt.Errorf("expected a field such as .spec, or an item such as [0] or [name=\"web\"]")
}

// bracket parses the content of brackets and the closing bracket. The opening bracket is already consumed.
func (p *pathParser) bracket() (e element, err error) {
	switch {
	case p.take("*"):
		e.kind = anyElement
	case p.take("="):
		e.kind = valueElement
		e.value, err = p.scalar()
	case p.next() == '"':
		start := p.at
		e.kind = fieldElement
		if e.name, err = p.quoted(); err == nil && p.next() == '=' {
			p.at = start
			return p.keys()
		}
	case p.next() >= '0' && p.next() <= '9' && !strings.Contains(p.plainAhead(), "="):
		e.kind = indexElement
		e.index, err = p.number()
	default:
		return p.keys()
	}
	if err != nil {
		return element{}, err
	}
	return e, p.expect("]")
}

func (p *pathParser) keys() (element, error) {
	e := element{kind: keyElement, keys: map[string]any{}}
	for {
		name, err := p.keyName()
		if err != nil {
			return element{}, err
		}
		if _, found := e.keys[name]; found {
			return element{}, fmt.Errorf("key %q is there twice", name)
		}
		if !p.take("=") {
			return element{}, fmt.Errorf(`expected "=" and a value behind the key, such as in [name="web"]`)
		}
		if e.keys[name], err = p.scalar(); err != nil {
			return element{}, err
		}
		if !p.take(",") {
			return e, p.expect("]")
		}
	}
}

func (p *pathParser) keyName() (string, error) {
	if p.next() == '"' {
		return p.quoted()
	}
	if name := p.plain(false); name != "" {
		return name, nil
	}
	return "", fmt.Errorf(`expected an index such as 0, a key such as name="web", a value such as ="a", or a field such ` +
		`as "example.com/note"`)
}

// scalar parses a string, number or boolean.
func (p *pathParser) scalar() (any, error) {
	if p.next() == '"' {
		return p.quoted()
	}
	const expected = `expected a string in double quotes, a number, true or false`
	end := strings.IndexAny(p.text[p.at:], ",]")
	if end < 0 {
		return nil, fmt.Errorf("%s, and a closing bracket", expected)
	}
	token := p.text[p.at : p.at+end]
	var value any
	if utiljson.Unmarshal([]byte(token), &value) != nil {
		return nil, fmt.Errorf("%s", expected)
	}
	switch value = scalar(value); value.(type) {
	case int64, float64, bool:
		p.at += end
		return value, nil
	}
	return nil, fmt.Errorf("%s", expected)
}

// quoted parses a string with the quotes and escape sequences of Go, which the API server uses.
func (p *pathParser) quoted() (string, error) {
	prefix, err := strconv.QuotedPrefix(p.text[p.at:])
	if err != nil {
		return "", fmt.Errorf("expected a string in double quotes, with a backslash before a quote or backslash within")
	}
	p.at += len(prefix)
	return strconv.Unquote(prefix)
}

func (p *pathParser) number() (int, error) {
	digits := p.plainAhead()
	number, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("expected an index such as 0")
	}
	p.at += len(digits)
	return int(number), nil
}

// plain parses a name without quotes. The name may contain dots only if dots is true.
func (p *pathParser) plain(dots bool) string {
	start := p.at
	p.at += strings.IndexFunc(p.text[start:]+"[", func(r rune) bool { return !isPlainRune(r) || r == '.' && !dots })
	return p.text[start:p.at]
}

// plainAhead returns the text up to the closing bracket, without consuming it.
func (p *pathParser) plainAhead() string {
	ahead, _, _ := strings.Cut(p.text[p.at:], "]")
	return ahead
}

// next returns the next byte without consuming it, or 0 at the end of the text.
func (p *pathParser) next() byte {
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *pathParser) take(what string) bool {
	found := strings.HasPrefix(p.text[p.at:], what)
	if found {
		p.at += len(what)
	}
	return found
}

func (p *pathParser) expect(what string) error {
	if p.take(what) {
		return nil
	}
	return fmt.Errorf("expected %q", what)
}
