package install_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
	"github.com/muster-sdk/muster/membership/install"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// plane is hub and member at the same time. Each test installs objects in a separate namespace. The definitions are
// installed before the garbage collector starts, because it discovers later ones only twice a minute, and a JoinToken
// is not replaced before the Secret of the former one is deleted.
var plane = localplane.Shared{Options: localplane.Options{
	Name: "install", Prepare: mustertest.Prepare(newScheme(), crds.Install)}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

const (
	timeout  = 3 * time.Minute
	interval = 25 * time.Millisecond
)

func newScheme() *runtime.Scheme { return mustertest.Scheme(v1alpha1.AddToScheme) }

// An apiServer is a control plane or an API server in memory.
type apiServer interface {
	Config() *rest.Config
	User(name string, groups ...string) *rest.Config
}

// memoryServer is an API server in memory, for tests in virtual time.
type memoryServer struct{ server *apiserver.Server }

func newMemory(t testing.TB) memoryServer {
	t.Helper()
	return memoryServer{testkit.Memory(t, newScheme(), crds.Install)}
}

// Config returns the config of an administrator.
func (m memoryServer) Config() *rest.Config { return m.server.Admin() }

// User returns the config of a user in these groups.
func (m memoryServer) User(name string, groups ...string) *rest.Config {
	return m.server.Config(name, groups...)
}

// endpoint returns the address and the certificate authority of an API server.
func endpoint(p apiServer) (server string, ca []byte) {
	if memory, ok := p.(memoryServer); ok {
		return memory.server.URL(), memory.server.CertificateAuthority()
	}
	config := p.Config()
	return config.Host, config.CAData
}

// address sets the address for agents in the options of a hub on a server in memory, whose configs contain none.
func address(p apiServer, options *install.Options) {
	if _, ok := p.(memoryServer); !ok {
		return
	}
	server, ca := endpoint(p)
	options.Server = server
	if options.CA == nil {
		options.CA = ca
	}
}

// testHub is a hub whose user has only the generated roles of the hub and of this package.
type testHub struct {
	t         *testing.T
	plane     apiServer
	client    client.Client // of an administrator
	namespace string        // on the member
	runner    *install.Runner
	requests  *counter // of the Runner and of the hub together
	stop      func()
}

// startHub starts a hub on an API server. Several hubs can run one after the other.
func startHub(t *testing.T, p apiServer, options install.Options, change ...func(*hub.Options)) *testHub {
	t.Helper()
	c := mustertest.Client(t, p.Config(), newScheme(), crds.Install)
	h := &testHub{t: t, plane: p, client: c, requests: &counter{}}
	h.namespace = strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	address(p, &options)
	config := h.requests.wrap(h.user("muster-hub", "../hub/rbac/role.yaml", "rbac/role.yaml"))
	h.stop = h.start(config,
		func(mgr manager.Manager) (err error) {
			h.runner, err = install.New(mgr, options)
			return err
		}, func(mgr manager.Manager) error {
			hubOptions := hub.Options{Gates: []membership.LeaveGate{h.runner}, Server: options.Server, CA: options.CA}
			for _, each := range change {
				each(&hubOptions)
			}
			return hub.SetupWithManager(mgr, hubOptions)
		})
	return h
}

// start starts a manager, and returns a function that stops it after it has processed all events, also at the end of
// the test. A watch of metadata of controller-runtime never ends if it stops while an event is pending, and a test in
// virtual time fails if a goroutine is left.
func (h *testHub) start(config *rest.Config, setups ...func(manager.Manager) error) (stop func()) {
	h.t.Helper()
	end := mustertest.StartManager(h.t, config, manager.Options{Scheme: newScheme()}, setups...)
	if _, ok := h.plane.(memoryServer); !ok {
		return end
	}
	h.t.Cleanup(synctest.Wait)
	return func() {
		synctest.Wait()
		end()
	}
}

// user returns the config of a user who has only the roles in some files.
func (h *testHub) user(name string, files ...string) *rest.Config {
	h.t.Helper()
	ctx := h.t.Context()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.RegistrationNamespace}}
	require.NoError(h.t, client.IgnoreAlreadyExists(h.client.Create(ctx, namespace)))
	require.NoError(h.t, mustertest.GrantFiles(ctx, h.client, name, files...))
	config := h.plane.User(name)
	config.QPS = -1
	return config
}

// member creates a MemberCluster, and deletes it at the end of the test.
func (h *testHub) member(change func(*v1alpha1.MemberCluster)) *v1alpha1.MemberCluster {
	h.t.Helper()
	cluster := &v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: h.namespace},
		Spec: v1alpha1.MemberClusterSpec{
			Accepted: new(true), ClusterID: "id-" + h.namespace, JoinMode: v1alpha1.JoinInstall, HeartbeatPeriodSeconds: 1,
			KubeConfigSecretRef: &v1alpha1.KubeConfigSecretRef{Name: "kubeconfig"},
		},
	}
	change(cluster)
	mustertest.Eventually(h.t, timeout, "the MemberCluster can be created",
		func() error { return h.client.Create(h.t.Context(), cluster) })
	return cluster
}

func unchanged(*v1alpha1.MemberCluster) {}

// connect runs the Runner for a member like a fleet, again after an error.
func (h *testHub) connect(cluster *v1alpha1.MemberCluster, config *rest.Config) (stop func()) {
	h.t.Helper()
	cluster = cluster.DeepCopy() // the test reads into its own object
	return mustertest.Run(h.t, "the runner", func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := h.runner.Run(ctx,
				fleet.Connected{Cluster: cluster.DeepCopy(), Config: rest.CopyConfig(config)}); err == nil {
				return nil
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * interval):
			}
		}
		return nil
	})
}

// agent runs an agent on the member, like the installed workload.
func (h *testHub) agent(clusterID string, changes ...func(*agent.Options)) (stop func()) {
	h.t.Helper()
	options := agent.Options{Namespace: h.namespace, ClusterID: clusterID}
	if memory, ok := h.plane.(memoryServer); ok {
		options.HubConfig = func(config *rest.Config) { config.Dial = memory.server.DialContext }
	}
	for _, change := range changes {
		change(&options)
	}
	return h.start(h.plane.Config(),
		func(mgr manager.Manager) error { return agent.SetupWithManager(mgr, options) })
}

// keepBootstrap keeps the bootstrap credential, so that a test can read the last installed one.
func keepBootstrap(o *agent.Options) { o.KeepBootstrap = true }

// removed waits until the agent has removed its bootstrap credential, and returns the remaining data of the Secret.
func (h *testHub) removed() (data map[string][]byte) {
	h.t.Helper()
	mustertest.Eventually(h.t, timeout, "the agent has removed its bootstrap credential", func() error {
		if data = get(h, &corev1.Secret{}, agent.DefaultBootstrapSecret).Data; data[registration.BootstrapKey] != nil {
			return errors.New("the credential is in the Secret")
		}
		return nil
	})
	return data
}

// manifests returns manifests with a Namespace, a ServiceAccount and a ConfigMap.
func manifests(t *testing.T, version string, more ...client.Object) *install.Manifests {
	namespace := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	return &install.Manifests{
		Version: version, Namespace: namespace,
		Objects: func(install.Target) ([]client.Object, error) {
			objects := []client.Object{
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "agent"}},
				&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, // installed first, regardless of its position
			}
			for _, object := range more {
				objects = append(objects, object.DeepCopyObject().(client.Object))
			}
			return objects, nil
		},
	}
}

// until waits until a condition of the member has a reason.
func (h *testHub) until(condition, reason string) *v1alpha1.MemberCluster {
	h.t.Helper()
	cluster := &v1alpha1.MemberCluster{}
	mustertest.Eventually(h.t, timeout, fmt.Sprintf("%s is %s", condition, reason), func() error {
		if err := h.client.Get(h.t.Context(), client.ObjectKey{Name: h.namespace}, cluster); err != nil {
			return err
		}
		current := meta.FindStatusCondition(cluster.Status.Conditions, condition)
		switch {
		case current == nil:
			return fmt.Errorf("condition %s is missing", condition)
		case current.Reason != reason:
			return fmt.Errorf("the reason is %s: %s", current.Reason, current.Message)
		}
		return nil
	})
	return cluster
}

func message(cluster *v1alpha1.MemberCluster) string {
	return meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionInstalled).Message
}

// change changes the MemberCluster like an administrator.
func (h *testHub) change(change func(*v1alpha1.MemberCluster)) {
	h.t.Helper()
	mustertest.Eventually(h.t, timeout, "the MemberCluster can be changed", func() error {
		cluster := &v1alpha1.MemberCluster{}
		if err := h.client.Get(h.t.Context(), client.ObjectKey{Name: h.namespace}, cluster); err != nil {
			return err
		}
		change(cluster)
		return h.client.Update(h.t.Context(), cluster)
	})
}

// leave deletes the MemberCluster and waits until it is gone.
func (h *testHub) leave() {
	h.t.Helper()
	require.NoError(h.t, h.client.Delete(h.t.Context(),
		&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))
	h.gone(&v1alpha1.MemberCluster{}, "", h.namespace)
}

func (h *testHub) gone(object client.Object, namespace, name string) {
	h.t.Helper()
	mustertest.Eventually(h.t, timeout, fmt.Sprintf("%T %s/%s is gone", object, namespace, name), func() error {
		err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if cluster, ok := object.(*v1alpha1.MemberCluster); ok {
			return fmt.Errorf("the member exists: %s, leave %+v", cluster.Status.Phase, cluster.Status.Leave)
		}
		return fmt.Errorf("the object exists (%w)", err)
	})
}

// get reads an object of the member's namespace.
func get[T client.Object](h *testHub, object T, name string) T {
	h.t.Helper()
	require.NoError(h.t, h.client.Get(h.t.Context(), client.ObjectKey{Namespace: h.namespace, Name: name}, object))
	return object
}

// counter counts requests.
type counter struct{ reads, writes atomic.Int64 }

func (c *counter) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				c.reads.Add(1)
			} else {
				c.writes.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	return config
}

func (c *counter) all() int64 { return c.reads.Load() + c.writes.Load() }
