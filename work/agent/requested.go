package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/definition"
	"github.com/muster-sdk/muster/internal/deletion"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// observeEnd reads from the API server of the hub, and not from a cache, how a Work has ended: see [deletion.OfWork].
// An error means that this is unknown. The Work is nil if it does not exist.
func (a *Agent) observeEnd(ctx context.Context, key types.NamespacedName) (*v1alpha1.Work, string, error) {
	work := &v1alpha1.Work{}
	err := a.hub.Get(ctx, key, work)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, "", fmt.Errorf("read Work %s: %w", key.Name, err)
	}
	unserved := apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	if err != nil {
		work = nil
	}
	observed := deletion.WorkOf(work)
	if observed.Found && observed.Deleted.IsZero() {
		return work, "", nil
	}
	var at deletion.Hub
	if at.Definition, err = definition.Of(ctx, a.hub.discovery, v1alpha1.GroupVersion.WithResource("works")); err != nil {
		return nil, "", err
	}
	// The responses contradict each other while an API server starts, or while the definition is created or removed.
	if observed.Found && at.Definition == definition.Absent || unserved && at.Definition == definition.Served {
		return nil, "", fmt.Errorf("read Work %s: the CustomResourceDefinition of Works has just changed on the hub",
			key.Name)
	}
	if observed.Found && !observed.Generated && !observed.Requested {
		if at.NamespaceDeleted, err = a.namespaceDeleted(ctx, observed.Deleted); err != nil {
			return nil, "", err
		}
	}
	return work, deletion.OfWork(observed, at), nil
}

// namespaceDeleted returns when the deletion of the namespace on the hub began; zero: it has not begun. A hub of an
// earlier release does not permit its agents to read the namespace. In this case the agent tries to create an object
// by a dry run, which the API server rejects in a namespace that is being deleted. All Works are then regarded as
// deleted with the namespace.
func (a *Agent) namespaceDeleted(ctx context.Context, work time.Time) (time.Time, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := a.hub.Get(ctx, client.ObjectKey{Name: a.options.Namespace}, namespace)
	switch {
	case apierrors.IsForbidden(err):
		terminating, err := a.events.namespaceTerminating(ctx, a.options.Namespace)
		if err != nil || !terminating {
			return time.Time{}, err
		}
		return work, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("read namespace %s of the member on the hub: %w", a.options.Namespace, err)
	case namespace.DeletionTimestamp == nil:
		return time.Time{}, nil
	}
	return namespace.DeletionTimestamp.Time, nil
}

// namespaceTerminating reports whether the API server rejects the creation of an Event in a namespace because the
// namespace is being deleted. It is a dry run, so nothing is created.
func (r *recorder) namespaceTerminating(ctx context.Context, namespace string) (bool, error) {
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "muster-work-"}, EventTime: metav1.NowMicro(),
		ReportingController: "muster-work", ReportingInstance: "muster-work", Action: "Work", Reason: "DryRun",
		Type:      corev1.EventTypeNormal,
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace, Namespace: namespace},
	}
	_, err := r.client.Events(namespace).Create(ctx, event, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("check whether namespace %s is being deleted: %w", namespace, err)
	}
	return false, nil
}

// confirmStatus reads the status of a Work from the hub if only the status may have the result of a Job, because a Job
// with ttlSecondsAfterFinished has run, and this agent has not reported the Work yet: after a start, the cache may be
// older than the last report of the agent.
func (a *Agent) confirmStatus(ctx context.Context, work *v1alpha1.Work, st *state,
	inventory []v1alpha1.AppliedResource) error {
	hasRun := func(resource v1alpha1.AppliedResource) bool { return resource.RanHash != "" }
	if st.reported.version != "" || !slices.ContainsFunc(inventory, hasRun) {
		return nil
	}
	live := &v1alpha1.Work{}
	err := a.hub.Get(ctx, client.ObjectKeyFromObject(work), live)
	switch {
	case apierrors.IsNotFound(err), err == nil && live.UID != work.UID:
		return errChangedConcurrently
	case err != nil:
		return fmt.Errorf("read the status of Work %s: %w", work.Name, err)
	}
	st.reported = written{status: &live.Status, version: live.ResourceVersion}
	return nil
}

// confirmLive returns errChangedConcurrently unless the Work on the hub has the expected UID and generation and is not
// being deleted.
func (a *Agent) confirmLive(ctx context.Context, work *v1alpha1.Work) error {
	live := &v1alpha1.Work{}
	err := a.hub.Get(ctx, client.ObjectKeyFromObject(work), live)
	switch {
	case apierrors.IsNotFound(err):
		return errChangedConcurrently
	case err != nil:
		return fmt.Errorf("read Work %s before deleting objects that it no longer contains: %w", work.Name, err)
	case live.UID != work.UID || live.Generation != work.Generation || live.DeletionTimestamp != nil:
		return errChangedConcurrently
	}
	return nil
}
