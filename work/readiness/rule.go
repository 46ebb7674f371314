package readiness

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxRuleLength is the maximum number of characters of an expression, as in the API.
const maxRuleLength = 2048

// CostLimit is the maximum cost of a rule for one object: a hundredth of the limit of one expression that validates a
// request in Kubernetes (PerCallLimit in k8s.io/apiserver/pkg/apis/cel), because readiness is evaluated at every
// change of every object.
//
// Reading a field costs 1, and so do most calls. Iterating over a list or a string costs in proportion to its length.
// Typical rules cost from 5 to 50, and a rule can visit each item of a list of a thousand. There is no deadline, so
// the result never depends on the load of the machine.
const CostLimit = 10_000

// Rule is a compiled rule. It is immutable, and may be used concurrently.
type Rule struct {
	expression string // on one line, for messages
	program    cel.Program
}

// CompileCEL compiles an expression over the variable object that is true when the object is ready. An error
// describes the first problem and its position on one line.
//
// The standard functions of CEL and its optional types are available. To read a field that may not exist, write
// has(object.status.phase) or object.?status.?phase.orValue(""). The current time is not available.
func CompileCEL(expression string) (*Rule, error) {
	if length := utf8.RuneCountInString(expression); length > maxRuleLength {
		return nil, fmt.Errorf("must have at most %d characters, got %d", maxRuleLength, length)
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if problems := issues.Errors(); len(problems) > 0 {
		first := problems[0]
		if first.Location.Line() < 1 { // the problem concerns the whole expression
			return nil, errors.New(bounded(first.Message))
		}
		return nil, fmt.Errorf("line %d, column %d: %s", first.Location.Line(), first.Location.Column()+1,
			bounded(first.Message))
	}
	// The types of most fields are unknown at compile time.
	if is := ast.OutputType(); !is.IsExactType(types.BoolType) && !is.IsExactType(types.DynType) {
		return nil, fmt.Errorf("must be true or false, but is of type %s", is)
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(CostLimit), cel.CostTracking(costs{}),
		cel.CustomDecoratorV2(guardComparison))
	if err != nil {
		return nil, errors.New(bounded(err.Error()))
	}
	return &Rule{strings.Join(strings.Fields(expression), " "), program}, nil
}

// environment returns the CEL environment of rules. It is created once, immutable and shared by all rules.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("object", cel.MapType(cel.StringType, cel.DynType)),
		cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		cel.ASTValidators(cel.ValidateRegexLiterals()),
	)
})

// Assess evaluates the rule for the object. While the rule is false or cannot be evaluated, the object is
// Progressing. Ends and Complete depend on the kind of the object, regardless of the rule.
//
// A rule can read the keys of a Secret but not its values, so no value can appear in a message.
func (r *Rule) Assess(object *unstructured.Unstructured) Result {
	return assess(object, func(object *unstructured.Unstructured) (Result, error) {
		result := Result{Status: Progressing, Ends: ends(object)}
		if result.Ends {
			result.Complete = Registry(nil).Assess(object).Complete
		}
		answer, _, err := r.program.Eval(map[string]any{"object": withoutSecrets(object)})
		switch {
		case errors.As(err, &interpreter.EvalCancelledError{}):
			result.Message = fmt.Sprintf("the readiness rule exceeds the cost limit of %d: %s", CostLimit, r.expression)
		case err != nil:
			result.Message = fmt.Sprintf("the readiness rule cannot be evaluated: %.100s, in %s", err.Error(), r.expression)
		case answer == types.True:
			result.Status, result.Message = Ready, "the readiness rule is true"
		case answer == types.False:
			result.Message = "the readiness rule is false: " + r.expression
		default:
			result.Message = fmt.Sprintf("the readiness rule must return true or false, but returned type %s: %s",
				answer.Type().TypeName(), r.expression)
		}
		return result, nil
	})
}

// withoutSecrets returns the object, for a Secret without values. It also blanks the annotations, because kubectl may
// store the whole Secret in one.
func withoutSecrets(object *unstructured.Unstructured) map[string]any {
	if object.GetKind() != "Secret" {
		return object.Object
	}
	out := maps.Clone(object.Object)
	for _, field := range []string{"data", "stringData"} {
		blankValues(out, field)
	}
	if metadata, is := out["metadata"].(map[string]any); is {
		metadata = maps.Clone(metadata)
		blankValues(metadata, "annotations")
		out["metadata"] = metadata
	}
	return out
}

func blankValues(in map[string]any, field string) {
	if _, set := in[field]; !set {
		return
	}
	values, _ := in[field].(map[string]any)
	blanks := make(map[string]any, len(values))
	for key := range values {
		blanks[key] = ""
	}
	in[field] = blanks
}
