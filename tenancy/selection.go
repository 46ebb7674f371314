package tenancy

import (
	"slices"
	"strings"

	"github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// SelectableObject identifies the object, or the objects of a kind, that a WorkSet selects.
type SelectableObject struct {
	Group, Kind string
	// Namespace is empty for a cluster-scoped object.
	Namespace string
	// Name is empty for all objects of the kind.
	Name string
}

// MaySelect reports whether a SelectionGrant allows WorkSets of the namespace to select an object outside of it. A
// ClusterWorkSet may select every object except for those that belong to Kubernetes or muster, by their group, their
// namespace or, for a Namespace, their name.
func (r *Rules) MaySelect(target SelectableObject) bool {
	if r != nil && r.clusterScope {
		isNamespace := target.Group == "" && target.Kind == "Namespace"
		return target.Group != "muster.dev" && !strings.HasSuffix(target.Group, ".muster.dev") &&
			!reserved(target.Namespace) && (!isNamespace || target.Name != "" && !reserved(target.Name))
	}
	return r != nil && r.namespace != "" && slices.ContainsFunc(r.selection, func(g v1alpha1.SelectionGrantSpec) bool {
		return slices.ContainsFunc(g.Namespaces, func(pattern string) bool { return matches(pattern, r.namespace) }) &&
			slices.ContainsFunc(g.Objects, target.within)
	})
}

// reserved reports whether a namespace belongs to Kubernetes or muster.
func reserved(namespace string) bool {
	return strings.HasPrefix(namespace, "kube-") || strings.HasPrefix(namespace, "muster-")
}

// within reports whether a grant of these objects contains the object.
func (o SelectableObject) within(granted v1alpha1.SelectableObjects) bool {
	return granted.Group == o.Group && granted.Kind == o.Kind && granted.Namespace == o.Namespace &&
		(len(granted.Names) == 0 || slices.Contains(granted.Names, o.Name))
}

// matches reports whether a namespace equals the pattern or, if the pattern ends with "*", has it as its prefix.
func matches(pattern, namespace string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(namespace, prefix)
	}
	return pattern == namespace
}
