package propertyaffinity

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/clusteraffinity"
)

// Matcher returns the matcher for the property requirements of a term.
func Matcher() clusteraffinity.Matcher { return matcher{} }

type matcher struct{}

func (matcher) Compile(term *v1alpha1.ClusterSelectorTerm, path *field.Path) ([]clusteraffinity.Requirement, error) {
	out := make([]clusteraffinity.Requirement, 0, len(term.Properties))
	for i := range term.Properties {
		r, err := compile(&term.Properties[i], path.Child("properties").Index(i))
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// requirement is a compiled PropertyRequirement.
type requirement struct {
	name string
	test test
	// key identifies the result: it contains all fields that affect it.
	key string
	// absent, different and unreadable are the reasons against a cluster without the property, with another value, and
	// with a value that cannot be parsed. If absent is empty, a cluster without the property matches.
	absent, different, unreadable string
}

func compile(spec *v1alpha1.PropertyRequirement, path *field.Path) (*requirement, error) {
	if spec.Name == "" {
		return nil, fmt.Errorf("%s: must be the name of a property", path.Child("name"))
	}
	test, err := newTest(spec, path)
	if err != nil {
		return nil, err
	}
	values := slices.Clone(spec.Values)
	slices.Sort(values)
	r := &requirement{
		name: spec.Name, test: test,
		key:       fmt.Sprintf("property:%q %s %s %q", spec.Name, spec.Operator, spec.ValueType(), values),
		absent:    "has no property " + spec.Name,
		different: "does not match " + describe(spec),
	}
	switch spec.Operator {
	case v1alpha1.PropertyNe, v1alpha1.PropertyNotIn:
		r.absent = ""
	case v1alpha1.PropertyDoesNotExist:
		r.absent, r.different = "", "has property "+spec.Name
	}
	switch spec.ValueType() {
	case v1alpha1.PropertyQuantity:
		r.unreadable = "no quantity"
	case v1alpha1.PropertyVersion:
		r.unreadable = "no semantic version"
	}
	return r, nil
}

// signs are the operators in messages.
var signs = map[v1alpha1.PropertyOperator]string{
	v1alpha1.PropertyGt: ">", v1alpha1.PropertyGe: ">=", v1alpha1.PropertyLt: "<", v1alpha1.PropertyLe: "<=",
	v1alpha1.PropertyEq: "=", v1alpha1.PropertyNe: "!=", v1alpha1.PropertyIn: "in", v1alpha1.PropertyNotIn: "notin",
}

// describe formats a requirement like a label selector.
func describe(spec *v1alpha1.PropertyRequirement) string {
	values := strings.Join(spec.Values, ",")
	if spec.Operator == v1alpha1.PropertyIn || spec.Operator == v1alpha1.PropertyNotIn {
		values = "(" + values + ")"
	}
	return spec.Name + " " + signs[spec.Operator] + " " + values
}

func (r *requirement) Mismatch(cluster *scheduler.Cluster) string {
	value, has := cluster.Properties[r.name]
	if !has {
		return r.absent
	}
	switch r.test(value) {
	case match:
		return ""
	case mismatch:
		return r.different
	default:
		return fmt.Sprintf("has property %s with value %.64q, which is %s", r.name, value, r.unreadable)
	}
}

func (r *requirement) Retain(snapshot *scheduler.Snapshot, set scheduler.Set) {
	set.Retain(snapshot.Where(r.key, func(cluster *scheduler.Cluster) bool {
		value, has := cluster.Properties[r.name]
		if !has {
			return r.absent == ""
		}
		return r.test(value) == match
	}))
}
