package clusteraffinity

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Matcher compiles one kind of what a term can ask for.
type Matcher interface {
	// Compile returns what the term asks for of this kind; none: nothing. Its errors name the field, which is below the
	// path of the term.
	Compile(term *v1alpha1.ClusterSelectorTerm, path *field.Path) ([]Requirement, error)
}

// Requirement is one thing that a term asks of a cluster. It may be used by many at once.
type Requirement interface {
	// Retain takes out of the set the clusters that do not match.
	Retain(snapshot *scheduler.Snapshot, set scheduler.Set)
	// Mismatch says why the cluster does not match, as a reason of [scheduler.Reject]; empty: it matches.
	Mismatch(cluster *scheduler.Cluster) string
}

// term is all that is asked for together.
type term []Requirement

func compile(matchers []Matcher, spec *v1alpha1.ClusterSelectorTerm, path *field.Path) (term, error) {
	var out term
	for _, matcher := range matchers {
		requirements, err := matcher.Compile(spec, path)
		if err != nil {
			return nil, err
		}
		out = append(out, requirements...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: asks for nothing that this profile knows", path)
	}
	return out, nil
}

func (t term) retain(snapshot *scheduler.Snapshot, set scheduler.Set) {
	for _, requirement := range t {
		requirement.Retain(snapshot, set)
	}
}

func (t term) mismatch(cluster *scheduler.Cluster) string {
	for _, requirement := range t {
		if reason := requirement.Mismatch(cluster); reason != "" {
			return reason
		}
	}
	return ""
}
