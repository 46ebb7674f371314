package clusteraffinity

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// labelMatcher compiles label selectors.
type labelMatcher struct{}

func (labelMatcher) Compile(spec *v1alpha1.ClusterSelectorTerm, path *field.Path) ([]Requirement, error) {
	if spec.LabelSelector == nil {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path.Child("labelSelector"), err)
	}
	requirements, _ := selector.Requirements()
	out := make([]Requirement, 0, len(requirements))
	for i := range requirements {
		r := &requirements[i]
		out = append(out, &labelRequirement{
			requirement: r, key: r.Key(), operator: r.Operator(), values: r.ValuesUnsorted(),
			mismatch: "does not match " + r.String(),
		})
	}
	return out, nil
}

type labelRequirement struct {
	requirement *labels.Requirement
	key         string
	operator    selection.Operator
	values      []string
	mismatch    string
}

func (r *labelRequirement) Mismatch(cluster *scheduler.Cluster) string {
	if r.requirement.Matches(labels.Set(cluster.Labels)) {
		return ""
	}
	return r.mismatch
}

func (r *labelRequirement) Retain(snapshot *scheduler.Snapshot, set scheduler.Set) {
	groups := snapshot.Label(r.key)
	switch r.operator {
	case selection.In, selection.Equals, selection.DoubleEquals:
		if len(r.values) == 1 {
			set.Retain(groups.Set(r.values[0]))
			return
		}
		matching := scheduler.NewSet(snapshot.Slots())
		for _, value := range r.values {
			matching.Insert(groups.Set(value))
		}
		set.Retain(matching)
	case selection.NotIn, selection.NotEquals:
		for _, value := range r.values {
			set.Discard(groups.Set(value))
		}
	case selection.Exists:
		set.Retain(labeled(snapshot, r.key))
	case selection.DoesNotExist:
		set.Discard(labeled(snapshot, r.key))
	default:
		for slot := range set.All() {
			if !r.requirement.Matches(labels.Set(snapshot.Cluster(slot).Labels)) {
				set.Remove(slot)
			}
		}
	}
}

// labeled returns the set of the clusters that have a label.
func labeled(snapshot *scheduler.Snapshot, key string) scheduler.Set {
	return snapshot.Where("label:"+key, func(c *scheduler.Cluster) bool {
		_, has := c.Labels[key]
		return has
	})
}
