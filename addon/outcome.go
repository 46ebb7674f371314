package addon

import (
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// errAgain is the error of what has to wait for something else to change, of which nobody may tell.
var errAgain = errors.New("it has changed meanwhile")

// outcome turns that of a look into what the controller is to do. That somebody else was quicker is no error: the next look sees what they did. The pauses grow
// as those after errors do, since a cache may be behind for long.
func (c *shared) outcome(request reconcile.Request, after time.Duration, err error) (reconcile.Result, error) {
	if overtaken(err) {
		return reconcile.Result{RequeueAfter: c.pauses.When(request)}, nil
	}
	c.pauses.Forget(request)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// overtaken reports whether an error says no more than that something has changed meanwhile. One that is joined of several does if all of them do.
func overtaken(err error) bool {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		return !slices.ContainsFunc(several.Unwrap(), func(one error) bool { return !overtaken(one) })
	}
	return errors.Is(err, errAgain) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}
