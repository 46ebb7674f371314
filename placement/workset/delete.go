package workset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/internal/workwriter"
	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// end deletes the Works of a WorkSet that is being deleted, and then removes its finalizer. The API server removes a
// Work when its member has deleted the objects. The WorkSet does not wait for that, so unreachable members do not block
// it.
func (l *reconciliation) end(ctx context.Context) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(l.set, v1alpha1.WorkSetFinalizer) {
		return reconcile.Result{}, nil
	}
	requested, wait, err := l.endRequested(ctx)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case wait > 0:
		return reconcile.Result{RequeueAfter: wait}, nil
	case requested:
		if err := l.withdraw(ctx, deletePolicyOf(l.set.Spec.Work.Delete)); err != nil {
			return reconcile.Result{}, errors.Join(err, l.reportStuck(ctx, err))
		}
	default:
		l.log.Info("WorkSet is deleted with its CustomResourceDefinition, keeping its Works", "workset", l.state.key)
	}
	next := l.set.DeepCopy()
	controllerutil.RemoveFinalizer(next, v1alpha1.WorkSetFinalizer)
	err = l.api.client.Patch(ctx, scope.WorkSetObject(next), precondition.Patch(scope.WorkSetObject(l.set)))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("remove the finalizer from WorkSet %s: %w", l.state.key, err)
	}
	l.drop(l.state.key)
	return reconcile.Result{}, nil
}

// reportStuck reports the error that blocks the deletion of a WorkSet, if only a user can resolve it.
func (l *reconciliation) reportStuck(ctx context.Context, why error) error {
	if !persistent(why) {
		return nil
	}
	l.problem(v1alpha1.ReasonWriteFailed, "%s", why)
	l.revision, l.rollout.Status = l.set.Status.Revision, l.set.Status.Rollout
	for namespace, h := range l.works.of(l.state.key) {
		name, _ := l.fleet.in(namespace)
		l.leaving = append(l.leaving, &target{name: name, namespace: namespace, cluster: l.fleet.member(name).lasting,
			existing: h})
	}
	_, err := l.report(ctx, l.status())
	return err
}

// withdraw deletes all Works of the WorkSet. It returns when the deletion of every Work on the API server has begun.
// Before it deletes a Work, one write adds the deletion request and the WorkSet's delete policy to the Work.
func (l *reconciliation) withdraw(ctx context.Context, how deletePolicy) error {
	s := l.state
	s.writing.Lock() // no Work is created until this returns
	defer s.writing.Unlock()
	s.shared.mu.Lock()
	s.shared.wants = map[string]*want{}
	s.shared.mu.Unlock()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("WorkList"))
	err := l.api.live.List(ctx, list, client.MatchingLabels{
		v1alpha1.WorkSetLabel: v1alpha1.LabelValue(s.key.Name), v1alpha1.WorkSetNamespaceLabel: s.key.Namespace,
	})
	if err != nil {
		return fmt.Errorf("list the Works of WorkSet %s: %w", s.key, err)
	}
	doomed := slices.DeleteFunc(list.Items, func(w metav1.PartialObjectMetadata) bool {
		asked := w.Annotations[workv1alpha1.DeletionRequestedByAnnotation] == string(l.set.UID)
		return w.DeletionTimestamp != nil && asked || setOf(w.Labels, w.Annotations) != s.key
	})
	return each(ctx, l.Writers, doomed, func(ctx context.Context, w metav1.PartialObjectMetadata) error {
		version, same := w.ResourceVersion, l.hasDeletePolicy(&w.ObjectMeta, how)
		if w.Annotations[workv1alpha1.DeletionRequestedByAnnotation] != string(l.set.UID) || !same {
			asked, err := l.request(ctx, &w.ObjectMeta,
				workwriter.Request{By: l.set.UID, Delete: how.api(), AnyVersion: true})
			if err != nil {
				return wrap(client.IgnoreNotFound(err), "update", client.ObjectKeyFromObject(&w))
			}
			version = asked.ResourceVersion
		}
		if w.DeletionTimestamp != nil {
			return nil
		}
		err := l.writer().Delete(ctx, &w.ObjectMeta, version)
		if client.IgnoreNotFound(err) != nil {
			return wrap(err, "delete", client.ObjectKeyFromObject(&w))
		}
		l.metrics.written.WithLabelValues("delete").Inc()
		return nil
	})
}

// each calls a function with all items, atOnce of them concurrently, and joins the errors.
func each[T any](ctx context.Context, atOnce int, items []T, do func(context.Context, T) error) error {
	var running sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	turn := make(chan struct{}, atOnce)
	for _, item := range items {
		turn <- struct{}{}
		running.Go(func() {
			defer func() { <-turn }()
			if err := do(ctx, item); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
