package push_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/push"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	"github.com/muster-sdk/muster/mustertest/localplane"
	workagent "github.com/muster-sdk/muster/work/agent"
	workcrds "github.com/muster-sdk/muster/work/crds"
	"github.com/muster-sdk/muster/work/leave"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var (
	scheme = mustertest.Scheme(v1alpha1.AddToScheme, workv1alpha1.AddToScheme)
	// plane is the hub and the member.
	plane = localplane.Shared{Options: localplane.Options{Name: "push",
		Prepare: mustertest.Prepare(scheme, crds.Install, workcrds.InstallOnHub, workcrds.InstallOnMember)}}
)

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

const (
	timeout  = 3 * time.Minute
	interval = 25 * time.Millisecond
)

// testHub is a hub with all components of a product except package fleet, which the test replaces.
type testHub struct {
	*testkit.Hub
	admins       map[string]*rest.Config // of the hub and of the member
	east         client.Client
	memberConfig *rest.Config // through the proxy
	proxy        network
	runner       *push.Runner
	wire         *requestHooks
	user         func(name string, groups ...string) *rest.Config // of a user of the hub
	settle       func()                                           // waits before a manager stops

	hubConfig atomic.Pointer[rest.Config] // of the companion
	lease     atomic.Pointer[string]      // last observed resourceVersion
	renewals  atomic.Int64
}

// A network is the network between the hub and the member.
type network interface {
	Cut()   // resets all connections
	Stall() // stops all traffic without closing connections
	Heal()
}

// newHub starts a hub for one test, on the plane.
func newHub(t testing.TB) *testHub {
	t.Helper()
	p := plane.ForTest(t)
	proxy, err := localplane.NewProxy(p.Config().Host)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	h := &testHub{Hub: testkit.NewHub(t, p.Config(), scheme), memberConfig: proxy.Config(p.Config()), proxy: proxy,
		user: p.User, settle: func() {}}
	h.start(p.Config(), hub.Options{})
	return h
}

// newMemoryHub starts a hub for one test in virtual time. The hub and the member are API servers in memory.
//
// The managers of the hub stop after they have processed all events: a watch of metadata of controller-runtime never
// ends if it stops while an event is pending, and a test in virtual time fails if a goroutine is left.
func newMemoryHub(t testing.TB) *testHub {
	t.Helper()
	server := testkit.Memory(t, scheme, crds.Install, workcrds.InstallOnHub)
	east, err := apiserver.New(apiserver.Options{Name: "east"}) // its namespaces have other UIDs than those of the hub
	require.NoError(t, err)
	t.Cleanup(east.Close)
	mustertest.Client(t, east.Admin(), scheme, workcrds.InstallOnMember)
	link := &memoryNetwork{}
	h := &testHub{Hub: testkit.NewHub(t, server.Admin(), scheme), memberConfig: east.Admin(), proxy: link,
		settle: func() {
			<-time.After(5 * time.Second) // for the requests that the hub sends after the end of the test
			synctest.Wait()
		}}
	h.memberConfig.Wrap(link.wrap)
	h.user = func(name string, groups ...string) *rest.Config { // The agents of the runner use its connections.
		config, err := server.ConfigTLS(name, groups...)
		require.NoError(t, err)
		return config
	}
	h.start(east.Admin(), hub.Options{Server: server.URL(), CA: server.CertificateAuthority()})
	return h
}

// memoryNetwork is a network to an API server in memory. Its faults affect new requests. Open watches continue. While
// it is stalled, requests for discovery time out at once, because clients hold a mutex during discovery, and a
// goroutine that waits for a mutex stops virtual time.
type memoryNetwork struct {
	cut     atomic.Bool
	stalled atomic.Pointer[chan struct{}] // closed by Heal; nil: not stalled
}

func (n *memoryNetwork) wrap(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(request *http.Request) (*http.Response, error) {
		if n.cut.Load() {
			return nil, syscall.ECONNRESET
		}
		if stalled := n.stalled.Load(); stalled != nil {
			if strings.HasPrefix(request.URL.Path, "/api") && mustertest.AttributesOf(request).Resource == "" {
				return nil, os.ErrDeadlineExceeded
			}
			select {
			case <-*stalled:
			case <-request.Context().Done():
				return nil, request.Context().Err()
			}
		}
		return next.RoundTrip(request)
	})
}

func (n *memoryNetwork) Cut()   { n.cut.Store(true) }
func (n *memoryNetwork) Stall() { n.stalled.Store(new(make(chan struct{}))) }

func (n *memoryNetwork) Heal() {
	n.cut.Store(false)
	if stalled := n.stalled.Swap(nil); stalled != nil {
		close(*stalled)
	}
}

// start runs the managers of the hub and of the runner. The runner's user has only the roles in the folder rbac.
func (h *testHub) start(eastConfig *rest.Config, options hub.Options) {
	t := h.T
	t.Helper()
	h.wire = &requestHooks{}
	h.admins = map[string]*rest.Config{"hub": h.Config, "member": eastConfig}
	h.east = mustertest.Client(t, eastConfig, scheme)
	for _, name := range []string{membership.RegistrationNamespace, membership.ConnectionNamespace} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.NoError(t, client.IgnoreAlreadyExists(h.Client.Create(t.Context(), namespace)))
	}
	options.Acceptor, options.AgentRules = bySite, workagent.HubRules()
	options.Gates = []membership.LeaveGate{leave.Gate(h.Client)}
	h.startManager(h.Config, func(mgr manager.Manager) error { return hub.SetupWithManager(mgr, options) })

	config := h.pushUser()
	config.WrapTransport = h.wire.wrap
	h.startManager(config, func(mgr manager.Manager) (err error) {
		h.runner, err = push.New(mgr, push.Options{Agent: h.agent})
		return err
	})
}

// bySite is the policy of a product, which decides by the label "site".
var bySite = membership.AcceptorFunc(func(_ context.Context, request *v1alpha1.JoinRequest) (membership.Acceptance,
	error) {
	switch request.Spec.Labels["site"] {
	case "ours":
		return membership.Acceptance{Decision: membership.Accept}, nil
	case "theirs":
		return membership.Acceptance{Decision: membership.Deny, Reason: "The site is denied."}, nil
	default:
		return membership.Acceptance{Decision: membership.Hold, Reason: "The label site is not set."}, nil
	}
})

// agent returns the agent options of a product that sends Works.
func (h *testHub) agent(member fleet.Connected) agent.Options {
	return agent.Options{
		ProbeInterval: 200 * time.Millisecond, HubConfig: func(config *rest.Config) { config.WrapTransport = h.wire.wrap },
		Companions: []agent.Companion{agent.CompanionFunc("works", func(ctx context.Context, hub agent.Hub) error {
			h.hubConfig.Store(rest.CopyConfig(hub.Config))
			a, err := workagent.New(workagent.Options{Hub: hub.Config, Namespace: hub.Member.Namespace, Member: member.Config})
			if err != nil {
				return err
			}
			return a.Start(ctx)
		})},
	}
}

// startManager runs a manager until the test ends.
func (h *testHub) startManager(config *rest.Config, setup func(manager.Manager) error) {
	h.T.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	mustertest.StartManager(h.T, config, manager.Options{Scheme: scheme, Logger: logr.Discard()}, setup)
	h.T.Cleanup(h.settle)
}

// pushUser returns the config of a user who has only the generated roles.
func (h *testHub) pushUser() *rest.Config {
	h.T.Helper()
	const user = "muster-push"
	require.NoError(h.T, mustertest.GrantFiles(h.T.Context(), h.Client, user, "rbac/role.yaml"))
	return h.user(user)
}

// newMember creates a MemberCluster like an administrator.
func (h *testHub) newMember(name string, change func(*v1alpha1.MemberClusterSpec)) *v1alpha1.MemberCluster {
	h.T.Helper()
	cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MemberClusterSpec{
		JoinMode: v1alpha1.JoinPush, KubeConfigSecretRef: &v1alpha1.KubeConfigSecretRef{Name: name},
		HeartbeatPeriodSeconds: 1,
	}}
	if change != nil {
		change(&cluster.Spec)
	}
	h.Create(cluster)
	return cluster
}

// fleetOf acts as the fleet for one member until stop is called: it calls the runner, and calls it again after an
// error.
type fleetOf struct {
	stop  func()
	ended chan struct{} // closed when the runner has returned without an error

	mu   sync.Mutex
	last error
}

func (h *testHub) run(cluster *v1alpha1.MemberCluster) *fleetOf {
	ctx, cancel := context.WithCancel(context.Background())
	f := &fleetOf{ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		for {
			err := h.runner.Run(ctx, fleet.Connected{Cluster: cluster, Config: rest.CopyConfig(h.memberConfig)})
			if err == nil {
				return
			}
			f.mu.Lock()
			f.last = err
			f.mu.Unlock()
			select {
			case <-ctx.Done():
				return
			case <-time.After(interval):
			}
		}
	}()
	f.stop = func() {
		cancel()
		<-f.ended
	}
	h.T.Cleanup(f.stop)
	return f
}

// killAfterEach kills the runner at its first request, the next one at its second, and so on until done.
func (h *testHub) killAfterEach(cluster *v1alpha1.MemberCluster, done func() bool) (kills int) {
	h.T.Helper()
	for !done() {
		kills++
		h.killAfter(cluster, kills, done)
	}
	return kills
}

// killAfter calls the runner, and ends it after the response to its n-th request, or when done returns true.
func (h *testHub) killAfter(cluster *v1alpha1.MemberCluster, n int, done func() bool) {
	h.T.Helper()
	ctx, kill := context.WithCancel(context.Background())
	defer kill()
	var mu sync.Mutex
	afterResponse := func(request *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if request.URL.Query().Get("watch") == "" {
			if n--; n <= 0 {
				kill()
			}
		}
	}
	h.wire.after.Store(&afterResponse)
	defer h.wire.after.Store(nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if h.runner.Run(ctx, fleet.Connected{Cluster: cluster, Config: rest.CopyConfig(h.memberConfig)}) == nil {
				return
			}
			<-time.After(interval) // Without a wait, virtual time would not advance.
		}
	}()
	deadline := time.After(timeout)
	for {
		select {
		case <-ended:
			return
		case <-deadline:
			h.T.Fatalf("want more requests of the runner within %s", timeout)
		case <-time.After(interval):
			if done() {
				kill()
			}
		}
	}
}

func (f *fleetOf) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// requestHooks observes all requests of the runner and of its agents to the hub.
type requestHooks struct {
	before atomic.Pointer[func(*http.Request)] // called with each request before it is sent
	after  atomic.Pointer[func(*http.Request)] // called with each request after its response
}

func (h *requestHooks) wrap(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(request *http.Request) (*http.Response, error) {
		if before := h.before.Load(); before != nil {
			(*before)(request)
		}
		response, err := next.RoundTrip(request)
		if after := h.after.Load(); after != nil {
			(*after)(request)
		}
		return response, err
	})
}

// log returns a function that returns the requests since its last call, without watches.
func (h *requestHooks) log() (sent func() []string) {
	var mu sync.Mutex
	var all []string
	record := func(request *http.Request) {
		if request.URL.Query().Get("watch") == "" {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, request.Method+" "+request.URL.Path)
		}
	}
	h.before.Store(&record)
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := all
		all = nil
		return out
	}
}

// change changes a MemberCluster like an administrator.
func (h *testHub) change(name string, change func(*v1alpha1.MemberClusterSpec)) {
	h.T.Helper()
	h.update(name, func(cluster *v1alpha1.MemberCluster) { change(&cluster.Spec) })
}

// setSite labels a MemberCluster like an administrator.
func (h *testHub) setSite(name, site string) {
	h.T.Helper()
	h.update(name, func(cluster *v1alpha1.MemberCluster) { cluster.Labels = map[string]string{"site": site} })
}

func (h *testHub) update(name string, change func(*v1alpha1.MemberCluster)) {
	h.T.Helper()
	mustertest.Eventually(h.T, timeout, "MemberCluster "+name+" can be changed", func() error {
		cluster := &v1alpha1.MemberCluster{}
		if err := h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
			return err
		}
		change(cluster)
		return h.Client.Update(h.T.Context(), cluster)
	})
}

// waitForPhase waits for a phase and returns the MemberCluster in it.
func (h *testHub) waitForPhase(name string, phase v1alpha1.Phase) *v1alpha1.MemberCluster {
	h.T.Helper()
	cluster := &v1alpha1.MemberCluster{}
	mustertest.Eventually(h.T, timeout, fmt.Sprintf("member %s is %s", name, phase), func() error {
		if err := h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
			return err
		}
		if cluster.Status.Phase != phase {
			return fmt.Errorf("the phase is %s: %s", cluster.Status.Phase, messages(cluster.Status.Conditions))
		}
		return nil
	})
	return cluster
}

// waitForHealthy waits for a status of the condition Healthy and returns that.
func (h *testHub) waitForHealthy(name string, status metav1.ConditionStatus) metav1.Condition {
	h.T.Helper()
	var healthy *metav1.Condition
	mustertest.Eventually(h.T, timeout, fmt.Sprintf("member %s has Healthy=%s", name, status), func() error {
		cluster := &v1alpha1.MemberCluster{}
		if err := h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
			return err
		}
		if healthy = meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionHealthy); healthy == nil ||
			healthy.Status != status {
			return errors.New(messages(cluster.Status.Conditions))
		}
		return nil
	})
	return *healthy
}

func messages(conditions []metav1.Condition) string {
	var out []string
	for _, c := range conditions {
		out = append(out, fmt.Sprintf("%s=%s, %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(out, "; ")
}

// remove deletes a MemberCluster and waits until it is gone.
func (h *testHub) remove(name string) {
	h.T.Helper()
	require.NoError(h.T,
		client.IgnoreNotFound(h.Client.Delete(h.T.Context(),
			&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	mustertest.Eventually(h.T, timeout, "MemberCluster "+name+" is deleted", func() error {
		cluster := &v1alpha1.MemberCluster{}
		err := h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, cluster)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s: %s (%w)", cluster.Status.Phase, messages(cluster.Status.Conditions), err)
	})
}

// remaining lists the objects of members on the hub, without their MemberClusters.
func (h *testHub) remaining() []string {
	h.T.Helper()
	ofMembers := client.HasLabels{membership.MemberLabel}
	var out []string
	for _, query := range []struct {
		list    client.ObjectList
		options []client.ListOption
	}{
		{&corev1.SecretList{}, []client.ListOption{client.InNamespace(membership.ConnectionNamespace)}},
		{&corev1.SecretList{}, []client.ListOption{client.InNamespace(membership.RegistrationNamespace)}},
		{&corev1.ServiceAccountList{}, []client.ListOption{client.InNamespace(membership.RegistrationNamespace)}},
		{&rbacv1.RoleBindingList{}, []client.ListOption{client.InNamespace(membership.RegistrationNamespace)}},
		{&v1alpha1.JoinTokenList{}, nil},
		{&v1alpha1.JoinRequestList{}, nil},
		{&v1alpha1.MembershipList{}, nil},
		{&workv1alpha1.WorkList{}, nil},
		{&corev1.NamespaceList{}, []client.ListOption{ofMembers}},
		{&rbacv1.ClusterRoleBindingList{}, []client.ListOption{ofMembers}},
	} {
		require.NoError(h.T, h.Client.List(h.T.Context(), query.list, query.options...))
		require.NoError(h.T, meta.EachListItem(query.list, func(object runtime.Object) error {
			o := object.(client.Object)
			// without the ServiceAccount of every namespace and the binding of the test
			if o.GetName() != "default" && o.GetName() != "muster-push-muster-push" {
				out = append(out, fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName()))
			}
			return nil
		}))
	}
	return out
}

// waitUntilClean waits until no objects of members exist, including those that the garbage collector deletes.
func (h *testHub) waitUntilClean() {
	h.T.Helper()
	mustertest.Eventually(h.T, timeout, "no objects of members remain on the hub", func() error {
		if remaining := h.remaining(); len(remaining) > 0 {
			return fmt.Errorf("remaining objects: %s", strings.Join(remaining, ", "))
		}
		return nil
	})
}
