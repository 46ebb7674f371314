package hub

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
)

// createLease creates the heartbeat Lease of a member. The Lease has no renewal time until the agent renews it, so its
// creation is not a heartbeat. An existing Lease is not changed.
func (r *members) createLease(ctx context.Context, member membership.Member) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: member.Namespace, Name: membership.LeaseName,
	}}
	err := r.client.Create(ctx, lease)
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("create Lease %s/%s: %w", member.Namespace, lease.Name, err)
}

// restoreLease creates the heartbeat Lease of a joined member again if another client has deleted it. A namespace that
// is being deleted is restored as a whole, with the Membership.
func (r *members) restoreLease(ctx context.Context, o memberObserved) error {
	if o.membership == nil || o.lifecycle.Namespace != lifecycle.Present || !r.heartbeats.Missing(o.cluster.Name) {
		return nil
	}
	err := r.createLease(ctx, o.member)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
