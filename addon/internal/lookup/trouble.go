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
	"github.com/muster-sdk/muster/addon/internal/words"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
)

// trouble is why nobody knows what a configuration is. The zero value: somebody does.
type trouble struct {
	clause string
	passes bool // by itself, it may be
}

func (t trouble) none() bool { return t == trouble{} }

// since is what to say of a trouble after another one. While it goes on the first that was said stays: others than that may name another port at each
// try, and whoever is told writes it into a status.
func (t trouble) since(before trouble) trouble {
	if t.passes && before.passes && before != unasked {
		return before
	}
	return t
}

func (t trouble) about(reference v1alpha1.ConfigReference) Problem {
	message := fmt.Sprintf("%s: %s.", config.Reference{ConfigReference: reference}, t.clause)
	return Problem{ConfigReference: reference, Message: message, Retried: t.passes}
}

// What is the matter while nothing has gone wrong.
var (
	unasked = trouble{"the hub has not said yet what it has of the kind: wait, or see why it is slow", true}
	unread  = trouble{"the hub has not said yet what it is: wait, or see why it is slow", true}
)

// unknown is of a resource that the hub does not have.
func unknown(resource schema.GroupResource) trouble {
	of := resource.Group
	if of == "" {
		of = "the core group"
	}
	return trouble{fmt.Sprintf("the hub has no resource %s of %s: install its definition, or correct the reference", resource.Resource, of), false}
}

// unmapped is of a resource that was not found.
func unmapped(resource schema.GroupResource, err error) trouble {
	if meta.IsNoMatchError(err) {
		return unknown(resource)
	}
	return trouble{"the hub does not say what kinds it has, and is asked again: " + cause(err), true}
}

// unlisted is of a kind that cannot be listed.
func unlisted(resource schema.GroupResource, err error) trouble {
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return unknown(resource)
	case apierrors.IsMethodNotSupported(err):
		return trouble{fmt.Sprintf("%s cannot be listed and watched: put the configuration into another kind", resource), false}
	}
	return unreadable(resource, err)
}

// unreadable is of what could not be read.
func unreadable(resource schema.GroupResource, err error) trouble {
	if apierrors.IsForbidden(err) {
		return trouble{fmt.Sprintf("the hub's controller may not read it: grant get, list and watch on %s to %s, in all namespaces that its cache has", resource, whom(err)), false}
	}
	return trouble{"the hub cannot read it, and is asked again: " + cause(err), true}
}

// unsynced is of a kind that can be listed, but is not.
func unsynced(resource schema.GroupResource) trouble {
	return trouble{fmt.Sprintf("the hub has not listed %s within %s, and is waited for: see why it is slow", resource, patience), true}
}

// uncached is of an object that the cache cannot have.
func uncached(reference v1alpha1.ConfigReference, err error) trouble {
	if strings.Contains(err.Error(), "unknown namespace for the cache") { // it has no type
		return trouble{fmt.Sprintf("the cache of the hub's manager does not have namespace %s: add it to the namespaces of the cache, or name an object in one of those", reference.Namespace), false}
	}
	return unreadable(schema.GroupResource{Group: reference.Group, Resource: reference.Resource}, err)
}

// misplaced is of a reference that has a namespace where the kind has none, or the other way round.
func misplaced(reference v1alpha1.ConfigReference, namespaced bool) trouble {
	switch {
	case namespaced && reference.Namespace == "":
		return trouble{"the kind is namespaced: say in which namespace it is", false}
	case !namespaced && reference.Namespace != "":
		return trouble{"the kind is not namespaced: remove the namespace", false}
	}
	return trouble{}
}

// user is how API servers name who may not.
var user = regexp.MustCompile(`User "([^"]+)"`)

func whom(err error) string {
	if found := user.FindStringSubmatch(err.Error()); found != nil {
		return found[1]
	}
	return "it"
}

// cause is an error without the address of the request, which is another one at each try.
func cause(err error) string {
	if request, is := errors.AsType[*url.Error](err); is {
		err = request.Err
	}
	return bounded.Text(err.Error(), words.MaxPart/2)
}
