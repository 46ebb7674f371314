package selection

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Target identifies the selected objects: one object by its name, or objects by their labels. Each target has one
// watch.
type Target struct {
	// The resource, in the version of the selector or in the preferred version of the hub.
	schema.GroupVersionResource
	// Kind is the kind of the objects.
	Kind string
	// Namespace is the namespace of the objects. Empty: the kind is not namespaced. A target never spans namespaces.
	Namespace string
	// Name is the name of the object. Empty: all objects that LabelSelector matches.
	Name string
	// LabelSelector is the label selector, in the form of [labels.Selector.String]. Empty: all objects.
	LabelSelector string
}

// String returns the target in the form of a rule, such as: secrets "web" in namespace shop.
func (t Target) String() string {
	var b strings.Builder
	b.WriteString(t.GroupResource().String())
	if t.Name != "" {
		fmt.Fprintf(&b, " %q", t.Name)
	}
	if t.Namespace != "" {
		b.WriteString(" in namespace " + t.Namespace)
	}
	return b.String()
}

// GroupKind returns the group and kind of the objects.
func (t Target) GroupKind() schema.GroupKind { return schema.GroupKind{Group: t.Group, Kind: t.Kind} }

// OwnNamespace allows the default targets of a WorkSet: namespaced objects in its own namespace, and that Namespace by
// its name. A function that allows more calls OwnNamespace first, and returns nil for the additional targets.
func OwnNamespace(owner types.NamespacedName, target Target) error {
	switch {
	case owner.Namespace == "":
		return fmt.Errorf("the WorkSet selects %s, but has no namespace", target)
	case target.Namespace == owner.Namespace:
		return nil
	case target.Namespace != "":
		return fmt.Errorf("the WorkSet selects %s, which is not its own namespace: create a WorkSet there, or ask the "+
			"hub's administrator for a SelectionGrant", target)
	case target.GroupResource() == schema.GroupResource{Resource: "namespaces"} && target.Name == owner.Namespace:
		return nil
	default:
		return fmt.Errorf("the WorkSet selects %s, but the only cluster-scoped object that a WorkSet can select is its own "+
			"Namespace, by name: ask the hub's administrator for a SelectionGrant", target)
	}
}

// parsedSelector is a selector with its target, or the problem that it has.
type parsedSelector struct {
	kind            schema.GroupVersionKind // without a version: the preferred version of the hub
	namespace, name string
	explicit        bool // whether the selector contains the namespace
	labels          labels.Selector
	selector        int  // the index of the selector
	every           bool // the selector is of every kind

	target  Target
	problem problem
}

// read parses a selector. Whether the kind is namespaced is not known yet.
func read(owner types.NamespacedName, s *v1alpha1.ResourceSelector) parsedSelector {
	a := parsedSelector{
		kind: schema.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind}, namespace: s.Namespace, name: s.Name,
		explicit: s.Namespace != "", labels: labels.Everything(),
	}
	if !a.explicit {
		a.namespace = owner.Namespace
	}
	invalid := func(format string, args ...any) parsedSelector {
		a.problem = problem{ReasonInvalid, fmt.Sprintf(format, args...)}
		return a
	}
	switch {
	case s.Kind == "":
		return invalid("the kind is required")
	case s.Name != "" && s.LabelSelector != nil:
		return invalid("name and labelSelector must not be set together: remove one of them")
	}
	for _, value := range []string{s.Namespace, s.Name} {
		if faults := content.IsPathSegmentName(value); len(faults) > 0 {
			return invalid("%q is not a valid name or namespace of an object: it %s", value, faults[0])
		}
	}
	if s.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
		if err != nil {
			return invalid("the labelSelector is invalid: %v", err)
		}
		a.labels = selector
	}
	return a
}

// setTarget sets the target from the mapping of the kind, or the problem if there is none.
func (a *parsedSelector) setTarget(mapping *meta.RESTMapping, unmapped problem) {
	if mapping == nil {
		a.problem = unmapped
		return
	}
	a.target = Target{
		GroupVersionResource: mapping.Resource, Kind: mapping.GroupVersionKind.Kind, Namespace: a.namespace, Name: a.name,
		LabelSelector: a.labels.String(),
	}
	switch namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace; {
	case !namespaced && a.explicit:
		a.problem = problem{ReasonInvalid, fmt.Sprintf("%s is not namespaced: remove the namespace",
			a.target.GroupResource())}
	case !namespaced:
		a.target.Namespace = ""
	case a.namespace == "": // the target would be all namespaces
		a.problem = problem{ReasonInvalid, fmt.Sprintf("%s is namespaced: set the namespace", a.target.GroupResource())}
	}
}
