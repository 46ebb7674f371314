package selection

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/placement/bundle"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// problem is the reason why the objects of a selector are not available. The zero value means that they are.
type problem struct{ reason, message string }

func (t problem) none() bool { return t == problem{} }

// staleAfter is how long transient failures are not reported after a successful list.
const staleAfter = time.Minute

// Problems before the first discovery, and while the Watcher stops. They are not failures.
var (
	notDiscovered = problem{ReasonNotSynced,
		"the kinds of the hub are not discovered yet: wait, or check why the API server is slow"}
	stopping = problem{ReasonNotSynced, "this instance of the hub's controller is stopping: wait for the next leader"}
)

func notListed(target Target) problem {
	return problem{ReasonNotSynced, fmt.Sprintf("%s are not listed yet: wait, or check why the API server is "+
		"slow", target)}
}

// watchProblem returns the problem of a target whose list or watch failed. It returns no problem if the target was
// listed before, has not failed for longer than staleAfter, and the error may be transient.
func watchProblem(target Target, listed bool, failing time.Duration, err error) problem {
	switch {
	case apierrors.IsForbidden(err):
		return problem{ReasonForbidden, fmt.Sprintf("the hub's controller is not allowed to read the objects: grant list "+
			"and watch on %s to %s",
			target, userOf(err))}
	case apierrors.IsNotFound(err):
		return problem{ReasonUnknownKind,
			fmt.Sprintf("the hub no longer serves %s of version %s: install the kind again, or correct the selector",
				target.GroupResource(), target.Version)}
	case apierrors.IsMethodNotSupported(err):
		return problem{ReasonInvalid, fmt.Sprintf("%s cannot be listed and watched: remove the selector",
			target.GroupResource())}
	case apierrors.IsBadRequest(err), apierrors.IsInvalid(err):
		return problem{ReasonInvalid, fmt.Sprintf("the API server rejects the list of %s: %s: correct the "+
			"selector", target, errorText(err))}
	case !listed:
		return problem{ReasonNotSynced, fmt.Sprintf("listing %s fails and is retried: %s", target, errorText(err))}
	case failing > staleAfter:
		return problem{ReasonStale, fmt.Sprintf("watching %s fails and is retried: %s", target, errorText(err))}
	default:
		return problem{}
	}
}

// user matches the name of the user in the error Forbidden of an API server.
var user = regexp.MustCompile(`User "([^"]+)"`)

func userOf(err error) string {
	if found := user.FindStringSubmatch(err.Error()); found != nil {
		return found[1]
	}
	return "the controller"
}

// errorText returns the text of an error without the URL of the request, which differs between retries.
func errorText(err error) string {
	if request, is := errors.AsType[*url.Error](err); is {
		return request.Err.Error()
	}
	return err.Error()
}

// mappingProblem returns the problem of a kind that was not found.
func mappingProblem(kind schema.GroupVersionKind, err error) problem {
	if !meta.IsNoMatchError(err) {
		return problem{ReasonNotSynced, "discovering the kinds of the hub fails and is retried: " + errorText(err)}
	}
	of := kind.GroupVersion().String()
	if kind.Version == "" {
		of = kind.Group
	}
	if of == "" {
		of = "the core group"
	}
	return problem{ReasonUnknownKind, fmt.Sprintf("the hub does not serve kind %s of %s: install its "+
		"CustomResourceDefinition, or correct the selector",
		kind.Kind, of)}
}

func notFoundProblem(target Target) problem {
	id := workv1alpha1.ResourceIdentifier{Group: target.Group, Kind: target.Kind, Namespace: target.Namespace,
		Name: target.Name}
	return problem{ReasonNotFound,
		fmt.Sprintf("%s does not exist: create the object, or remove the selector to delete the object from the "+
			"clusters", id)}
}

// refusedProblem returns the problem of a target with objects that cannot be distributed. err describes the first of
// them, and others is the number of the other ones.
func refusedProblem(err error, others int) problem {
	if _, never := errors.AsType[*bundle.RefusedError](err); never {
		return problem{ReasonRefused, err.Error() + ": remove the selector"}
	}
	message := err.Error() + ": change the object, or the selector so that it does not match"
	if others > 0 {
		message = fmt.Sprintf("%s; %d more objects have a problem", message, others)
	}
	return problem{ReasonRefused, message}
}
