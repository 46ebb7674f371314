package bundle

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// RefusedError is the error for an object that no member should get. Report it if a user named the object, and leave
// the object out if the user selected all objects of a namespace.
type RefusedError struct {
	Object workv1alpha1.ResourceIdentifier
	// Reason is a clause, such as "every cluster has its own".
	Reason string
}

func (r *RefusedError) Error() string {
	return fmt.Sprintf("%s cannot be distributed: %s", r.Object, r.Reason)
}

// Clean removes from an object of the hub's API server the fields that belong to the hub. It does not change its
// argument. The error is a [*RefusedError], or one of the errors of [Parse].
func Clean(object *unstructured.Unstructured) (Object, error) {
	id, _ := identify(object.Object)
	for i := range refusals {
		if r := &refusals[i]; r.matches(id) && (r.when == nil || r.when(object)) {
			return Object{}, &RefusedError{id, r.reason}
		}
	}
	content := runtime.DeepCopyJSON(object.Object)
	for i := range removals {
		r := &removals[i]
		if !r.matches(id) || r.unless != nil && r.unless(object) {
			continue
		}
		for _, name := range r.names {
			remove(content, append(strings.FieldsFunc(r.in, isDot), name))
		}
	}
	if id.Group == "" && id.Kind == "ServiceAccount" {
		dropTokens(content, id.Name)
	}
	return Of(content)
}

func isDot(r rune) bool { return r == '.' }

// remove removes a field from a map, or from each item of a list if the path contains a *, and then the maps that have
// become empty. It reports whether the map is empty.
func remove(value any, path []string) (emptied bool) {
	if items, isList := value.([]any); isList && path[0] == "*" {
		for _, item := range items {
			remove(item, path[1:])
		}
		return false
	}
	fields, _ := value.(map[string]any)
	child, found := fields[path[0]]
	if found && (len(path) == 1 || remove(child, path[1:])) {
		delete(fields, path[0])
	}
	return found && len(fields) == 0
}

// dropTokens removes from a ServiceAccount the token Secrets that the hub created for it, up to Kubernetes 1.23. It
// identifies them by their names, because users may list Secrets of their own.
func dropTokens(content map[string]any, account string) {
	secrets, _ := content["secrets"].([]any)
	kept := make([]any, 0, len(secrets))
	for _, secret := range secrets {
		fields, _ := secret.(map[string]any)
		if name, _ := fields["name"].(string); !strings.HasPrefix(name, account+"-token-") {
			kept = append(kept, secret)
		}
	}
	if content["secrets"] = kept; len(kept) == 0 {
		delete(content, "secrets")
	}
}
