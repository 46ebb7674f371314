package readiness

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// costs computes the costs of calls. The costs of CEL itself require that the types are known at compile time. The
// types of an object are unknown, so a + b would always cost 1, regardless of the length of the strings.
type costs struct{}

// perUnit is the number of characters or items that a cost of 1 covers, as in CEL.
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

// maxWeight is a weight that exceeds the cost limit of every rule.
const maxWeight = CostLimit * perUnit

// weight returns how many values have to be visited to determine whether b equals a, or contains it; at most maxWeight.
// Two values differ at the latest at the end of the smaller one, so weight does not visit the larger one to its end
// either.
func weight(function string, a, b ref.Val) uint64 {
	for budget := uint64(perUnit); ; budget = min(perUnit*budget, maxWeight) {
		spare := remainingBudget(b, budget)
		if function != operators.In {
			spare = max(spare, remainingBudget(a, budget))
		}
		if spare > 0 || budget == maxWeight {
			return budget - spare
		}
	}
}

// remainingBudget returns the rest of a budget after all of a value has been visited.
func remainingBudget(value ref.Val, budget uint64) uint64 {
	budget -= min(budget, 1+size(value))
	if budget == 0 {
		return 0 // starting to iterate over a map takes time in proportion to its size
	}
	switch v := value.(type) {
	case traits.Mapper:
		for it := v.Iterator(); budget > 0 && it.HasNext() == types.True; {
			budget = remainingBudget(v.Get(it.Next()), budget)
		}
	case traits.Lister:
		for it := v.Iterator(); budget > 0 && it.HasNext() == types.True; {
			budget = remainingBudget(it.Next(), budget)
		}
	case *types.Optional:
		if v.HasValue() {
			return remainingBudget(v.GetValue(), budget)
		}
	}
	return budget
}

// guardComparison computes the weight of a comparison before it is evaluated. CEL computes the cost of a call only
// afterwards. A list that contains the same list twice, which contains the same list twice, and so on, takes
// practically forever to compare with itself.
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
	if weight(c.Function(), a, b) == maxWeight {
		// CEL panics with the same error when the cost limit is exceeded.
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded,
			Message: "the comparison exceeds the cost limit"})
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
