package celaffinity

import (
	"fmt"
	"math"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler/plugins/propertyaffinity"
)

// kind is a type of ordered values that are parsed from text.
type kind struct {
	is *types.Type
	// from and test are the names of the functions that parse a text and that report whether a text is valid.
	from, test string
	parse      func(text string) (any, error)
	compare    func(a, b any) int
}

var (
	quantities = &kind{
		is: types.NewObjectType("kubernetes.Quantity", traits.ComparerType), from: "quantity", test: "isQuantity",
		parse: func(text string) (any, error) { return v1alpha1.ParseQuantity(text) },
		compare: func(a, b any) int {
			x, y := a.(resource.Quantity), b.(resource.Quantity)
			return x.Cmp(y)
		},
	}
	versions = &kind{
		is: types.NewObjectType("kubernetes.Semver", traits.ComparerType), from: "semver", test: "isSemver",
		parse: func(text string) (any, error) { return v1alpha1.ParseVersion(text) },
		compare: func(a, b any) int {
			return propertyaffinity.CompareVersions(a.(*version.Version), b.(*version.Version))
		},
	}
)

// functions returns the CEL functions of the kind.
func (k *kind) functions() []cel.EnvOption {
	text, two := []*cel.Type{cel.StringType}, []*cel.Type{k.is, k.is}
	out := []cel.EnvOption{
		cel.Function(k.from, cel.Overload("string_to_"+k.from, text, k.is, cel.UnaryBinding(k.fromText))),
		cel.Function(k.test,
			cel.Overload("string_is_"+k.from, text, cel.BoolType, cel.UnaryBinding(func(arg ref.Val) ref.Val {
				return types.Bool(!types.IsError(k.fromText(arg)))
			}))),
	}
	member := func(name string, result *cel.Type, of func(order types.Int) ref.Val) {
		out = append(out,
			cel.Function(name, cel.MemberOverload(k.from+"_"+name, two, result, cel.BinaryBinding(func(a, b ref.Val) ref.Val {
				x, is := a.(value)
				if !is {
					return types.MaybeNoSuchOverloadErr(a)
				}
				order := x.Compare(b)
				if order, is := order.(types.Int); is {
					return of(order)
				}
				return order
			}))))
	}
	member("isLessThan", cel.BoolType, func(order types.Int) ref.Val { return types.Bool(order < 0) })
	member("isGreaterThan", cel.BoolType, func(order types.Int) ref.Val { return types.Bool(order > 0) })
	member("compareTo", cel.IntType, func(order types.Int) ref.Val { return order })
	// CEL implements these operators by calling Compare.
	for _, operator := range []string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals} {
		out = append(out, cel.Function(operator, cel.Overload(k.from+operator, two, cel.BoolType)))
	}
	return out
}

func (k *kind) fromText(arg ref.Val) ref.Val {
	text, is := arg.(types.String)
	if !is {
		return types.MaybeNoSuchOverloadErr(arg)
	}
	native, err := k.parse(string(text))
	if err != nil {
		return types.WrapErr(err)
	}
	return value{k, native}
}

// parseCosts returns cost trackers for the parsing functions. Their cost is proportional to the length of the text.
func parseCosts() []interpreter.CostTrackerOption {
	var out []interpreter.CostTrackerOption
	for _, kind := range []*kind{quantities, versions} {
		for _, overload := range []string{"string_to_" + kind.from, "string_is_" + kind.from} {
			out = append(out, interpreter.OverloadCostTracker(overload, func(args []ref.Val, _ ref.Val) *uint64 {
				text, _ := args[0].(types.String)
				return new(1 + uint64(math.Ceil(float64(len(text))*common.StringTraversalCostFactor)))
			}))
		}
	}
	return out
}

// value is a quantity or a version.
type value struct {
	kind   *kind
	native any
}

var _ traits.Comparer = value{}

func (v value) Compare(other ref.Val) ref.Val {
	o, is := other.(value)
	if !is || o.kind != v.kind {
		return types.MaybeNoSuchOverloadErr(other)
	}
	switch order := v.kind.compare(v.native, o.native); {
	case order < 0:
		return types.IntNegOne
	case order > 0:
		return types.IntOne
	default:
		return types.IntZero
	}
}

func (v value) Equal(other ref.Val) ref.Val { return types.Bool(v.Compare(other) == types.IntZero) }

func (v value) ConvertToNative(to reflect.Type) (any, error) {
	if reflect.TypeOf(v.native).AssignableTo(to) {
		return v.native, nil
	}
	return nil, fmt.Errorf("%s cannot become %s", v.kind.is, to)
}

func (v value) ConvertToType(to ref.Type) ref.Val { return convert(v, to) }

func (v value) Type() ref.Type { return v.kind.is }

func (v value) Value() any { return v.native }

func asFloat(arg ref.Val) ref.Val {
	quantity, is := arg.Value().(resource.Quantity)
	if !is {
		return types.MaybeNoSuchOverloadErr(arg)
	}
	return types.Double(quantity.AsApproximateFloat64())
}
