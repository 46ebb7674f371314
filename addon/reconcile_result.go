package addon

import (
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// errRetry is the error of a step that waits for another change, which may trigger no reconcile.
var errRetry = errors.New("another client changed the object")

// reconcileResult returns the result of a reconcile. A conflict with another client is not an error: the next reconcile
// observes the change. The pauses grow as those after errors, since a cache may lag for long.
func (c *shared) reconcileResult(request reconcile.Request, after time.Duration, err error) (reconcile.Result, error) {
	if onlyConflicts(err) {
		return reconcile.Result{RequeueAfter: c.queues.pauses.When(request)}, nil
	}
	c.queues.pauses.Forget(request)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// onlyConflicts reports whether an error contains only conflicts with other clients. Joined errors must all be
// conflicts.
func onlyConflicts(err error) bool {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		return !slices.ContainsFunc(several.Unwrap(), func(one error) bool { return !onlyConflicts(one) })
	}
	return errors.Is(err, errRetry) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}
