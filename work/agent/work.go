package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/internal/requeue"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// reconcile reconciles one Work.
func (a *Agent) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	st := a.stateOf(request.Name)
	after, err := a.reconcileWork(ctx, request, st)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return reconcile.Result{}, nil // the agent ends
	case errors.Is(err, errChangedConcurrently):
		return reconcile.Result{RequeueAfter: st.again()}, nil
	case err != nil:
		after = st.retry(time.Now())
		if errors.Is(err, errNoDefinition) { // no watch observes that the member serves the definition again
			after = min(after, definitionInterval)
		}
		log.FromContext(ctx).Error(err, "Failed to reconcile Work; retrying", "work", request.Name, "after", after)
	}
	st.retries.conflicts = 0
	return reconcile.Result{RequeueAfter: after}, nil
}

// definitionInterval is how often the agent tries to create an AppliedWork while the member does not serve them.
const definitionInterval = 10 * time.Second

// reconcileWork applies, deletes or cleans up after a Work, and returns the delay until the next reconcile; 0: after
// the next change.
func (a *Agent) reconcileWork(ctx context.Context, request reconcile.Request, st *state) (time.Duration, error) {
	work := &v1alpha1.Work{}
	err := a.hub.cache.Get(ctx, request.NamespacedName, work)
	switch {
	case apierrors.IsNotFound(err):
		return a.reconcileMissing(ctx, request.NamespacedName, st)
	case err != nil:
		return 0, fmt.Errorf("read Work %s from the cache: %w", request.Name, err)
	}
	st.observe(work)
	if work.DeletionTimestamp != nil {
		return a.cleanUp(ctx, work, st)
	}
	return a.applyAndReport(ctx, work, st)
}

// applyAndReport applies the Work on the member, and reports its status.
func (a *Agent) applyAndReport(ctx context.Context, work *v1alpha1.Work, st *state) (time.Duration, error) {
	rules, unknown := a.rulesFor(ctx, work)
	if unknown != nil && !apierrors.IsForbidden(unknown) {
		return 0, unknown // the status does not change until the rules are known
	}
	if !st.plan.isFor(work, rules) {
		st.plan, st.changes = makePlan(work), nil
		st.plan.policy = rules.version
		st.evaluated = st.plan.stillValid(st.evaluated)
	}
	if objects := len(st.plan.objects); objects > 0 {
		st.plan.dropNamespaces(a.member.RESTMapper(), rules.reject != nil)
		if st.plan.accept(rules.reject); len(st.plan.objects) != objects {
			st.changes = nil
		}
	}
	result := result{plan: st.plan, forbidden: unknown}
	if unknown == nil {
		result = a.applyWork(ctx, work, st)
	}
	a.emit(work, result.changes)
	if result.err != nil {
		return 0, result.err
	}
	status, retry := report(result.forReport(work, st.status(work), time.Now()))
	wait, err := a.write(ctx, work, st, status)
	if err != nil {
		return 0, err
	}
	if done := expired(work, status); done >= 0 {
		if done == 0 {
			return 0, a.expire(ctx, work)
		}
		wait = requeue.Sooner(wait, done)
	}
	if retry {
		wait = requeue.Sooner(wait, st.retry(time.Now()))
	} else {
		st.succeeded()
	}
	if result.pruning.withheld != "" {
		wait = requeue.Sooner(wait, jittered(gateInterval))
	}
	wait = requeue.Sooner(requeue.Sooner(wait, result.deadline),
		requeue.Sooner(result.pruning.after, retryAfter(result.changes)))
	wait = requeue.Sooner(wait, untilReported(result.evaluations, time.Now()))
	return requeue.Sooner(wait, jittered(a.options.Resync)), nil
}

// retryAfter returns the shortest time after which an object needs another reconcile; 0: none does.
func retryAfter(changes []apply.Change) (shortest time.Duration) {
	for _, change := range changes {
		shortest = requeue.Sooner(shortest, change.RetryAfter)
	}
	return shortest
}

// addFinalizer adds the finalizer to a Work before any of its objects is applied on the member.
func (a *Agent) addFinalizer(ctx context.Context, work *v1alpha1.Work) error {
	before := work.DeepCopy()
	if !controllerutil.AddFinalizer(work, v1alpha1.Finalizer) {
		return nil
	}
	return a.patchFinalizers(ctx, work, before)
}

func (a *Agent) patchFinalizers(ctx context.Context, work, before *v1alpha1.Work) error {
	return a.patchMetadata(ctx, &v1alpha1.Work{ObjectMeta: *work.ObjectMeta.DeepCopy()},
		&v1alpha1.Work{ObjectMeta: before.ObjectMeta})
}

// patchMetadata writes the metadata of a Work, with the precondition that the Work has not changed.
func (a *Agent) patchMetadata(ctx context.Context, changed, before *v1alpha1.Work) error {
	err := a.hub.Patch(ctx, changed, precondition.Patch(before))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return errChangedConcurrently
	case err != nil:
		return fmt.Errorf("write the metadata of Work %s: %w", changed.Name, err)
	}
	return nil
}
