package celaffinity

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/clusteraffinity"
)

// DefaultCostLimit is the default cost limit of an expression for one cluster. Reading a field costs 1, and so do most
// calls. The cost of processing a list or a string is proportional to its length. Typical expressions cost 5 to 50.
//
// A unit takes 0.1 to 0.5 µs. The first evaluation of the most expensive expressions for 10,000 clusters therefore
// takes seconds, and each later evaluation for a changed cluster less than a millisecond.
const DefaultCostLimit = 1000

// Options are the options of a [Matcher].
type Options struct {
	// CostLimit is the maximum cost of an expression for one cluster, in CEL cost units. Zero: [DefaultCostLimit].
	CostLimit uint64
}

// Matcher returns the matcher for the expressions of a term.
func Matcher(o Options) clusteraffinity.Matcher {
	if o.CostLimit == 0 {
		o.CostLimit = DefaultCostLimit
	}
	return matcher{o.CostLimit}
}

type matcher struct{ costLimit uint64 }

func (m matcher) Compile(term *v1alpha1.ClusterSelectorTerm, path *field.Path) ([]clusteraffinity.Requirement, error) {
	out := make([]clusteraffinity.Requirement, 0, len(term.CEL))
	for i, expression := range term.CEL {
		program, err := m.compile(expression)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path.Child("cel").Index(i), err)
		}
		out = append(out, &requirement{
			expression: strings.Join(strings.Fields(expression), " "), program: program, costLimit: m.costLimit,
			key: fmt.Sprintf("cel:%d:%s", m.costLimit, expression),
		})
	}
	return out, nil
}

func (m matcher) compile(expression string) (cel.Program, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if problems := issues.Errors(); len(problems) > 0 {
		first := problems[0]
		return nil, fmt.Errorf("line %d, column %d: %s", first.Location.Line(), first.Location.Column()+1, first.Message)
	}
	if is := ast.OutputType(); !is.IsExactType(types.BoolType) {
		return nil, fmt.Errorf("must be true or false, but is of type %s", is)
	}
	return env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(m.costLimit),
		cel.CostTrackerOptions(parseCosts()...))
}

// requirement is a compiled expression.
type requirement struct {
	expression string // on one line, for reasons
	program    cel.Program
	costLimit  uint64
	// key identifies the result: it contains the expression and all options that affect it.
	key string
}

func (r *requirement) Mismatch(cluster *scheduler.Cluster) string {
	result, err := r.holds(cluster)
	switch {
	case errors.As(err, &interpreter.EvalCancelledError{}):
		return fmt.Sprintf("needs more than the cost limit of %d for %s", r.costLimit, r.expression)
	case err != nil:
		// The error may quote values that the cluster has reported, so it is truncated.
		return fmt.Sprintf("fails to evaluate %s: %.200s", r.expression, err.Error())
	case !result:
		return "does not match " + r.expression
	default:
		return ""
	}
}

func (r *requirement) Retain(snapshot *scheduler.Snapshot, set scheduler.Set) {
	set.Retain(snapshot.Where(r.key, func(cluster *scheduler.Cluster) bool {
		result, err := r.holds(cluster)
		return err == nil && result
	}))
}

func (r *requirement) holds(cluster *scheduler.Cluster) (bool, error) {
	result, _, err := r.program.Eval(activation{cluster})
	if err != nil {
		return false, err
	}
	return result == types.True, nil
}

// activation binds the variable cluster.
type activation struct{ cluster *scheduler.Cluster }

func (a activation) ResolveName(name string) (any, bool) { return a.cluster, name == variable }

func (activation) Parent() interpreter.Activation { return nil }
