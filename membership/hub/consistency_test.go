package hub

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func newFake(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// counted counts the lists of MemberClusters. Each comparison sends one.
type counted struct {
	client.Client
	comparisons int
}

func (c *counted) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*v1alpha1.MemberClusterList); ok {
		c.comparisons++
	}
	return c.Client.List(ctx, list, options...)
}

// TestConsistency_ComparesAfterEachAgent checks that a comparison confirms an epoch only to agents that waited for it
// when the comparison began: before another agent began to wait, the hub may have been restored again. Agents that
// wait at the same time share one comparison.
func TestConsistency_ComparesAfterEachAgent(t *testing.T) {
	ctx, start := t.Context(), time.Unix(1000, 0)
	clock := clocktesting.NewFakePassiveClock(start)
	east := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "1"}}
	server, cache := &counted{Client: newFake(t, east.DeepCopy())}, newFake(t, east.DeepCopy())
	c := &consistency{
		identity: &hubIdentity{client: server, reader: server, namespace: "registration"},
		cache:    cache, reader: server, clock: clock,
	}
	at := func(seconds float64) { clock.SetTime(start.Add(time.Duration(seconds * float64(time.Second)))) }
	pending := func(agent types.UID, required int64) {
		t.Helper()
		_, err := c.reach(ctx, agent, required)
		require.ErrorIs(t, err, membership.ErrPending)
	}
	reached := func(agent types.UID, required, epoch int64) {
		t.Helper()
		got, err := c.reach(ctx, agent, required)
		require.NoError(t, err)
		require.Equal(t, epoch, got)
	}
	reached("a", 7, 7)
	require.Equal(t, 1, server.comparisons)

	// The hub is restored again: the cache has an object that the API server does not have.
	require.NoError(t, server.Delete(ctx, east.DeepCopy()))
	at(0.5)
	pending("b", 3)
	pending("c", 7)
	at(2)
	pending("b", 3)
	require.Equal(t, 2, server.comparisons, "the caches are compared again")
	require.NoError(t, cache.Delete(ctx, east.DeepCopy()))
	pending("b", 3)
	at(2.5)
	pending("d", 7)
	at(4)
	reached("b", 3, 7)
	reached("c", 7, 7)
	require.Equal(t, 3, server.comparisons, "one comparison serves both")
	pending("d", 7)
	at(6)
	reached("d", 7, 7)
	require.Equal(t, 4, server.comparisons)
	require.Empty(t, c.waiting, "nothing is kept for agents that have their answer")

	pending("a", 8)
	at(8)
	reached("a", 8, 8)
}

// TestConsistency_ReportsStaleCaches checks that a cache is reported that contains an object from before a restore for
// minutes, and one that does not contain an object. A cache that lags and catches up is not reported.
func TestConsistency_ReportsStaleCaches(t *testing.T) {
	east := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "1"}}
	for _, test := range []struct {
		reason  string
		server  []client.Object
		cached  []client.Object
		follows bool
		want    bool
	}{
		{"the cache has an object that a restore has removed", nil, []client.Object{east}, false, true},
		{"the cache misses an object that a restore has created", []client.Object{east}, nil, false, true},
		{"the cache lags and catches up", nil, []client.Object{east}, true, false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			ctx, start, stale := t.Context(), time.Unix(1000, 0), 0
			clock := clocktesting.NewFakePassiveClock(start)
			copies := func(objects []client.Object) (all []client.Object) {
				for _, o := range objects {
					all = append(all, o.DeepCopyObject().(client.Object))
				}
				return all
			}
			server, cache := newFake(t, copies(test.server)...), newFake(t, copies(test.cached)...)
			c := &consistency{
				identity: &hubIdentity{client: server, reader: server, namespace: "registration"},
				cache:    cache, reader: server, clock: clock, stale: func() { stale++ },
			}
			for at := time.Duration(0); at < staleAfter; at += staleAfter / 10 {
				clock.SetTime(start.Add(at))
				_, err := c.reach(ctx, "a", 7)
				require.ErrorIs(t, err, membership.ErrPending)
				require.Zero(t, stale)
				if test.follows {
					cluster := &v1alpha1.MemberCluster{}
					require.NoError(t, cache.Get(ctx, client.ObjectKeyFromObject(east), cluster))
					cluster.Spec.ClusterID = at.String()
					require.NoError(t, cache.Update(ctx, cluster))
				}
			}
			clock.SetTime(start.Add(staleAfter))
			_, err := c.reach(ctx, "a", 7)
			require.ErrorIs(t, err, membership.ErrPending)
			require.Equal(t, test.want, stale > 0)
		})
	}
}

// TestTombstones_Expire checks that a tombstone is deleted after its time, and that the oldest ones are deleted first
// if there are too many.
func TestTombstones_Expire(t *testing.T) {
	ctx, start := t.Context(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakePassiveClock(start)
	options, err := Options{}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, 90*24*time.Hour, options.TombstoneTTL)
	server := newFake(t)
	s := &tombstones{
		client: server, reader: server, namespace: "registration", ttl: options.TombstoneTTL, limit: 3, clock: clock,
	}
	count := func() int {
		var list corev1.ConfigMapList
		require.NoError(t, server.List(ctx, &list))
		return len(list.Items)
	}
	write := func(name string) {
		require.NoError(t, s.write(ctx, lifecycle.Tombstone{
			MemberUID: types.UID(name), MemberName: name, ClusterID: "id-" + name, Time: clock.Now(),
		}))
	}
	known := func(name string) int {
		found, err := s.of(ctx, "id-"+name)
		require.NoError(t, err)
		return len(found)
	}
	write("first")
	clock.SetTime(start.Add(options.TombstoneTTL - time.Minute))
	require.Equal(t, 1, known("first"))
	clock.SetTime(start.Add(options.TombstoneTTL))
	require.Zero(t, known("first"), "an expired tombstone has no effect before its deletion")
	require.Equal(t, 1, count())
	write("second")
	require.Equal(t, 1, count(), "the expired tombstone is deleted")
	require.Equal(t, 1, known("second"))
	for i := range 5 {
		write(fmt.Sprintf("another-%d", i))
	}
	require.Equal(t, s.limit, count())
}
