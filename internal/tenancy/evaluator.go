package tenancy

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Evaluator answers MayPlace for a fixed list of sets and bindings. It does not change, so it is safe for concurrent
// use. The nil Evaluator and the zero Evaluator deny everything.
type Evaluator struct {
	grants map[string][]grant
}

type grant struct {
	binding, set string
	selector     labels.Selector
}

// NewEvaluator indexes the bindings by namespace. It keeps the selectors of the sets and copies everything else.
func NewEvaluator(sets []Set, bindings []Binding) *Evaluator {
	selectors := make(map[string]labels.Selector, len(sets))
	for _, s := range sets {
		selectors[s.Name] = s.Selector
	}
	e := &Evaluator{grants: map[string][]grant{}}
	for _, b := range bindings {
		// An empty namespace is not a tenant: a cluster-scoped caller must not receive its permission by accident.
		if selector := selectors[b.Set]; selector != nil && b.Namespace != "" {
			e.grants[b.Namespace] = append(e.grants[b.Namespace], grant{b.Name, b.Set, selector})
		}
	}
	for _, grants := range e.grants {
		slices.SortFunc(grants, func(a, b grant) int {
			return cmp.Or(cmp.Compare(a.binding, b.binding), cmp.Compare(a.set, b.set))
		})
	}
	return e
}

// MayPlace decides like the function MayPlace, with the sets and bindings of the Evaluator.
func (e *Evaluator) MayPlace(namespace string, cluster labels.Set) Grant {
	if e == nil {
		return Grant{}
	}
	for _, g := range e.grants[namespace] {
		if g.selector.Matches(cluster) {
			return Grant{Allowed: true, Binding: g.binding, Set: g.set}
		}
	}
	return Grant{}
}
