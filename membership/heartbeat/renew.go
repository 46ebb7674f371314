package heartbeat

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"

	"github.com/muster-sdk/muster/membership"
)

// renew makes one attempt to renew the Lease: one request if the Lease is unchanged since the last attempt, and up to
// two more if it is not known yet, or if another client has written or deleted it.
func (b *Beater) renew(ctx context.Context, period time.Duration) error {
	if b.own.current != nil {
		err := b.update(ctx, b.own.current, period)
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
		b.own.current = nil
	}
	lease, err := b.get(ctx, period)
	b.own.reverted = b.own.reverted || err == nil && olderThan(lease, b.own.written)
	switch {
	case apierrors.IsNotFound(err):
		return b.createMissing(ctx, period, err)
	case err != nil:
		return err
	default:
		return b.update(ctx, lease, period)
	}
}

// olderThan reports whether the Lease of the hub is an earlier version of the one that was written. Versions of one
// object only increase, so the store was restored, even if later writes have passed its former version since.
func olderThan(lease, written *coordinationv1.Lease) bool {
	if written == nil || lease.UID != written.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(lease.ResourceVersion, written.ResourceVersion)
	return err == nil && order < 0
}

func (b *Beater) get(ctx context.Context, period time.Duration) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout(period))
	defer cancel()
	lease, err := b.leases.Get(ctx, membership.LeaseName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the heartbeat Lease: %w", err)
	}
	return lease, nil
}

// createMissing creates a Lease that does not exist. Current hubs create it themselves, and may deny the creation to
// the agent. The error is then that the Lease is missing, for which IsNotFound is true, and the next attempts wait for
// the hub.
func (b *Beater) createMissing(ctx context.Context, period time.Duration, missing error) error {
	err := b.create(ctx, period)
	if apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("the heartbeat Lease is missing until the hub creates it again: %w", missing)
	}
	return err
}

func (b *Beater) create(ctx context.Context, period time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout(period))
	defer cancel()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: membership.LeaseName}}
	created, err := b.leases.Create(ctx, b.sign(lease, period), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the heartbeat Lease: %w", err)
	}
	b.own.current, b.own.written = created, created
	return nil
}

func (b *Beater) update(ctx context.Context, lease *coordinationv1.Lease, period time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout(period))
	defer cancel()
	updated, err := b.leases.Update(ctx, b.sign(lease.DeepCopy(), period), metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("renew the heartbeat Lease: %w", err)
	}
	b.own.current, b.own.written = updated, updated
	return nil
}

// sign writes a heartbeat into the Lease.
func (b *Beater) sign(lease *coordinationv1.Lease, period time.Duration) *coordinationv1.Lease {
	// Without managedFields in the request the API server keeps the existing ones, which would be most of the request.
	lease.ManagedFields = nil

	spec := &lease.Spec
	now := metav1.NewMicroTime(b.clock.Now().Truncate(time.Microsecond))
	if spec.RenewTime != nil && spec.RenewTime.Time.Equal(now.Time) {
		now.Time = now.Add(time.Microsecond) // an unchanged time is no heartbeat
	}
	spec.RenewTime = &now
	spec.LeaseDurationSeconds = new(int32((DefaultGrace(period) + time.Second - 1) / time.Second))
	if ptr.Deref(spec.HolderIdentity, "") != b.identity {
		if spec.AcquireTime != nil { // the Lease had another holder
			spec.LeaseTransitions = new(ptr.Deref(spec.LeaseTransitions, 0) + 1)
		}
		spec.AcquireTime = &now
	}
	spec.HolderIdentity = &b.identity
	return lease
}
