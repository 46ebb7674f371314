package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// startProvider starts a provider whose clusters have an index of Secrets, so that their caches list Secrets before
// they are engaged.
func (h *hub) startProvider(options fleet.ProviderOptions) (*fleet.Provider[clusterName, aware], *managerOfMany) {
	h.T.Helper()
	p := fleet.NewProvider[clusterName, aware](h.fleet, options)
	byType := func(object client.Object) []string { return []string{string(object.(*corev1.Secret).Type)} }
	require.NoError(h.T, p.IndexField(h.T.Context(), &corev1.Secret{}, "type", byType))
	ctx, cancel := context.WithCancel(context.Background())
	ended, many := make(chan error, 1), &managerOfMany{engaged: make(chan engagement, 10)}
	go func() { ended <- p.Start(ctx, many) }()
	h.T.Cleanup(func() {
		cancel()
		require.NoError(h.T, <-ended)
	})
	return p, many
}

// next waits for the next cluster to be engaged.
func (m *managerOfMany) next(t testing.TB) engagement {
	t.Helper()
	select {
	case e := <-m.engaged:
		return e
	case <-time.After(maxFailures):
		t.Fatal("no cluster is engaged")
		return engagement{}
	}
}

// TestProvider_SyncTimeout checks that a cluster whose caches do not sync is reported and not engaged, delays no other
// cluster, and is engaged after its caches have synced.
func TestProvider_SyncTimeout(t *testing.T) {
	h := startHub(t, plane.ForTest(t), fleet.Options{})
	p, many := h.startProvider(fleet.ProviderOptions{SyncTimeout: 2 * time.Second})
	bind := func(name, role string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: name}},
		}
	}
	late := h.tokenOf("sync-late")
	require.NoError(t, h.Client.Delete(t.Context(), bind("sync-late", "cluster-admin")))
	h.Create(bind("sync-late", "view")) // which does not permit to list Secrets
	h.member("sync-late", h.planeData(h.Config.Host, late))
	h.joined("sync-late", metav1.ConditionTrue)
	require.Contains(t, h.event("sync-late", "RunnerFailed"), "live cluster: the caches of member sync-late have "+
		"not synced in 2s")
	h.reachable("sync-late", v1alpha1.ReasonReachable)

	h.member("sync-good", h.planeData(h.Config.Host, h.tokenOf("sync-good")))
	h.joined("sync-good", metav1.ConditionTrue)
	require.Equal(t, clusterName("sync-good"), many.next(t).name)
	_, err := p.Get(t.Context(), "sync-late")
	require.ErrorIs(t, err, fleet.ErrClusterNotFound, "the caches of the cluster have not synced")

	require.NoError(t, h.Client.Delete(t.Context(), bind("sync-late", "view")))
	h.Create(bind("sync-late", "cluster-admin"))
	e := many.next(t)
	require.Equal(t, clusterName("sync-late"), e.name)
	live, err := p.Get(t.Context(), "sync-late")
	require.NoError(t, err)
	require.Same(t, e.live, live)
	require.NoError(t, live.GetClient().List(t.Context(), &corev1.SecretList{}, client.MatchingFields{"type": "x"}))
}

// TestProvider_DiscoveryTimeout checks that discovery requests without a response fail after the timeout as well.
func TestProvider_DiscoveryTimeout(t *testing.T) {
	h := startHub(t, newMemory(t), fleet.Options{})
	_, many := h.startProvider(fleet.ProviderOptions{SyncTimeout: 200 * time.Millisecond})
	f := newFake(t, uidA)
	f.hangs.Store(true)
	h.member("kinds", f.data())
	h.joined("kinds", metav1.ConditionTrue)
	require.Contains(t, h.event("kinds", "RunnerFailed"), "live cluster: index *v1.Secret by type in cluster kinds")
	require.Empty(t, many.engaged)
}
