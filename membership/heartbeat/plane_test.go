package heartbeat

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/mustertest/apiserver"
)

const (
	eventually = time.Minute // other packages are tested at the same time
	tick       = 20 * time.Millisecond
)

// counter counts requests by method and path.
type counter struct {
	mu     sync.Mutex
	counts map[string]int
	bodies map[string]bool
}

func (c *counter) count(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			c.mu.Lock()
			c.counts[r.Method+" "+r.URL.Path]++
			c.bodies[r.Header.Get("Content-Type")] = true
			c.mu.Unlock()
			return next.RoundTrip(r)
		})
	})
}

func (c *counter) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.counts
	c.counts, c.bodies = map[string]int{}, map[string]bool{}
	return counts
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An apiServer is a control plane or an API server in memory.
type apiServer interface {
	Config() *rest.Config
	User(name string, groups ...string) *rest.Config
}

// memoryServer is an API server in memory, for tests in virtual time.
type memoryServer struct{ server *apiserver.Server }

func newMemory(t *testing.T) memoryServer {
	t.Helper()
	return memoryServer{testkit.Memory(t, scheme.Scheme)}
}

// Config returns the config of an administrator.
func (m memoryServer) Config() *rest.Config { return m.server.Admin() }

// User returns the config of a user in these groups.
func (m memoryServer) User(name string, groups ...string) *rest.Config {
	return m.server.Config(name, groups...)
}

// realHub is a hub and its administrator.
type realHub struct {
	apiServer
	t     *testing.T
	admin *kubernetes.Clientset
}

func newRealHub(t *testing.T, server apiServer) *realHub {
	h := &realHub{apiServer: server, t: t}
	client, err := kubernetes.NewForConfigAndClient(server.Config(), h.http(server.Config()))
	require.NoError(t, err)
	h.admin = client
	return h
}

func (h *realHub) http(cfg *rest.Config) *http.Client {
	client, err := rest.HTTPClientFor(cfg)
	require.NoError(h.t, err)
	h.t.Cleanup(client.CloseIdleConnections)
	return client
}

func (h *realHub) leases(cfg *rest.Config, namespace string) coordinationv1client.LeaseInterface {
	client, err := coordinationv1client.NewForConfigAndClient(cfg, h.http(cfg))
	require.NoError(h.t, err)
	return client.Leases(namespace)
}

// member creates a member's namespace, and returns an agent with exactly the permissions in doc.go.
func (h *realHub) member(name string) (namespace string, agent *rest.Config) {
	h.t.Helper()
	ctx := h.t.Context()
	namespace = "member-" + name
	_, err := h.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		metav1.CreateOptions{})
	require.NoError(h.t, err)
	h.t.Cleanup(func() {
		require.NoError(h.t, h.admin.CoreV1().Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{}))
	})
	_, err = h.admin.RbacV1().Roles(namespace).Create(ctx,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"heartbeat"},
				Verbs: []string{"get", "update"}},
		}}, metav1.CreateOptions{})
	require.NoError(h.t, err)
	h.admit(namespace, name)
	return namespace, h.User("agent-" + name)
}

func (h *realHub) admit(namespace, name string) {
	_, err := h.admin.RbacV1().RoleBindings(namespace).Create(h.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "agent"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "agent-" + name}},
	}, metav1.CreateOptions{})
	require.NoError(h.t, err)
	leases := h.leases(h.User("agent-"+name), namespace)
	h.eventually(func() bool { // until the authorizer observes the RoleBinding
		_, err := leases.Get(h.t.Context(), membership.LeaseName, metav1.GetOptions{})
		return err == nil || apierrors.IsNotFound(err)
	}, "the agent of %s may read its Lease", name)
}

// watcher returns the config of a hub with exactly the permissions in doc.go.
func (h *realHub) watcher() *rest.Config {
	ctx := h.t.Context()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "watcher-"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"heartbeat"},
			Verbs: []string{"list", "watch"}},
	}}
	role, err := h.admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	require.NoError(h.t, err)
	_, err = h.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role.Name}},
	}, metav1.CreateOptions{})
	require.NoError(h.t, err)
	return h.User(role.Name)
}

func (h *realHub) eventually(met func() bool, format string, args ...any) {
	h.t.Helper()
	require.Eventuallyf(h.t, met, eventually, tick, format, args...)
}

// start starts a Beater; stop ends it and waits until it has returned.
func (h *realHub) start(b *Beater) (stop func()) {
	ctx, cancel := context.WithCancel(h.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.Run(ctx) })
	stop = func() { cancel(); wg.Wait() }
	h.t.Cleanup(stop)
	return stop
}

func (h *realHub) lease(namespace string) *coordinationv1.Lease {
	h.t.Helper()
	lease, err := h.admin.CoordinationV1().Leases(namespace).Get(h.t.Context(), membership.LeaseName, metav1.GetOptions{})
	require.NoError(h.t, err)
	return lease
}

// TestBeater_CostInSteadyState checks that a heartbeat costs the hub one write per period, and no other request.
func TestBeater_CostInSteadyState(t *testing.T) {
	testkit.Virtual(t, testBeaterCostInSteadyState)
}

func testBeaterCostInSteadyState(t *testing.T) {
	h := newRealHub(t, newMemory(t))
	namespace, cfg := h.member("steady")
	requests := &counter{}
	requests.take()
	requests.count(cfg)
	b := NewBeater(h.leases(cfg, namespace), BeaterOptions{Period: time.Second, Identity: "pod-1"})
	stop := h.start(b)
	<-b.Outcomes()
	<-b.Outcomes()
	requests.take()

	const beats = 8
	for range beats {
		require.NoError(t, (<-b.Outcomes()).LastError)
	}
	stop()
	protobuf := requests.bodies["application/vnd.kubernetes.protobuf"]
	path := "PUT /apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases/heartbeat"
	if diff := cmp.Diff(map[string]int{path: beats}, requests.take()); diff != "" {
		t.Errorf("requests in %d periods (-want +got):\n%s", beats, diff)
	}
	require.True(t, protobuf, "requests are encoded as protobuf")

	lease := h.lease(namespace)
	require.Equal(t, "pod-1", *lease.Spec.HolderIdentity)
	require.EqualValues(t, 5, *lease.Spec.LeaseDurationSeconds)
	require.Nil(t, lease.Spec.LeaseTransitions)
	require.NotEmpty(t, lease.ManagedFields, "the API server keeps managedFields that the agent does not send")

	// Another agent takes over, and an agent that starts again adopts the existing Lease.
	for range 2 {
		b := NewBeater(h.leases(cfg, namespace), BeaterOptions{Period: time.Second, Identity: "pod-2"})
		stop := h.start(b)
		require.NoError(t, (<-b.Outcomes()).LastError)
		stop()
		require.EqualValues(t, 1, *h.lease(namespace).Spec.LeaseTransitions)
	}
}

// TestBeater_Interference checks that changes of the Lease by other clients are corrected within the attempt that
// observes them.
func TestBeater_Interference(t *testing.T) {
	testkit.Virtual(t, testBeaterInterference)
}

func testBeaterInterference(t *testing.T) {
	h := newRealHub(t, newMemory(t))
	namespace, cfg := h.member("meddled")
	b := NewBeater(h.leases(cfg, namespace), BeaterOptions{Period: time.Second})
	h.start(b)
	require.NoError(t, (<-b.Outcomes()).LastError)
	leases := h.admin.CoordinationV1().Leases(namespace)

	before := h.lease(namespace)
	require.NoError(t, leases.Delete(t.Context(), membership.LeaseName, metav1.DeleteOptions{}))
	h.eventually(func() bool {
		lease, err := leases.Get(t.Context(), membership.LeaseName, metav1.GetOptions{})
		return err == nil && lease.UID != before.UID
	}, "the Lease is created again")
	require.Zero(t, b.Status().Failures)

	_, err := leases.Patch(t.Context(), membership.LeaseName, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"mine":"yes"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	before = h.lease(namespace)
	h.eventually(func() bool {
		return h.lease(namespace).Spec.RenewTime.After(before.Spec.RenewTime.Add(time.Millisecond))
	}, "the Lease is renewed")
	require.Equal(t, "yes", h.lease(namespace).Labels["mine"])
	require.NoError(t, b.Status().LastError)
	require.Zero(t, b.Status().Failures)
}

// TestPlaneRefusals checks the errors of refused heartbeats, which the lifecycle of the agent depends on.
func TestPlaneRefusals(t *testing.T) {
	h := newRealHub(t, hub.ForTest(t))
	namespace, cfg := h.member("refused")
	b := NewBeater(h.leases(cfg, namespace), BeaterOptions{Period: time.Second})
	h.start(b)
	require.NoError(t, (<-b.Outcomes()).LastError)

	require.NoError(t, h.admin.RbacV1().RoleBindings(namespace).Delete(t.Context(), "agent", metav1.DeleteOptions{}))
	h.eventually(func() bool { return apierrors.IsForbidden(b.Status().LastError) }, "the agent's permissions are gone")
	h.admit(namespace, "refused")
	h.eventually(func() bool { return b.Status().LastError == nil }, "the agent's permissions are back")

	unknown := rest.AnonymousClientConfig(cfg)
	unknown.BearerToken = "worthless"
	b = NewBeater(h.leases(unknown, namespace), BeaterOptions{})
	h.start(b)
	require.True(t, apierrors.IsUnauthorized((<-b.Outcomes()).LastError), "an unknown credential")

	b = NewBeater(h.leases(cfg, "member-other"), BeaterOptions{})
	h.start(b)
	require.True(t, apierrors.IsForbidden((<-b.Outcomes()).LastError), "another member's namespace")

	b = NewBeater(h.leases(h.Config(), "member-nowhere"), BeaterOptions{})
	h.start(b)
	require.True(t, apierrors.IsNotFound((<-b.Outcomes()).LastError), "a namespace that does not exist")
}

// A planeWatcher is a hub on the plane with three members that send heartbeats, one of them with a clock that is wrong
// by an hour.
type planeWatcher struct {
	*Watcher
	name    string
	members []string
	stops   map[string]func() // of the members
	changes *reported
	lost    sync.Map // the health of members that were lost
}

func (h *realHub) watch(name string, leases func(AllLeases) AllLeases) *planeWatcher {
	h.t.Helper()
	w := &planeWatcher{name: name, stops: map[string]func(){}, changes: &reported{},
		members: []string{name + "-a", name + "-b", name + "-skewed"}}
	w.Watcher = NewWatcher(leases(h.leases(h.watcher(), metav1.NamespaceAll)), memberOf, WatcherOptions{})
	w.options.OnChange = func(names []string) {
		w.changes.record(names)
		for _, name := range names {
			if v, _ := w.Health(name); v.State.Unknown() {
				w.lost.Store(name, v)
			}
		}
	}
	run(h.t, w.Watcher)
	for _, member := range w.members {
		namespace, cfg := h.member(member)
		var ticks clock.Clock = clock.RealClock{}
		if member == name+"-skewed" {
			ticks = skewed{ticks, -time.Hour}
		}
		w.Track(member, time.Second)
		w.stops[member] = h.start(NewBeater(h.leases(cfg, namespace), BeaterOptions{Period: time.Second, Clock: ticks}))
	}
	return w
}

func (w *planeWatcher) allHealthy() bool {
	healthy := 0
	for _, member := range w.members {
		if v, _ := w.Health(member); v.State == Healthy {
			healthy++
		}
	}
	return healthy == len(w.members)
}

func (w *planeWatcher) allHeardAfter(begin time.Time) bool {
	for _, member := range w.members {
		if v, _ := w.Health(member); v.LastHeard.Before(begin) {
			return false
		}
	}
	return true
}

// TestPlaneWatcher checks hubs whose members send heartbeats, one of them with a clock that is wrong by an hour; whose
// API server is unavailable for longer than the grace period; and one of whose members then fails.
func TestPlaneWatcher(t *testing.T) {
	p := hub.ForTest(t)
	h := newRealHub(t, p)
	hubs := []*planeWatcher{
		h.watch("streamed", func(l AllLeases) AllLeases { return l }),
		h.watch("listed", func(l AllLeases) AllLeases { return listOnly{l} }), // as with an API server that does not stream
	}
	for _, w := range hubs {
		h.eventually(w.allHealthy, "all members of %s are healthy", w.name)
		v, _ := w.Health(w.name + "-skewed")
		require.InDelta(t, -time.Hour, v.Skew, float64(time.Minute))
		w.lost.Clear() // the API server may have been slow at first
	}

	require.NoError(t, p.KillAPIServer())
	died := time.Now()
	<-time.After(DefaultGrace(time.Second) + 3*time.Second) // nothing must happen
	for _, w := range hubs {
		require.True(t, w.allHealthy(), "no member of %s is lost while the hub observes no heartbeats", w.name)
	}
	require.NoError(t, p.StartAPIServer(t.Context()))
	for _, w := range hubs {
		h.eventually(func() bool { return w.allHeardAfter(died.Add(time.Second)) },
			"heartbeats of all members of %s are observed again", w.name)
		w.lost.Range(func(member, health any) bool {
			t.Errorf("%s was lost while the API server was down: %+v", member, health)
			return true
		})
	}

	for _, w := range hubs {
		w.changes.take()
		w.stops[w.name+"-b"]()
	}
	for _, w := range hubs {
		t.Run(w.name, func(t *testing.T) {
			h.eventually(func() bool { return stateOf(t, w.Watcher, w.name+"-b") == Lost }, "the stopped member is lost")
			h.eventually(func() bool {
				for _, names := range w.changes.take() {
					if slices.Contains(names, w.name+"-b") {
						return true
					}
				}
				return false
			}, "the lost member is reported")
			v, _ := w.Health(w.name + "-b")
			require.False(t, v.Suspended)
			require.Equal(t, Healthy, stateOf(t, w.Watcher, w.name+"-skewed"))
		})
	}
}

// listOnly hides that a client supports WatchList.
type listOnly struct{ AllLeases }

func (listOnly) IsWatchListSemanticsUnSupported() bool { return true }

// skewed is a clock with a constant error.
type skewed struct {
	clock.Clock
	by time.Duration
}

func (s skewed) Now() time.Time { return s.Clock.Now().Add(s.by) }
