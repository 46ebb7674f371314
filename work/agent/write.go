package agent

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// write writes a status that differs from the last written one. It delays a change within StatusInterval after the
// last write, and then returns the delay. It writes a change of a condition immediately.
func (a *Agent) write(ctx context.Context, work *v1alpha1.Work, st *state,
	status v1alpha1.WorkStatus) (time.Duration, error) {
	before := st.status(work)
	if apiequality.Semantic.DeepEqual(*before, status) {
		return 0, nil
	}
	if since := time.Since(st.reported.at); since < a.options.StatusInterval && !conditionsChanged(before, &status) {
		return a.options.StatusInterval - since, nil
	}
	old := &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}, Status: *before}
	next := &v1alpha1.Work{ObjectMeta: old.ObjectMeta, Status: status}
	next.UID = work.UID // the API server reports a conflict for a Work that was created again
	err := a.hub.Status().Patch(ctx, next, client.MergeFrom(old))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return 0, errChangedConcurrently
	case err != nil:
		return 0, fmt.Errorf("write the status of Work %s: %w", work.Name, err)
	}
	st.reported = written{&status, next.ResourceVersion, time.Now()}
	a.announce(work, before, &status)
	return 0, nil
}

// conditionsChanged reports whether the status of a condition or the observed generation has changed.
func conditionsChanged(before, after *v1alpha1.WorkStatus) bool {
	if before.ObservedGeneration != after.ObservedGeneration || len(before.Conditions) != len(after.Conditions) {
		return true
	}
	for _, condition := range after.Conditions {
		if was := findCondition(before.Conditions, condition.Type); was == nil || was.Status != condition.Status {
			return true
		}
	}
	return false
}

// expired returns how long a completed Work must still be kept: 0 when its TTL has ended, negative when it has none
// or is not complete.
func expired(work *v1alpha1.Work, status v1alpha1.WorkStatus) time.Duration {
	complete := findCondition(status.Conditions, v1alpha1.ConditionComplete)
	if work.Spec.TTLSecondsAfterCompletion == nil || complete == nil || complete.Status != metav1.ConditionTrue {
		return -1
	}
	end := complete.LastTransitionTime.Add(time.Duration(*work.Spec.TTLSecondsAfterCompletion) * time.Second)
	return max(time.Until(end), 0)
}

// expire deletes a completed Work, with the precondition that the Work has not changed since it was observed.
func (a *Agent) expire(ctx context.Context, work *v1alpha1.Work) error {
	uid, version := work.UID, work.ResourceVersion
	if work.Annotations[v1alpha1.GeneratedByAnnotation] != "" { // spec.ttlSecondsAfterCompletion is the request
		asked := &v1alpha1.Work{ObjectMeta: *work.ObjectMeta.DeepCopy()}
		metav1.SetMetaDataAnnotation(&asked.ObjectMeta, v1alpha1.DeletionRequestedByAnnotation, string(uid))
		if err := a.patchMetadata(ctx, asked, &v1alpha1.Work{ObjectMeta: work.ObjectMeta}); err != nil {
			return err
		}
		version = asked.ResourceVersion
	}
	err := a.hub.Delete(ctx, &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}},
		client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsConflict(err) {
		return errChangedConcurrently // the Work has changed since it completed
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete completed Work %s: %w", work.Name, err)
	}
	return nil
}
