package lookup

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/internal/messages"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
)

// lookupError is the reason why the state of a configuration is unknown. The zero value: it is known.
type lookupError struct {
	clause string
	passes bool // it may be temporary
}

func (t lookupError) none() bool { return t == lookupError{} }

// since returns the error to report after a previous one. A repeated temporary error keeps its first message:
// messages may contain a different port at each attempt, and every change is written to a status.
func (t lookupError) since(before lookupError) lookupError {
	if t.passes && before.passes && before != errNotDiscovered {
		return before
	}
	return t
}

func (t lookupError) about(reference v1alpha1.ConfigReference) Problem {
	message := fmt.Sprintf("%s: %s.", config.Reference{ConfigReference: reference}, t.clause)
	return Problem{ConfigReference: reference, Message: message, Retried: t.passes}
}

// The state before the first result.
var (
	errNotDiscovered = lookupError{"the kinds of the hub are unknown: check the API server of the hub if this persists",
		true}
	errNotRead = lookupError{"the object is not read yet: check the API server of the hub if this persists", true}
)

// unknown returns the error for a resource that the hub does not have.
func unknown(resource schema.GroupResource) lookupError {
	of := resource.Group
	if of == "" {
		of = "the core group"
	}
	return lookupError{fmt.Sprintf("the hub has no resource %s of %s: install its definition, or correct the reference",
		resource.Resource, of), false}
}

// unmapped returns the error for a resource that was not found.
func unmapped(resource schema.GroupResource, err error) lookupError {
	if meta.IsNoMatchError(err) {
		return unknown(resource)
	}
	return lookupError{"retrying after the discovery of the hub's kinds failed: " + cause(err), true}
}

// unlisted returns the error for a kind that cannot be listed.
func unlisted(resource schema.GroupResource, err error) lookupError {
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return unknown(resource)
	case apierrors.IsMethodNotSupported(err):
		return lookupError{fmt.Sprintf("%s cannot be listed and watched: put the configuration into another kind",
			resource), false}
	}
	return unreadable(resource, err)
}

// unreadable returns the error for an object that could not be read.
func unreadable(resource schema.GroupResource, err error) lookupError {
	if apierrors.IsForbidden(err) {
		return lookupError{fmt.Sprintf("the hub's controller is not permitted to read the object: grant get, list and watch "+
			"on %s to %s, in all namespaces of its cache", resource, userOf(err)), false}
	}
	return lookupError{"retrying after a read error: " + cause(err), true}
}

// unsynced returns the error for a kind that can be listed, but is not listed yet.
func unsynced(resource schema.GroupResource) lookupError {
	return lookupError{fmt.Sprintf("%s were not listed within %s: check the API server of the hub if this persists",
		resource, timeout), true}
}

// uncached returns the error for an object that the cache cannot contain.
func uncached(reference v1alpha1.ConfigReference, err error) lookupError {
	if strings.Contains(err.Error(), "unknown namespace for the cache") { // the error has no type
		return lookupError{fmt.Sprintf("the cache of the hub's manager does not contain namespace %s: add it to the "+
			"namespaces of the cache, or reference an object in one of those", reference.Namespace), false}
	}
	return unreadable(schema.GroupResource{Group: reference.Group, Resource: reference.Resource}, err)
}

// misplaced returns the error for a namespace in a reference to a cluster-scoped kind, or a missing namespace.
func misplaced(reference v1alpha1.ConfigReference, namespaced bool) lookupError {
	switch {
	case namespaced && reference.Namespace == "":
		return lookupError{"the kind is namespaced: set the namespace", false}
	case !namespaced && reference.Namespace != "":
		return lookupError{"the kind is not namespaced: remove the namespace", false}
	}
	return lookupError{}
}

// user matches the name of the user in a Forbidden error.
var user = regexp.MustCompile(`User "([^"]+)"`)

func userOf(err error) string {
	if found := user.FindStringSubmatch(err.Error()); found != nil {
		return found[1]
	}
	return "the user of the hub"
}

// cause removes the address of the request from an error, which differs at each attempt.
func cause(err error) string {
	if request, is := errors.AsType[*url.Error](err); is {
		err = request.Err
	}
	return bounded.Text(err.Error(), messages.MaxPart/2)
}
