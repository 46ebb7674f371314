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
	unasked  = problem{ReasonNotSynced, "the hub has not said yet what kinds it has: wait, or see why it is slow"}
	stopping = problem{ReasonNotSynced, "this instance of the hub's controller is stopping: wait for another one"}
)

func unlisted(target Target) problem {
	return problem{ReasonNotSynced, fmt.Sprintf("the hub has not listed %s yet: wait, or see why it is slow", target)}
}

// unwatched returns the problem of a target whose list or watch failed. It returns no problem if the target was listed
// before, has not failed for longer than staleAfter, and the error may be transient.
func unwatched(target Target, listed bool, failing time.Duration, err error) problem {
	switch {
	case apierrors.IsForbidden(err):
		return problem{ReasonForbidden, fmt.Sprintf("the hub's controller may not read it: grant list and watch on %s to %s",
			target, userOf(err))}
	case apierrors.IsNotFound(err):
		return problem{ReasonUnknownKind,
			fmt.Sprintf("the hub has no %s of version %s now: install the kind again, or correct the selector",
				target.GroupResource(), target.Version)}
	case apierrors.IsMethodNotSupported(err):
		return problem{ReasonInvalid, fmt.Sprintf("%s cannot be listed and watched: remove the selector",
			target.GroupResource())}
	case apierrors.IsBadRequest(err), apierrors.IsInvalid(err):
		return problem{ReasonInvalid, fmt.Sprintf("the hub does not list %s: %s: correct the selector", target, cause(err))}
	case !listed:
		return problem{ReasonNotSynced, fmt.Sprintf("the hub cannot list %s, which is tried again: %s", target, cause(err))}
	case failing > staleAfter:
		return problem{ReasonStale, fmt.Sprintf("changes of %s cannot be seen, which is tried again: %s", target, cause(err))}
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
	return "it"
}

// cause returns the text of an error without the URL of the request, which differs between retries.
func cause(err error) string {
	if request, is := errors.AsType[*url.Error](err); is {
		return request.Err.Error()
	}
	return err.Error()
}

// unmapped returns the problem of a kind that was not found.
func unmapped(kind schema.GroupVersionKind, err error) problem {
	if !meta.IsNoMatchError(err) {
		return problem{ReasonNotSynced, "the hub does not say what kinds it has, and is asked again: " + cause(err)}
	}
	of := kind.GroupVersion().String()
	if kind.Version == "" {
		of = kind.Group
	}
	if of == "" {
		of = "the core group"
	}
	return problem{ReasonUnknownKind, fmt.Sprintf("the hub has no kind %s of %s: install it, or correct the selector",
		kind.Kind, of)}
}

func notFound(target Target) problem {
	id := workv1alpha1.ResourceIdentifier{Group: target.Group, Kind: target.Kind, Namespace: target.Namespace,
		Name: target.Name}
	return problem{ReasonNotFound,
		fmt.Sprintf("there is no %s: create it, or remove the selector to take it from the clusters", id)}
}

// refused returns the problem of a target with objects that cannot be distributed. err describes the first of them, and
// others is the number of the other ones.
func refused(err error, others int) problem {
	if _, never := errors.AsType[*bundle.RefusedError](err); never {
		return problem{ReasonRefused, err.Error() + ": remove the selector"}
	}
	message := err.Error() + ": change the object, or the selector so that it does not match"
	if others > 0 {
		message = fmt.Sprintf("%s; there are %d more like it", message, others)
	}
	return problem{ReasonRefused, message}
}
