package feedback

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/client-go/util/jsonpath"
)

// maxPathLength is the maximum number of characters of a path, as in the API.
const maxPathLength = 512

// Path is a compiled JSONPath. It is immutable, and may be used concurrently.
type Path struct {
	text  string
	nodes []jsonpath.Node
	// public is true if the path selects nothing that must not be reported of a Secret.
	public bool
}

// Compile compiles a path. An error describes why the path is invalid.
func Compile(path string) (compiled *Path, err error) {
	if length := utf8.RuneCountInString(path); length > maxPathLength {
		return nil, fmt.Errorf("must have at most %d characters, got %d", maxPathLength, length)
	}
	defer func() {
		if cause := recover(); cause != nil { // the parser is not ours
			compiled, err = nil, fmt.Errorf("is not a valid JSONPath: %v", cause)
		}
	}()
	parser, err := jsonpath.Parse("feedback", relaxed(path))
	if err != nil {
		return nil, fmt.Errorf("is not a valid JSONPath: %w", err)
	}
	if len(parser.Root.Nodes) != 1 {
		return nil, errors.New("must be a single path without other text")
	}
	nodes := parser.Root.Nodes[0].(*jsonpath.ListNode).Nodes
	if err := checkPath(nodes); err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, errors.New("must name a field")
	}
	return &Path{strings.Join(strings.Fields(path), " "), nodes, public(nodes)}, nil
}

// String returns the path as it was given, with spaces normalized.
func (p *Path) String() string { return p.text }

// relaxed adds the braces and the leading dot that users may omit, as kubectl does.
func relaxed(path string) string {
	path = strings.TrimSpace(path)
	if strings.HasPrefix(path, "{") && strings.HasSuffix(path, "}") {
		path = strings.TrimSpace(path[1 : len(path)-1])
	}
	if !strings.HasPrefix(path, "range ") && (path == "" || !strings.ContainsAny(path[:1], "$@[.")) {
		path = "." + path
	}
	return "{" + path + "}"
}

// checkPath rejects nodes that do not select values within a value.
func checkPath(nodes []jsonpath.Node) error {
	for _, node := range nodes {
		switch node := node.(type) {
		case *jsonpath.FieldNode:
			if node.Value == "" {
				return errors.New("must have a field name after each dot")
			}
		case *jsonpath.ArrayNode:
			if step := node.Params[2]; step.Known && step.Value <= 0 {
				return errors.New("the step of a slice must be greater than 0")
			}
		case *jsonpath.WildcardNode:
		case *jsonpath.UnionNode:
			for _, member := range node.Nodes {
				if err := checkPath(member.Nodes); err != nil {
					return err
				}
			}
		case *jsonpath.FilterNode:
			if err := checkFilter(node); err != nil {
				return err
			}
		case *jsonpath.RecursiveNode:
			return errors.New("recursive descent (..) is not supported: name each field of the path")
		default:
			return fmt.Errorf("%s is not supported in a path", strings.TrimPrefix(node.String(), "Node"))
		}
	}
	return nil
}

func checkFilter(filter *jsonpath.FilterNode) error {
	operands := []*jsonpath.ListNode{filter.Left}
	if filter.Operator != exists {
		if !slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, filter.Operator) {
			return fmt.Errorf("filter operator %q is not supported: use ==, !=, <, <=, > or >=", filter.Operator)
		}
		operands = append(operands, filter.Right)
	}
	for _, operand := range operands {
		if _, is := literal(operand.Nodes); is {
			continue
		}
		if err := checkPath(operand.Nodes); err != nil {
			return err
		}
	}
	return nil
}

// exists is the operator that the parser sets for a filter without an operator.
const exists = "exists"

// literal returns the value of an operand of a filter, if the operand is not a path.
func literal(nodes []jsonpath.Node) (value any, is bool) {
	if len(nodes) != 1 {
		return nil, false
	}
	switch node := nodes[0].(type) {
	case *jsonpath.TextNode:
		return node.Text, true
	case *jsonpath.IntNode:
		return int64(node.Value), true
	case *jsonpath.FloatNode:
		return node.Value, true
	case *jsonpath.BoolNode:
		return node.Value, true
	}
	return nil, false
}

// public reports whether a path begins with fields that are safe to report even of a Secret. It is an allowlist,
// because fields other than data are not safe either: annotations may contain copies of the data, and managed fields
// its keys.
func public(nodes []jsonpath.Node) bool {
	field := func(i int, names ...string) bool {
		if i >= len(nodes) {
			return false
		}
		node, is := nodes[i].(*jsonpath.FieldNode)
		return is && slices.Contains(names, node.Value)
	}
	return field(0, "apiVersion", "kind", "type", "immutable") ||
		field(0, "metadata") && field(1, "name", "namespace", "uid", "labels", "generation", "resourceVersion",
			"creationTimestamp", "deletionTimestamp")
}
