package heartbeat

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
)

// TestWatcher_Missing checks that a Watcher reports tracked members without a Lease: those of the first list, and those
// whose Lease was deleted, with a notification. A Lease that no agent has renewed yet exists, and is no heartbeat.
func TestWatcher_Missing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := &leaseHub{}, &reported{}
		w := startWatcher(t, s, WatcherOptions{OnChange: o.record}, "a")
		require.True(t, w.Missing("a"))
		require.False(t, w.Missing("untracked"))

		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: membership.LeaseName, Namespace: "member-a", ResourceVersion: "2",
		}}
		s.watches[0].Add(lease)
		synctest.Wait()
		require.False(t, w.Missing("a"))
		require.Equal(t, Awaited, stateOf(t, w, "a"))
		s.beat("a")
		synctest.Wait()
		require.Equal(t, Healthy, stateOf(t, w, "a"), "the first renewal is a heartbeat")
		o.take()

		s.watches[0].Delete(lease)
		synctest.Wait()
		require.Equal(t, [][]string{{"a"}}, o.take())
		require.True(t, w.Missing("a"))
		require.Equal(t, Healthy, stateOf(t, w, "a"), "a deleted Lease is not a loss by itself")
		s.stopServing()
		synctest.Wait()
		require.False(t, w.Missing("a"), "without a watch, the hub does not know which Leases exist")
	})
}

// confined is a fake hub that does not permit the agent to create its Lease.
type confined struct{ *script }

func (c confined) Create(ctx context.Context, _ *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease,
	error) {
	if err := c.request(ctx, "create"); err != nil {
		return nil, err
	}
	return nil, apierrors.NewForbidden(leasesResource, membership.LeaseName, errors.New("no"))
}

// TestBeat_MissingLeaseOfTheHub checks that an agent without the permission to create its Lease reports that the Lease
// is missing, retries with an increasing backoff, and renews the Lease as soon as the hub has created it.
func TestBeat_MissingLeaseOfTheHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		b := NewBeater(confined{s}, BeaterOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.Run(ctx) }()
		defer func() {
			cancel()
			require.NoError(t, <-done)
		}()
		pass(10 * time.Minute)
		status := b.Status()
		require.True(t, apierrors.IsNotFound(status.LastError), "%v", status.LastError)
		require.False(t, apierrors.IsForbidden(status.LastError), "want the missing Lease as the error")
		require.ErrorContains(t, status.LastError, "until the hub creates it again")
		require.Greater(t, status.Failures, 9)
		require.Less(t, status.Failures, 40, "the backoff increases")

		s.set(func() { s.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: membership.LeaseName}} })
		pass(time.Minute)
		require.NoError(t, b.Status().LastError)
		require.NotNil(t, s.written().Spec.RenewTime)
	})
}
