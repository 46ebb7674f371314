package fleet_test

import (
	"cmp"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// plane is the hub of some tests, and the member of those that need a real one.
var plane = localplane.Shared{Options: localplane.Options{Name: "fleet",
	Prepare: mustertest.Prepare(scheme(), crds.Install, prepare)}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

const maxFailures = 90 * time.Second

var scheme = sync.OnceValue(func() *runtime.Scheme { return mustertest.Scheme(v1alpha1.AddToScheme) })

const hubUser = "muster-hub-fleet"

// An apiServer is a control plane or an API server in memory.
type apiServer interface {
	Config() *rest.Config
	User(name string, groups ...string) *rest.Config
}

// memoryServer is an API server in memory. The members of its hub are servers on real ports, so tests run in real time.
type memoryServer struct{ server *apiserver.Server }

func newMemory(t testing.TB) memoryServer {
	t.Helper()
	return memoryServer{testkit.Memory(t, scheme(), crds.Install, prepare)}
}

// Config returns the config of an administrator.
func (m memoryServer) Config() *rest.Config { return m.server.Admin() }

// User returns the config of a user in these groups.
func (m memoryServer) User(name string, groups ...string) *rest.Config {
	return m.server.Config(name, groups...)
}

// prepare creates the generated roles, and grants only these to the hub's user.
func prepare(ctx context.Context, admin client.Client) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.ConnectionNamespace}}
	if err := client.IgnoreAlreadyExists(admin.Create(ctx, namespace)); err != nil {
		return err
	}
	return mustertest.GrantFiles(ctx, admin, hubUser, "rbac/role.yaml")
}

// hub is a fleet that runs on an API server, with helpers for its tests.
type hub struct {
	*testkit.Hub
	fleet *fleet.Fleet
	stop  func()
	// elected is closed when the replica becomes the leader.
	elected <-chan struct{}
	// requests are the requests of the fleet to the hub. A watch is added once.
	requests *requests
}

func startHub(t testing.TB, p apiServer, options fleet.Options) *hub {
	t.Helper()
	return startReplica(t, p, options, manager.Options{})
}

func startReplica(t testing.TB, p apiServer, options fleet.Options, o manager.Options) *hub {
	t.Helper()
	h := &hub{Hub: testkit.NewHub(t, p.Config(), scheme()), requests: &requests{}}
	config := p.User(hubUser)
	config.Wrap(h.requests.count)
	logger := logr.Discard()
	if os.Getenv("MUSTER_TEST_LOGS") != "" {
		if tt, ok := t.(*testing.T); ok {
			logger = testr.New(tt)
		}
	}
	o.Scheme, o.Logger = scheme(), logger
	options.ProbeInterval = cmp.Or(options.ProbeInterval, 150*time.Millisecond)
	options.ProbeTimeout = cmp.Or(options.ProbeTimeout, 2*time.Second)
	h.stop = mustertest.StartManager(t, config, o, func(mgr manager.Manager) (err error) {
		h.fleet, err = fleet.SetupWithManager(mgr, options)
		h.elected = mgr.Elected()
		return err
	})
	return h
}

// requests counts requests.
type requests struct {
	mu sync.Mutex
	by []string
}

func (r *requests) count(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(request *http.Request) (*http.Response, error) {
		r.add(request.Method + " " + request.URL.Path)
		return next.RoundTrip(request)
	})
}

func (r *requests) add(request string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by = append(r.by, request)
}

// take returns the requests since its last call.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.by
	r.by = nil
	return taken
}

func orError(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// member creates a MemberCluster, and a Secret of the same name with this data; nil: none.
func (h *hub) member(name string, data map[string]string,
	changes ...func(*v1alpha1.MemberCluster)) *v1alpha1.MemberCluster {
	h.T.Helper()
	if data != nil {
		h.secret(name, data)
	}
	cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.KubeConfigSecretRef = &v1alpha1.KubeConfigSecretRef{Name: name}
	for _, change := range changes {
		change(cluster)
	}
	h.Create(cluster)
	h.T.Cleanup(func() {
		_ = h.Client.Delete(context.Background(), cluster)
		_ = h.Client.Delete(context.Background(), secretOf(name))
	})
	return cluster
}

func secretOf(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: membership.ConnectionNamespace, Name: name}}
}

// secret replaces the data of a Secret.
func (h *hub) secret(name string, data map[string]string) {
	h.T.Helper()
	secret := secretOf(name)
	secret.StringData = data
	err := h.Client.Create(h.T.Context(), secret)
	if err != nil {
		require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(secret), secret))
		secret.Data, secret.StringData = nil, data
		err = h.Client.Update(h.T.Context(), secret)
	}
	require.NoError(h.T, err)
}

func (h *hub) get(name string) *v1alpha1.MemberCluster {
	h.T.Helper()
	cluster := &v1alpha1.MemberCluster{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, cluster))
	return cluster
}

// reachable waits until the condition has the reason, and returns it.
func (h *hub) reachable(name, reason string) metav1.Condition {
	h.T.Helper()
	var got metav1.Condition
	h.Eventually(name+" is "+reason, func() error {
		condition := meta.FindStatusCondition(h.get(name).Status.Conditions, v1alpha1.ConditionReachable)
		if condition == nil {
			return fmt.Errorf("no condition Reachable")
		}
		got = *condition
		return orError(got.Reason == reason, "%s: %s", got.Reason, got.Message)
	})
	want := metav1.ConditionFalse
	if reason == v1alpha1.ReasonReachable {
		want = metav1.ConditionTrue
	}
	require.Equal(h.T, want, got.Status)
	return got
}

// change changes a member's spec, and status its status.
func (h *hub) change(name string, change func(*v1alpha1.MemberCluster)) {
	h.T.Helper()
	h.Eventually(name+" is changed", func() error {
		cluster := h.get(name)
		change(cluster)
		return h.Client.Update(h.T.Context(), cluster)
	})
}

func (h *hub) status(name string, change func(*v1alpha1.MemberCluster)) {
	h.T.Helper()
	h.Eventually("the status of "+name+" is changed", func() error {
		cluster := h.get(name)
		change(cluster)
		return h.Client.Status().Update(h.T.Context(), cluster)
	})
}

func (h *hub) joined(name string, status metav1.ConditionStatus) {
	h.T.Helper()
	h.status(name, func(cluster *v1alpha1.MemberCluster) {
		meta.SetStatusCondition(&cluster.Status.Conditions,
			metav1.Condition{Type: v1alpha1.ConditionJoined, Status: status, Reason: "Test"})
	})
}

// fake is a fake member with the endpoints that the hub uses.
type fake struct {
	*httptest.Server
	requests requests
	uid      atomic.Value // of the namespace kube-system
	token    atomic.Value // that the member accepts
	fails    atomic.Bool
	hangs    atomic.Bool  // no response, except for probes
	open     atomic.Int32 // connections
}

func newFake(t testing.TB, uid string) *fake {
	t.Helper()
	f := &fake{}
	f.uid.Store(uid)
	f.token.Store("good")
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.requests.add(r.Method + " " + r.URL.Path)
		switch {
		case f.fails.Load():
			w.WriteHeader(http.StatusInternalServerError)
		case r.Header.Get("Authorization") != "Bearer "+f.token.Load().(string):
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/api/v1/namespaces/kube-system":
			_, _ = fmt.Fprintf(w, `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": %q}}`,
				f.uid.Load())
		case f.hangs.Load() && r.URL.Path != "/readyz":
			<-r.Context().Done()
		default:
			_, _ = io.WriteString(w, "ok")
		}
	}))
	f.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			f.open.Add(1)
		case http.StateClosed:
			f.open.Add(-1)
		default: // intermediate states
		}
	}
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

// data returns the data of a Secret for the member.
func (f *fake) data() map[string]string {
	return map[string]string{
		"server": f.URL, "token": f.token.Load().(string),
		"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})),
	}
}

// recorder is a Runner that records its calls.
type recorder struct {
	calls chan *call
	run   func(ctx context.Context, member fleet.Connected) error // nil: until the context ends
}

type call struct {
	fleet.Connected
	ctx    context.Context
	ended  chan struct{}
	client *http.Client
}

func newRecorder() *recorder { return &recorder{calls: make(chan *call, 100)} }

func (*recorder) Name() string { return "recorder" }

func (r *recorder) Run(ctx context.Context, member fleet.Connected) error {
	httpClient, err := rest.HTTPClientFor(member.Config)
	if err != nil {
		return err
	}
	c := &call{Connected: member, ctx: ctx, ended: make(chan struct{}), client: httpClient}
	defer close(c.ended)
	r.calls <- c
	if r.run != nil {
		return r.run(ctx, member)
	}
	<-ctx.Done()
	return nil
}

// called waits for the next call of the runner.
func (r *recorder) called(t testing.TB) *call {
	t.Helper()
	select {
	case c := <-r.calls:
		return c
	case <-time.After(maxFailures):
		t.Fatal("the runner was not called")
		return nil
	}
}

func (r *recorder) requireNotCalled(t testing.TB) {
	t.Helper()
	require.Empty(t, r.calls, "the runner was called again")
}

// get sends a request to the member with the config of the call.
func (c *call) get(path string) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Config.Host+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func (c *call) wait(t testing.TB) {
	t.Helper()
	select {
	case <-c.ended:
	case <-time.After(maxFailures):
		t.Fatal("the runner has not returned")
	}
}
