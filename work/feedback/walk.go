package feedback

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/util/jsonpath"
)

// maxVisits is the maximum number of values that an evaluation visits. It suffices for lists of tens of thousands of
// items, with a filter.
const maxVisits = 100_000

// walk is one evaluation of a path for an object.
type walk struct{ visits int }

// along returns the values that a path selects in some values. A missing field selects nothing.
func (w *walk) along(nodes []jsonpath.Node, from []any) ([]any, error) {
	for _, node := range nodes {
		var to []any
		for _, value := range from {
			found, err := w.step(node, value)
			if err != nil {
				return nil, err
			}
			to = append(to, found...)
			if w.visits += 1 + len(found); w.visits > maxVisits {
				return nil, fmt.Errorf("the evaluation visits more than %d values", maxVisits)
			}
		}
		from = to
	}
	return from, nil
}

func (w *walk) step(node jsonpath.Node, value any) ([]any, error) {
	fields, _ := value.(map[string]any)
	items, _ := value.([]any)
	switch node := node.(type) {
	case *jsonpath.FieldNode:
		if field, is := fields[node.Value]; is {
			return []any{field}, nil
		}
	case *jsonpath.ArrayNode:
		return slice(items, node.Params), nil
	case *jsonpath.WildcardNode:
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			items = append(items, fields[name])
		}
		return items, nil
	case *jsonpath.UnionNode:
		var all []any
		for _, member := range node.Nodes {
			found, err := w.along(member.Nodes, []any{value})
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
		return all, nil
	case *jsonpath.FilterNode:
		return w.filter(node, items)
	}
	return nil, nil
}

func (w *walk) filter(filter *jsonpath.FilterNode, items []any) ([]any, error) {
	var passed []any
	for _, item := range items {
		left, err := w.operand(filter.Left, item)
		if err != nil {
			return nil, err
		}
		if filter.Operator == exists {
			if len(left) > 0 {
				passed = append(passed, item)
			}
			continue
		}
		right, err := w.operand(filter.Right, item)
		switch {
		case err != nil:
			return nil, err
		case len(left) > 1 || len(right) > 1:
			return nil, errors.New("each side of a filter must select a single value")
		case len(left) == 1 && len(right) == 1 && holds(left[0], filter.Operator, right[0]):
			passed = append(passed, item)
		}
	}
	return passed, nil
}

func (w *walk) operand(operand *jsonpath.ListNode, item any) ([]any, error) {
	if value, is := literal(operand.Nodes); is {
		w.visits++
		return []any{value}, nil
	}
	return w.along(operand.Nodes, []any{item})
}

// slice returns the items of [index] or [start:end:step]. Negative numbers count from the end. Indexes beyond the
// list select nothing.
func slice(items []any, params [3]jsonpath.ParamsEntry) []any {
	length := len(items)
	place := func(param jsonpath.ParamsEntry, otherwise int) int {
		switch {
		case !param.Known:
			return otherwise
		case param.Value < 0:
			return param.Value + length
		default:
			return param.Value
		}
	}
	start := place(params[0], 0)
	if params[1].Derived { // one index
		if start < 0 || start >= length {
			return nil
		}
		return items[start : start+1]
	}
	start, end := max(start, 0), min(place(params[1], length), length)
	step := 1
	if params[2].Known {
		step = min(params[2].Value, length) // prevents an overflow
	}
	var out []any
	for i := start; i < end; i += step {
		out = append(out, items[i])
	}
	return out
}

// holds compares two scalars. Numbers are compared by value, whether integer or float. Values of different types, and
// values without an order, are only unequal.
func holds(left any, operator string, right any) bool {
	order, ordered := compare(left, right)
	switch operator {
	case "==":
		return ordered && order == 0
	case "!=":
		return !ordered || order != 0
	case "<":
		return ordered && order < 0
	case "<=":
		return ordered && order <= 0
	case ">":
		return ordered && order > 0
	default:
		return ordered && order >= 0
	}
}

func compare(left, right any) (order int, ordered bool) {
	switch l := left.(type) {
	case string:
		r, is := right.(string)
		return cmp.Compare(l, r), is
	case int64:
		if r, is := right.(int64); is {
			return cmp.Compare(l, r), true
		}
		r, is := right.(float64)
		return cmp.Compare(float64(l), r), is
	case float64:
		if r, is := right.(int64); is {
			return cmp.Compare(l, float64(r)), true
		}
		r, is := right.(float64)
		return cmp.Compare(l, r), is
	case bool:
		r, is := right.(bool)
		return cmp.Compare(fmt.Sprint(l), fmt.Sprint(r)), is // false before true
	}
	return 0, false
}
