package addon

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/definition"
	"github.com/muster-sdk/muster/internal/deletion"
	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/internal/workwriter"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// generatedBy describes the origin of a generated Work.
func generatedBy(owner types.NamespacedName) string { return "MemberAddon " + owner.String() }

// generated reports whether a Work has the annotation with its origin, and no request of a deletion that did not
// happen.
func generated(work *workv1alpha1.Work, owner types.NamespacedName) bool {
	return work.Annotations[workv1alpha1.GeneratedByAnnotation] == generatedBy(owner) &&
		(work.Annotations[workv1alpha1.DeletionRequestedByAnnotation] == "" || work.DeletionTimestamp != nil)
}

// request annotates a Work with the UID of the MemberAddon that requests its deletion. Without the annotation the
// agent keeps the objects, because a user may have deleted the Work by mistake. It returns the resource version of
// the Work that has the annotation; empty: the Work does not exist any more.
func (c *shared) request(ctx context.Context, r *record, by types.UID) (version string, _ error) {
	if by == "" || r.Annotations[workv1alpha1.DeletionRequestedByAnnotation] == string(by) {
		return r.ResourceVersion, nil
	}
	work, err := c.writer().RequestDeletion(ctx, &r.ObjectMeta, workwriter.Request{By: by, AnyVersion: true})
	if err != nil {
		return "", wrap(client.IgnoreNotFound(err), "request the deletion of Work",
			&workv1alpha1.Work{ObjectMeta: r.ObjectMeta})
	}
	return work.ResourceVersion, nil
}

// requested reports whether a user requested the deletion of an object that generates Works, according to the state
// of its definition. A request takes effect after it has been observed for a moment, since the given time; until then
// wait is positive.
func (c *shared) requested(ctx context.Context, resource string, deleted time.Time,
	since *time.Time) (is bool, wait time.Duration, _ error) {
	state, err := definition.Of(ctx, c.discovery, v1alpha1.GroupVersion.WithResource(resource))
	if err != nil {
		return false, 0, err
	}
	if state == definition.Absent {
		return false, definition.ConfirmAfter, nil // the definition is being installed or removed at this moment
	}
	if !deletion.OfGenerator(true, deleted, state) {
		return false, 0, nil
	}
	if since.IsZero() {
		*since = c.Clock.Now()
	}
	return true, max(0, since.Add(definition.ConfirmAfter).Sub(c.Clock.Now())), nil
}

// removalRequested reports whether a user requested the deletion of the MemberAddon. The removal of its definition is
// not a request. The deletion of the namespace is not a request unless the member leaves.
func (l *memberReconciliation) removalRequested(ctx context.Context) (bool, time.Duration, error) {
	if l.confirmed {
		return true, 0, nil
	}
	is, wait, err := l.requested(ctx, "memberaddons", l.object.DeletionTimestamp.Time, &l.requestedSince)
	if err != nil || !is || wait > 0 {
		return is, wait, err
	}
	if l.observed.member == nil || !leaving(l.observed.member) {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := l.live.Get(ctx, client.ObjectKey{Name: l.key.Namespace}, namespace); err != nil {
			return false, 0, fmt.Errorf("read namespace %s: %w", l.key.Namespace, err)
		}
		if namespace.DeletionTimestamp != nil && !l.object.DeletionTimestamp.Before(namespace.DeletionTimestamp) {
			return false, 0, nil
		}
	}
	// Works on hosting members remain when the finalizer of the MemberAddon is removed.
	for _, works := range [][]*record{l.observed.works, l.observed.hooks} {
		for _, r := range works {
			if !r.hosted() {
				continue
			}
			if _, err := l.request(ctx, r, l.object.UID); err != nil {
				return false, 0, err
			}
		}
	}
	l.confirmed = true
	return true, 0, nil
}

// keepWorks removes the finalizer from a MemberAddon without deleting its Works.
func (l *memberReconciliation) keepWorks(ctx context.Context) error {
	l.log.Info("A MemberAddon is deleted without a request, and its Works are kept", "memberaddon", l.key)
	next := l.object.DeepCopy()
	controllerutil.RemoveFinalizer(next, v1alpha1.MemberAddonFinalizer)
	err := l.client.Patch(ctx, next, precondition.Patch(l.object))
	return wrap(client.IgnoreNotFound(err), "remove the finalizer of MemberAddon", l.object)
}

// keepMemberAddons removes the finalizer from an Addon without deleting its MemberAddons.
func (c addons) keepMemberAddons(ctx context.Context, addon *v1alpha1.Addon) error {
	c.log.Info("An Addon is deleted with its CustomResourceDefinition, and its MemberAddons are kept", "addon", addon.Name)
	next := addon.DeepCopy()
	if !controllerutil.RemoveFinalizer(next, v1alpha1.AddonFinalizer) {
		return nil
	}
	err := c.client.Patch(ctx, next, precondition.Patch(addon))
	return wrap(client.IgnoreNotFound(err), "remove the finalizer of Addon", addon)
}

// addonRequested reports whether a user requested the deletion of an Addon.
func (c addons) addonRequested(ctx context.Context, addon *v1alpha1.Addon) (bool, time.Duration, error) {
	c.cached.mu.Lock()
	since := c.cached.ending[addon.UID]
	c.cached.mu.Unlock()
	is, wait, err := c.requested(ctx, "addons", addon.DeletionTimestamp.Time, &since)
	c.cached.mu.Lock()
	defer c.cached.mu.Unlock()
	if c.cached.ending == nil {
		c.cached.ending = map[types.UID]time.Time{}
	}
	if c.cached.ending[addon.UID] = since; !is || !controllerutil.ContainsFinalizer(addon, v1alpha1.AddonFinalizer) {
		delete(c.cached.ending, addon.UID)
	}
	return is, wait, err
}

// deletable reports whether the deletion of a hosted Work was requested before its MemberAddon disappeared. A missing
// MemberAddon is not a request.
func (c *shared) deletable(ctx context.Context, r *record) (bool, error) {
	work := &metav1.PartialObjectMetadata{}
	work.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("Work"))
	err := c.live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, work)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read Work %s/%s: %w", r.Namespace, r.Name, err)
	}
	return work.UID == r.UID && work.Annotations[workv1alpha1.DeletionRequestedByAnnotation] != "", nil
}
