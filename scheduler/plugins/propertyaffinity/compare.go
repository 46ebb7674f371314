package propertyaffinity

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// test reports whether the value of a property matches.
type test func(value string) comparison

type comparison int

const (
	match comparison = iota
	mismatch
	unreadable // the value cannot be parsed as the required type
)

// newTest compiles a requirement, except for its result for clusters without the property.
func newTest(spec *v1alpha1.PropertyRequirement, path *field.Path) (test, error) {
	values, fewest, most := path.Child("values"), 1, 1
	switch spec.Operator {
	case v1alpha1.PropertyExists, v1alpha1.PropertyDoesNotExist:
		fewest, most = 0, 0
	case v1alpha1.PropertyIn, v1alpha1.PropertyNotIn:
		most = len(spec.Values)
	default:
		if signs[spec.Operator] == "" {
			return nil, fmt.Errorf("%s: operator %q is not supported", path.Child("operator"), spec.Operator)
		}
	}
	if n := len(spec.Values); n < fewest || n > most {
		return nil, fmt.Errorf("%s: operator %s does not allow this number of values: %d", values, spec.Operator, n)
	}
	if spec.Operator == v1alpha1.PropertyExists {
		return func(string) comparison { return match }, nil
	}
	if spec.Operator == v1alpha1.PropertyDoesNotExist {
		return func(string) comparison { return mismatch }, nil
	}
	switch spec.ValueType() {
	case v1alpha1.PropertyQuantity:
		return testOf(spec, v1alpha1.ParseQuantity, compareQuantities, values)
	case v1alpha1.PropertyVersion:
		return testOf(spec, v1alpha1.ParseVersion, CompareVersions, values)
	case v1alpha1.PropertyString:
		switch spec.Operator {
		case v1alpha1.PropertyGt, v1alpha1.PropertyGe, v1alpha1.PropertyLt, v1alpha1.PropertyLe:
			return nil, fmt.Errorf("%s: %q has no order, which the operator %s requires", values.Index(0), spec.Values[0],
				spec.Operator)
		}
		return testOf(spec, asIs, strings.Compare, values)
	default:
		return nil, fmt.Errorf("%s: type %q is not supported", path.Child("type"), spec.Type)
	}
}

func asIs(value string) (string, error) { return value, nil }

// testOf returns a test that compares with values of one type. It parses the values once.
func testOf[T any](spec *v1alpha1.PropertyRequirement, parse func(string) (T, error), compare func(a, b T) int,
	path *field.Path) (test, error) {
	values := make([]T, len(spec.Values))
	for i, text := range spec.Values {
		var err error
		if values[i], err = parse(text); err != nil {
			return nil, fmt.Errorf("%s: %w", path.Index(i), err)
		}
	}
	holds := operators[spec.Operator]
	return func(text string) comparison {
		value, err := parse(text)
		if err != nil {
			return unreadable
		}
		found := slices.ContainsFunc(values, func(other T) bool { return holds.of(compare(value, other)) })
		if found == holds.wanted {
			return match
		}
		return mismatch
	}, nil
}

// operators define each operator. The function of reports whether the order of the property's value and an operand
// counts as found. Wanted is the result of the search for which the requirement matches.
var operators = map[v1alpha1.PropertyOperator]struct {
	of     func(order int) bool
	wanted bool
}{
	v1alpha1.PropertyGt:    {func(order int) bool { return order > 0 }, true},
	v1alpha1.PropertyGe:    {func(order int) bool { return order >= 0 }, true},
	v1alpha1.PropertyLt:    {func(order int) bool { return order < 0 }, true},
	v1alpha1.PropertyLe:    {func(order int) bool { return order <= 0 }, true},
	v1alpha1.PropertyEq:    {equal, true},
	v1alpha1.PropertyIn:    {equal, true},
	v1alpha1.PropertyNe:    {equal, false},
	v1alpha1.PropertyNotIn: {equal, false},
}

func equal(order int) bool { return order == 0 }

func compareQuantities(a, b resource.Quantity) int { return a.Cmp(b) }
