package fleet_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// The interfaces of multicluster-runtime, with the current and the former type of cluster names.
type (
	clusterName string
	aware       interface {
		Engage(ctx context.Context, name clusterName, live cluster.Cluster) error
	}
	provider interface {
		Get(ctx context.Context, name clusterName) (cluster.Cluster, error)
		IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error
	}
	providerRunnable interface {
		Start(ctx context.Context, aware aware) error
	}
	awareBefore interface {
		Engage(ctx context.Context, name string, live cluster.Cluster) error
	}
	providerBefore interface {
		Get(ctx context.Context, name string) (cluster.Cluster, error)
		IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error
		Start(ctx context.Context, aware awareBefore) error
	}
)

var (
	_ provider         = (*fleet.Provider[clusterName, aware])(nil)
	_ providerRunnable = (*fleet.Provider[clusterName, aware])(nil)
	_ providerBefore   = (*fleet.Provider[string, awareBefore])(nil)
)

var errNotFound = errors.New("cluster not found")

// managerOfMany is a manager that clusters are engaged with.
type managerOfMany struct {
	engaged chan engagement
	mu      sync.Mutex
	rejects int // number of calls of Engage that fail
}

type engagement struct {
	ctx  context.Context
	name clusterName
	live cluster.Cluster
}

func (m *managerOfMany) Engage(ctx context.Context, name clusterName, live cluster.Cluster) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rejects > 0 {
		m.rejects--
		return errors.New("not now")
	}
	m.engaged <- engagement{ctx, name, live}
	return nil
}

// tokenOf returns a token of a new ServiceAccount of the plane that has all permissions.
func (h *hub) tokenOf(name string) string {
	h.T.Helper()
	ctx := h.T.Context()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	h.Create(account)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: name}},
	}
	h.Create(binding)
	h.T.Cleanup(func() {
		_ = h.Client.Delete(context.Background(), account)
		_ = h.Client.Delete(context.Background(), binding)
	})
	var request authenticationv1.TokenRequest
	require.NoError(h.T, h.Client.SubResource("token").Create(ctx, account, &request))
	return request.Status.Token
}

// planeData returns the data of a Secret for the plane.
func (h *hub) planeData(server, token string) map[string]string {
	kubeconfig, err := localplane.Kubeconfig(&rest.Config{
		Host: server, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: h.Config.CAData},
	})
	require.NoError(h.T, err)
	return map[string]string{"value": string(kubeconfig)}
}

// TestProvider_CredentialRotation replaces the credential of clients and caches of a real member, and revokes the
// previous one.
func TestProvider_CredentialRotation(t *testing.T) {
	runner := newRecorder()
	h := startHub(t, plane.ForTest(t), fleet.Options{Runners: []fleet.Runner{runner}})
	p := fleet.NewProvider[clusterName, aware](h.fleet, fleet.ProviderOptions{NotFound: errNotFound, QPS: -1})
	ctx, cancel := context.WithCancel(t.Context())
	many := &managerOfMany{engaged: make(chan engagement, 10), rejects: 1}
	ended := make(chan error, 1)
	go func() { ended <- p.Start(ctx, many) }()

	first := h.tokenOf("rotation-1")
	h.member("rotation", h.planeData(h.Config.Host, first))
	h.reachable("rotation", v1alpha1.ReasonReachable)
	c := runner.called(t)
	_, err := p.Get(ctx, "rotation")
	require.ErrorIs(t, err, fleet.ErrClusterNotFound, "the member has not joined")
	require.ErrorIs(t, err, errNotFound)
	require.Empty(t, many.engaged)
	byNode := func(object client.Object) []string { return []string{object.GetLabels()["wave"]} }
	require.NoError(t, p.IndexField(ctx, &corev1.ConfigMap{}, "wave", byNode))

	h.joined("rotation", metav1.ConditionTrue)
	e := <-many.engaged // after the first call has failed
	require.Equal(t, clusterName("rotation"), e.name)
	live, err := p.Get(ctx, "rotation")
	require.NoError(t, err)
	require.Same(t, e.live, live)
	require.InDelta(t, -1, live.GetConfig().QPS, 0)
	cached := func(wave string) error {
		var maps corev1.ConfigMapList
		if err := live.GetClient().List(ctx, &maps, client.MatchingFields{"wave": wave}); err != nil {
			return err
		}
		return orError(len(maps.Items) == 1, "%d objects", len(maps.Items))
	}
	createCached := func(wave string) {
		t.Helper()
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rotation-" + wave,
			Labels: map[string]string{"wave": wave}}}
		h.Create(object)
		t.Cleanup(func() { _ = h.Client.Delete(context.Background(), object) })
		h.Eventually("the cache has the object of wave "+wave, func() error { return cached(wave) })
	}
	createCached("one")

	// The Secret gets the next credential, and the first one loses its permissions, at once. After the deletion of its
	// ServiceAccount it would be accepted for ten more seconds.
	second := h.tokenOf("rotation-2")
	h.secret("rotation", h.planeData(h.Config.Host, second))
	require.NoError(t, h.Client.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "rotation-1"}}))
	old, err := client.New(&rest.Config{Host: h.Config.Host, BearerToken: first,
		TLSClientConfig: rest.TLSClientConfig{CAData: h.Config.CAData}}, client.Options{Mapper: h.Client.RESTMapper()})
	require.NoError(t, err)
	h.Eventually("the first credential is rejected", func() error {
		err := old.List(ctx, &corev1.ConfigMapList{})
		return orError(apierrors.IsForbidden(err), "%v", err)
	})
	createCached("two")
	require.NoError(t, live.GetAPIReader().List(ctx, &corev1.ConfigMapList{}))
	_, err = c.get("/readyz")
	require.NoError(t, err)
	h.reachable("rotation", v1alpha1.ReasonReachable)
	runner.requireNotCalled(t)
	require.NoError(t, e.ctx.Err(), "the cluster is the same as before")
	again, err := p.Get(ctx, "rotation")
	require.NoError(t, err)
	require.Same(t, live, again)

	// The member leaves and joins again.
	h.joined("rotation", metav1.ConditionFalse)
	<-e.ctx.Done()
	h.Eventually("the member is not found", func() error {
		_, err := p.Get(ctx, "rotation")
		return orError(errors.Is(err, fleet.ErrClusterNotFound), "%v", err)
	})
	require.NoError(t, c.ctx.Err(), "runners run for leaving members as well")
	h.joined("rotation", metav1.ConditionTrue)
	e = <-many.engaged
	require.NotSame(t, live, e.live)
	live = e.live
	require.NoError(t, cached("two"), "indexes apply to later clusters as well")

	// The clusters of a provider end with it. The provider can start again.
	require.Error(t, p.Start(ctx, many), "Start during another Start: want an error")
	cancel()
	<-e.ctx.Done()
	require.NoError(t, <-ended)
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- p.Start(ctx, many) }()
	e = <-many.engaged
	require.NoError(t, h.Client.Delete(ctx, secretOf("rotation")))
	<-e.ctx.Done()
	cancel()
	require.NoError(t, <-ended)
}

// TestPermissions checks that the roles contain no more permissions than necessary.
func TestPermissions(t *testing.T) {
	h := startHub(t, plane.ForTest(t), fleet.Options{}) // its user has all permissions that the other tests need
	c, err := client.New(plane.ForTest(t).User(hubUser), client.Options{Scheme: scheme(), Mapper: h.Client.RESTMapper()})
	require.NoError(t, err)
	ctx := t.Context()
	f := newFake(t, uidA)
	h.member("permissions", f.data())
	h.reachable("permissions", v1alpha1.ReasonReachable)
	cluster := h.get("permissions")
	elsewhere := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "x"}}
	for operation, do := range map[string]func() error{
		"get a Secret elsewhere":  func() error { return c.Get(ctx, client.ObjectKeyFromObject(elsewhere), elsewhere) },
		"list Secrets everywhere": func() error { return c.List(ctx, &corev1.SecretList{}) },
		"create a Secret":         func() error { return c.Create(ctx, secretOf("permissions-x")) },
		"update a Secret":         func() error { return c.Update(ctx, secretOf("permissions")) },
		"delete a Secret":         func() error { return c.Delete(ctx, secretOf("permissions")) },
		"change a member's spec":  func() error { return c.Update(ctx, cluster) },
		"delete a member":         func() error { return c.Delete(ctx, cluster) },
		"create a member": func() error {
			return c.Create(ctx,
				&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
		},
		"list namespaces":  func() error { return c.List(ctx, &corev1.NamespaceList{}) },
		"list Memberships": func() error { return c.List(ctx, &v1alpha1.MembershipList{}) },
	} {
		require.True(t, apierrors.IsForbidden(do()), operation)
	}
	require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(secretOf("permissions")), secretOf("permissions")))
}

// TestSecret_MissingPermissionOnMember checks the condition of a member that does not permit the hub to get its
// namespace kube-system, including the next step in the message.
func TestSecret_MissingPermissionOnMember(t *testing.T) {
	h := startHub(t, plane.ForTest(t), fleet.Options{})
	token := h.tokenOf("refuses")
	require.NoError(t,
		h.Client.Delete(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "refuses"}}))
	h.member("refuses", h.planeData(h.Config.Host, token))
	require.Contains(t, h.reachable("refuses", v1alpha1.ReasonUnauthorized).Message, "/api/v1/namespaces/kube-system")
	h.Create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "refuses"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "refuses"}},
	})
	h.reachable("refuses", v1alpha1.ReasonReachable)
}
