package tenancy

import "k8s.io/apimachinery/pkg/labels"

// Set is a named group of member clusters.
type Set struct {
	// Name is unique among sets. Of several sets with the same name, an Evaluator uses the last one.
	Name string
	// Selector selects the clusters by their labels. Nil selects no cluster; labels.Everything selects all.
	Selector labels.Selector
}

// Binding allows a namespace to place on the clusters of a set.
type Binding struct {
	// Namespace is the namespace that receives the permission.
	Namespace string
	// Name is unique in the namespace.
	Name string
	// Set is the name of the set. A binding of a set that does not exist grants nothing.
	Set string
}

// Grant is the answer of MayPlace.
type Grant struct {
	// Allowed says whether the namespace may place on the cluster.
	Allowed bool
	// Binding and Set name what grants the permission. Both are empty if Allowed is false. If several bindings grant
	// it, Binding is the first of them by name, then by set.
	Binding, Set string
}

// MayPlace decides whether a namespace may place on a cluster that has these labels. The order of sets with different
// names, and of bindings, does not matter. Use an Evaluator to decide about more than one cluster.
func MayPlace(namespace string, cluster labels.Set, sets []Set, bindings []Binding) Grant {
	return NewEvaluator(sets, bindings).MayPlace(namespace, cluster)
}
