package clusteraffinity

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Matcher compiles one kind of requirement of a term.
type Matcher interface {
	// Compile returns the requirements of this kind in the term; none if the term has no such requirement. Errors name the
	// field relative to the path of the term.
	Compile(term *v1alpha1.ClusterSelectorTerm, path *field.Path) ([]Requirement, error)
}

// Requirement is one requirement of a term. It must be safe for concurrent use.
type Requirement interface {
	// Retain removes the clusters that do not match from the set.
	Retain(snapshot *scheduler.Snapshot, set scheduler.Set)
	// Mismatch returns why the cluster does not match, as a reason of [scheduler.Reject]. Empty: the cluster matches.
	Mismatch(cluster *scheduler.Cluster) string
}

// term is a list of requirements that a cluster must all meet.
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
		return nil, fmt.Errorf("%s: has no requirement that a plugin of this profile evaluates", path)
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
