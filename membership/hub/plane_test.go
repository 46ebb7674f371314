package hub_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
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
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// plane is the plane of the tests of what only Kubernetes does. All other tests run in memory.
var plane = localplane.NewPool(1, localplane.Options{Name: "hub"})

func TestMain(m *testing.M) { mustertest.Main(m, plane.Shared()...) }

const (
	// timeLimit is for one event, on a busy machine. Informers that have lost their API server
	// for some time wait for up to a minute before they try again (30 s in client-go, and jitter).
	timeLimit = 2 * time.Minute
	interval  = 25 * time.Millisecond
)

func newScheme() *runtime.Scheme { return mustertest.Scheme(v1alpha1.AddToScheme) }

// An apiServer is a control plane or an API server in memory.
type apiServer interface {
	Config() *rest.Config
	User(name string, groups ...string) *rest.Config
}

// memoryServer is an API server in memory, for tests in virtual time.
type memoryServer struct {
	server  *apiserver.Server
	waiting chan struct{} // contains an element during synctest.Wait, which must not be called concurrently
}

func newMemory(t testing.TB) memoryServer {
	t.Helper()
	return memoryServer{testkit.Memory(t, newScheme(), crds.Install, crds.InstallPolicies), make(chan struct{}, 1)}
}

// Config returns the config of an administrator.
func (m memoryServer) Config() *rest.Config { return m.server.Admin() }

// User returns the config of a user in these groups.
func (m memoryServer) User(name string, groups ...string) *rest.Config {
	return m.server.Config(name, groups...)
}

// testHub is a hub on an API server. Several of them can run one after the other on one server.
type testHub struct {
	*testkit.Hub
	plane apiServer
	stop  func()
}

// startHub runs a hub until its stop is called, or the test ends. The hub has only the permissions in the folder rbac.
func startHub(t testing.TB, p apiServer, hubOptions hub.Options,
	wraps ...func(*rest.Config) *rest.Config) *testHub {
	t.Helper()
	h := &testHub{Hub: testkit.NewHub(t, p.Config(), newScheme(), crds.Install, crds.InstallPolicies), plane: p}
	address(p, &hubOptions)
	config := hubUser(t, p, h.Client)
	for _, wrap := range wraps {
		config = wrap(config)
	}
	options := manager.Options{Scheme: newScheme(), Logger: testLogger(t, "hub")}
	stop := mustertest.StartManager(t, config, options,
		func(mgr manager.Manager) error { return hub.SetupWithManager(mgr, hubOptions) })
	h.stop = whenIdle(t, p, stop)
	return h
}

// whenIdle returns a function that stops a manager after it has processed all events, also at the end of the test. A
// watch of metadata of controller-runtime never ends if it stops while an event is pending, and a test in virtual time
// fails if a goroutine is left.
func whenIdle(t testing.TB, p apiServer, stop func()) func() {
	memory, ok := p.(memoryServer)
	if !ok {
		return stop
	}
	t.Cleanup(synctest.Wait)
	return func() {
		memory.waiting <- struct{}{}
		synctest.Wait()
		<-memory.waiting
		stop()
	}
}

// address sets the address for agents in the options of a hub on a server in memory, whose configs contain none.
func address(p apiServer, options *hub.Options) {
	if memory, ok := p.(memoryServer); ok {
		options.Server, options.CA = memory.server.URL(), memory.server.CertificateAuthority()
	}
}

// connect changes a config with the address of the hub so that it reaches a server in memory.
func (h *testHub) connect(config *rest.Config) {
	if memory, ok := h.plane.(memoryServer); ok {
		config.Dial = memory.server.DialContext
	}
}

// withCertificate returns the config of a user with a client certificate and with connections of its own, for a hub on
// a server in memory.
func (h *testHub) withCertificate(user string) *rest.Config {
	h.T.Helper()
	config, err := h.plane.(memoryServer).server.ConfigTLS(user)
	require.NoError(h.T, err)
	return config
}

// hubUser returns the config of a user who has the generated roles and no other permissions.
func hubUser(t testing.TB, p apiServer, admin client.Client) *rest.Config {
	t.Helper()
	const user = "muster-hub"
	ctx := t.Context()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.RegistrationNamespace}}
	require.NoError(t, client.IgnoreAlreadyExists(admin.Create(ctx, namespace)))
	require.NoError(t, mustertest.GrantFiles(ctx, admin, user, "rbac/role.yaml"))
	config := p.User(user)
	config.QPS = -1
	return config
}

func testLogger(t testing.TB, name string) logr.Logger {
	if os.Getenv("MUSTER_TEST_LOGS") == "" {
		return logr.Discard()
	}
	return testingLogger(t, name)
}

// token creates a JoinToken and returns its bootstrap credential.
func (h *testHub) token(name string, spec v1alpha1.JoinTokenSpec) *registration.Bootstrap {
	h.T.Helper()
	return h.tokenIn(membership.RegistrationNamespace, name, spec)
}

// tokenIn is like token, for a hub with another registration namespace.
func (h *testHub) tokenIn(namespace, name string, spec v1alpha1.JoinTokenSpec) *registration.Bootstrap {
	h.T.Helper()
	ctx := h.T.Context()
	token := &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
	h.Eventually("JoinToken "+name+" is created",
		func() error { return client.IgnoreAlreadyExists(h.Client.Create(ctx, token)) })
	h.T.Cleanup(func() { _ = h.Client.Delete(context.Background(), token) })
	var bootstrap *registration.Bootstrap
	h.Eventually("JoinToken "+name+" has a credential", func() error {
		var secret corev1.Secret
		if err := h.Client.Get(ctx, client.ObjectKeyFromObject(token), &secret); err != nil {
			return err
		}
		var err error
		if bootstrap, err = registration.ParseBootstrap(secret.Data[registration.BootstrapKey]); err != nil {
			return err
		}
		if err := h.Client.Get(ctx, client.ObjectKeyFromObject(token), token); err != nil {
			return err
		}
		return orError(meta.IsStatusConditionTrue(token.Status.Conditions, v1alpha1.ConditionReady), "%s",
			messages(token.Status.Conditions))
	})
	return bootstrap
}

// pause waits. It is for polls that have a separate deadline.
func pause(d time.Duration) { <-time.After(d) }

func (h *testHub) member(name string) *v1alpha1.MemberCluster {
	h.T.Helper()
	cluster := &v1alpha1.MemberCluster{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, cluster))
	return cluster
}

// change changes a MemberCluster like an administrator.
func (h *testHub) change(name string, change func(*v1alpha1.MemberCluster)) {
	h.T.Helper()
	h.Eventually("MemberCluster "+name+" can be changed", func() error {
		cluster := &v1alpha1.MemberCluster{}
		if err := h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
			return err
		}
		change(cluster)
		return h.Client.Update(h.T.Context(), cluster)
	})
}

// remove deletes a MemberCluster and waits until it is gone.
func (h *testHub) remove(name string) {
	h.T.Helper()
	require.NoError(h.T, h.Client.Delete(h.T.Context(),
		&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	h.untilGone(name)
}

func (h *testHub) untilGone(name string) {
	h.T.Helper()
	h.Eventually("MemberCluster "+name+" is gone", func() error {
		cluster := &v1alpha1.MemberCluster{}
		err := h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, cluster)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%w: the phase is %s, leave %+v: %s", cmp.Or(err, errors.New("the MemberCluster exists")),
			cluster.Status.Phase,
			cluster.Status.Leave, messages(cluster.Status.Conditions))
	})
}

func (h *testHub) untilPhase(name string, phase v1alpha1.Phase) *v1alpha1.MemberCluster {
	h.T.Helper()
	cluster := &v1alpha1.MemberCluster{}
	h.Eventually(fmt.Sprintf("member %s is %s", name, phase), func() error {
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

// untilCondition waits for a condition's status and reason.
func (h *testHub) untilCondition(name, kind string, status metav1.ConditionStatus,
	reason string) *v1alpha1.MemberCluster {
	h.T.Helper()
	cluster := &v1alpha1.MemberCluster{}
	h.Eventually(fmt.Sprintf("member %s has %s=%s, %s", name, kind, status, reason), func() error {
		if err := h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(cluster.Status.Conditions, kind); c == nil || c.Status != status ||
			c.Reason != reason {
			return fmt.Errorf("the conditions are %s", messages(cluster.Status.Conditions))
		}
		return nil
	})
	return cluster
}

func messages(conditions []metav1.Condition) string {
	var out []string
	for _, c := range conditions {
		out = append(out, fmt.Sprintf("%s=%s, %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(out, "; ")
}

// request waits until the JoinRequest of a cluster ID has an answer.
func (h *testHub) request(clusterID string, answer v1alpha1.JoinAnswer, reason string) *v1alpha1.JoinRequest {
	h.T.Helper()
	return h.requestIn(membership.RegistrationNamespace, clusterID, answer, reason)
}

// requestIn is like request, for a hub with another registration namespace.
func (h *testHub) requestIn(namespace, clusterID string, answer v1alpha1.JoinAnswer,
	reason string) *v1alpha1.JoinRequest {
	h.T.Helper()
	var found *v1alpha1.JoinRequest
	h.Eventually(fmt.Sprintf("the request of %s is %s, %s", clusterID, answer, reason), func() error {
		var list v1alpha1.JoinRequestList
		if err := h.Client.List(h.T.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		seen := "no request"
		for i := range list.Items {
			request := &list.Items[i]
			issued := meta.FindStatusCondition(request.Status.Conditions, v1alpha1.ConditionIssued)
			if request.Spec.ClusterID != clusterID || issued == nil {
				continue
			}
			if request.Status.Answer == answer && issued.Reason == reason {
				found = request
				return nil
			}
			seen = fmt.Sprintf("%s, %s: %s", request.Status.Answer, issued.Reason, issued.Message)
		}
		return fmt.Errorf("found %s", seen)
	})
	return found
}

// testAgent is an agent whose member is the hub's own plane, with a separate cluster ID. It can be killed, and started
// again with its record.
type testAgent struct {
	t        testing.TB
	plane    apiServer
	home     *rest.Config
	options  agent.Options
	store    *testkit.MemoryStore
	stop     func()
	lastStep atomic.Pointer[lifecycle.AgentStep]
}

// step returns the last step that the agent has reported.
func (a *testAgent) step() lifecycle.AgentStep {
	if step := a.lastStep.Load(); step != nil {
		return *step
	}
	return lifecycle.AgentStep{}
}

// rejectedWith reports whether the agent is rejected, with this text in its message.
func (a *testAgent) rejectedWith(text string) bool {
	return a.step().Phase == lifecycle.Rejected && strings.Contains(a.step().Message, text)
}

// newAgent returns an agent that is not started. Its cluster ID is its name unless the options contain another one.
func (h *testHub) newAgent(bootstrap *registration.Bootstrap, options agent.Options) *testAgent {
	a := &testAgent{t: h.T, plane: h.plane, home: rest.CopyConfig(h.Config), store: &testkit.MemoryStore{},
		options: options, stop: func() {}}
	a.home.WrapTransport = nil
	a.options.Store = a.store
	if a.options.OnPhase == nil {
		a.options.OnPhase = func(step lifecycle.AgentStep) { a.lastStep.Store(&step) }
	}
	a.options.HubConfig = func(config *rest.Config) {
		h.connect(config)
		if options.HubConfig != nil {
			options.HubConfig(config)
		}
	}
	if a.options.ClusterID == "" {
		a.options.ClusterID = "id-" + options.Name
	}
	if bootstrap != nil {
		a.options.Bootstrap = agent.BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) {
			return bootstrap,
				nil
		})
	}
	return a
}

func (a *testAgent) start() *testAgent {
	a.t.Helper()
	options := manager.Options{Scheme: newScheme(), Logger: testLogger(a.t, a.options.Name)}
	stop := mustertest.StartManager(a.t, rest.CopyConfig(a.home), options, func(mgr manager.Manager) error {
		return agent.SetupWithManager(mgr, a.options)
	})
	a.stop = whenIdle(a.t, a.plane, stop)
	return a
}

// joined starts an agent and waits until its cluster has joined, with a heartbeat each second.
func (h *testHub) joined(bootstrap *registration.Bootstrap, options agent.Options) *testAgent {
	h.T.Helper()
	h.Create(&v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: options.Name},
		Spec: v1alpha1.MemberClusterSpec{
			Accepted: new(true), ClusterID: "id-" + options.Name, HeartbeatPeriodSeconds: 1,
		},
	})
	a := h.newAgent(bootstrap, options).start()
	h.untilCondition(options.Name, v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
	return a
}

// requests counts requests to the API server, by method and resource.
type requests struct {
	mu    sync.Mutex
	count map[string]int
	last  map[string]time.Time
}

// wrap changes a config so that its requests are counted.
func (r *requests) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{r, next} })
	return config
}

// counting is a transport whose requests are counted.
type counting struct {
	*requests
	next http.RoundTripper
}

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	c.add(request, response)
	return response, err
}

// WrappedRoundTripper lets client-go find the connections to close.
func (c counting) WrappedRoundTripper() http.RoundTripper { return c.next }

func (r *requests) add(request *http.Request, response *http.Response) {
	attributes := mustertest.AttributesOf(request)
	key := request.Method + " " + attributes.Resource
	if attributes.Verb == "watch" {
		key = "WATCH " + attributes.Resource
	}
	if response != nil && response.StatusCode >= http.StatusBadRequest {
		key += fmt.Sprintf(" (%d)", response.StatusCode)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count, r.last = map[string]int{}, map[string]time.Time{}
	}
	r.count[key]++
	r.last[key] = time.Now()
}

// at returns the time of the last such request.
func (r *requests) at(key string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[key]
}

// take returns the counts since its last call.
func (r *requests) take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := r.count
	r.count = nil
	return count
}

// writes returns the counts of the requests that change an object. A request that was refused is not counted.
func writes(count map[string]int) map[string]int {
	out := map[string]int{}
	for key, n := range count {
		if !strings.HasPrefix(key, "GET ") && !strings.HasPrefix(key, "WATCH ") && !strings.HasSuffix(key, ")") {
			out[key] = n
		}
	}
	return out
}
