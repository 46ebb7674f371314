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

// MaxRuleLength is how many characters an expression may have, as in the API.
const MaxRuleLength = 2048

// CostLimit is the cost that a rule may have for one object: a hundredth of what Kubernetes lets one expression cost
// that validates a request (PerCallLimit in k8s.io/apiserver/pkg/apis/cel), since readiness is asked for at every
// change of every object.
//
// To read a field costs 1, and so do most calls; to go through a list or a text costs in proportion to it. What people
// ask costs from 5 to 50, and a look at each item of a list of a thousand fits. There is no deadline beside it, so that
// an answer never depends on how busy the machine is.
const CostLimit = 10_000

// Rule is a compiled rule. It does not change, and may be used concurrently.
type Rule struct {
	expression string // on one line, for messages
	program    cel.Program
}

// CompileCEL compiles an expression over the variable object that is true when the object is ready. An error says on
// one line what is wrong, and where.
//
// There is what every CEL has, and its optional types. To ask for a field that may not be there, write
// has(object.status.phase) or object.?status.?phase.orValue(""). A time of day is not to be had.
func CompileCEL(expression string) (*Rule, error) {
	if length := utf8.RuneCountInString(expression); length > MaxRuleLength {
		return nil, fmt.Errorf("has %d characters, more than %d", length, MaxRuleLength)
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if problems := issues.Errors(); len(problems) > 0 {
		first := problems[0]
		if first.Location.Line() < 1 { // it is about the whole
			return nil, errors.New(bounded(first.Message))
		}
		return nil, fmt.Errorf("line %d, column %d: %s", first.Location.Line(), first.Location.Column()+1,
			bounded(first.Message))
	}
	// The type of most fields is not known before there is an object.
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

// environment has what rules may say. It does not change once it is made, and serves all.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("object", cel.MapType(cel.StringType, cel.DynType)),
		cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		cel.ASTValidators(cel.ValidateRegexLiterals()),
	)
})

// Assess says whether the rule holds for the object. While it does not, or has no answer, the object is progressing.
// Whether it ends, and has ended well, is a matter of its kind, whatever the rule.
//
// A rule sees which keys a Secret has, but not what is in them, so that none of it can get into a message.
func (r *Rule) Assess(object *unstructured.Unstructured) Result {
	return assess(object, func(object *unstructured.Unstructured) (Result, error) {
		result := Result{Status: Progressing, Ends: ends(object)}
		if result.Ends {
			result.Complete = Registry(nil).Assess(object).Complete
		}
		answer, _, err := r.program.Eval(map[string]any{"object": withoutSecrets(object)})
		switch {
		case errors.As(err, &interpreter.EvalCancelledError{}):
			result.Message = fmt.Sprintf("the rule needs more than the cost limit of %d: %s", CostLimit, r.expression)
		case err != nil:
			result.Message = fmt.Sprintf("the rule has no answer: %.100s, in %s", err.Error(), r.expression)
		case answer == types.True:
			result.Status, result.Message = Ready, "the rule holds"
		case answer == types.False:
			result.Message = "the rule does not hold: " + r.expression
		default:
			result.Message = fmt.Sprintf("the rule is neither true nor false but of type %s: %s", answer.Type().TypeName(),
				r.expression)
		}
		return result, nil
	})
}

// withoutSecrets leaves of a Secret the keys alone. Its annotations may hold all of it as kubectl applied it.
func withoutSecrets(object *unstructured.Unstructured) map[string]any {
	if object.GetKind() != "Secret" {
		return object.Object
	}
	out := maps.Clone(object.Object)
	for _, field := range []string{"data", "stringData"} {
		blank(out, field)
	}
	if metadata, is := out["metadata"].(map[string]any); is {
		metadata = maps.Clone(metadata)
		blank(metadata, "annotations")
		out["metadata"] = metadata
	}
	return out
}

func blank(in map[string]any, field string) {
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
