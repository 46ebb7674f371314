package readiness

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// costs are those of calls. CEL's own depend on knowing the types when it compiles; of an object it knows none, and
// a + b would cost 1 however long the texts are.
type costs struct{}

// perUnit is how many characters or items a cost of 1 goes through, as in CEL.
const perUnit = 10

func (costs) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	if function == overloads.Matches && len(args) == 2 {
		return new((1 + size(args[0])/perUnit) * (1 + size(args[1])))
	}
	sum := uint64(0)
	for _, arg := range args {
		sum += size(arg)
	}
	if compares(function) && len(args) == 2 {
		sum += weight(function, args[0], args[1])
	}
	return new(1 + sum/perUnit)
}

func size(value ref.Val) uint64 {
	if sized, is := value.(traits.Sizer); is {
		if n, is := sized.Size().(types.Int); is && n > 0 {
			return uint64(n)
		}
	}
	return 0
}

func compares(function string) bool {
	return function == operators.Equals || function == operators.NotEquals || function == operators.In
}

// tooMuch is what no rule can pay for.
const tooMuch = CostLimit * perUnit

// weight is how much there is to go through to find out whether b equals a, or has it, up to what is too much. Two
// values differ no later than where the smaller one ends, so that the greater one is not gone through to its end here
// either.
func weight(function string, a, b ref.Val) uint64 {
	for budget := uint64(perUnit); ; budget = min(perUnit*budget, tooMuch) {
		spare := left(b, budget)
		if function != operators.In {
			spare = max(spare, left(a, budget))
		}
		if spare > 0 || budget == tooMuch {
			return budget - spare
		}
	}
}

// left is what is left of a budget when all of a value has been gone through.
func left(value ref.Val, budget uint64) uint64 {
	budget -= min(budget, 1+size(value))
	if budget == 0 {
		return 0 // to begin with a map takes time in proportion to its size
	}
	switch v := value.(type) {
	case traits.Mapper:
		for it := v.Iterator(); budget > 0 && it.HasNext() == types.True; {
			budget = left(v.Get(it.Next()), budget)
		}
	case traits.Lister:
		for it := v.Iterator(); budget > 0 && it.HasNext() == types.True; {
			budget = left(it.Next(), budget)
		}
	case *types.Optional:
		if v.HasValue() {
			return left(v.GetValue(), budget)
		}
	}
	return budget
}

// guardComparison weighs what is compared before it is: CEL tells the cost of a call when it is over, and a list of
// twice the same list of twice the same list, and so on, compared with itself, is not over in a lifetime.
func guardComparison(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if call, is := step.(interpreter.InterpretableCall); is && compares(call.Function()) && len(call.Args()) == 2 {
		return comparison{call}, nil
	}
	return step, nil
}

type comparison struct{ interpreter.InterpretableCall }

func (c comparison) Eval(activation interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(activation))
}

func (c comparison) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	a, b := c.Args()[0].Exec(frame), c.Args()[1].Exec(frame)
	for _, value := range []ref.Val{a, b} {
		if types.IsUnknownOrError(value) {
			return value
		}
	}
	if weight(c.Function(), a, b) == tooMuch {
		// as CEL does
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: "too much to compare"})
	}
	switch c.Function() {
	case operators.Equals:
		return types.Equal(a, b)
	case operators.NotEquals:
		return types.Bool(types.Equal(a, b) != types.True)
	default:
		container, is := b.(traits.Container)
		if !is {
			return types.MaybeNoSuchOverloadErr(b)
		}
		return container.Contains(a)
	}
}
