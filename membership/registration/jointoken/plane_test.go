package jointoken

import (
	"context"
	"net/http"
	"sync/atomic"
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
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/internal/regtest"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

const namespace = membership.RegistrationNamespace

// plane is the hub of some tests. The definitions are installed before the garbage collector starts, because it
// discovers later ones only twice a minute.
var plane = localplane.Shared{Options: localplane.Options{
	Name: "jointoken", Prepare: mustertest.Prepare(regtest.Scheme(), crds.Install)}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

// An apiServer is the control plane or an API server in memory.
type apiServer interface {
	Config() *rest.Config // of an administrator, with the address and the CA of the server
	User(name string, groups ...string) *rest.Config
	// Address sets the address in the options of a manager with the config of a User.
	Address(options Options) Options
	// Connect changes a config with the address of the server so that it reaches the server.
	Connect(config *rest.Config) *rest.Config
	// Settle waits before a manager stops.
	Settle()
}

type planeServer struct{ *localplane.Plane }

func onPlane(t testing.TB) apiServer                         { return planeServer{plane.ForTest(t)} }
func (planeServer) Address(options Options) Options          { return options }
func (planeServer) Connect(config *rest.Config) *rest.Config { return config }
func (planeServer) Settle()                                  {}

// memoryServer is an API server in memory, for tests in virtual time.
type memoryServer struct {
	t      testing.TB
	server *apiserver.Server
}

func inMemory(t testing.TB) apiServer {
	t.Helper()
	return memoryServer{t, testkit.Memory(t, regtest.Scheme(), crds.Install)}
}

func (m memoryServer) Config() *rest.Config {
	config, err := m.server.ConfigTLS("admin", "system:masters")
	require.NoError(m.t, err)
	return config
}

// User returns a config without connections: when a manager stops, a watch of metadata on a connection may leave a
// goroutine.
func (m memoryServer) User(name string, groups ...string) *rest.Config {
	return m.server.Config(name, groups...)
}

func (m memoryServer) Address(options Options) Options {
	if options.Server == "" {
		options.Server = m.server.URL()
	}
	options.CA = m.server.CertificateAuthority()
	return options
}

func (m memoryServer) Connect(config *rest.Config) *rest.Config {
	config.Dial = m.server.DialContext
	return config
}

// Settle waits until all events are processed: a watch of metadata of controller-runtime never ends if it stops while
// an event is pending, and a test in virtual time fails if a goroutine is left.
func (memoryServer) Settle() {
	<-time.After(time.Second)
	synctest.Wait()
}

// hub is a hub with a running controller, whose user has exactly the permissions of the RBAC markers.
type hub struct {
	*testkit.Hub
	server   apiServer
	clock    *clocktesting.FakePassiveClock
	requests atomic.Int64 // of the controller
	stop     func()
}

func newHubWithoutController(t testing.TB, server apiServer) *hub {
	t.Helper()
	h := &hub{Hub: testkit.NewHub(t, server.Config(), regtest.Scheme()), server: server,
		clock: clocktesting.NewFakePassiveClock(time.Now())}
	err := h.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	require.NoError(t, client.IgnoreAlreadyExists(err))
	regtest.Create(t, h.Client, registration.BootstrapRole())
	return h
}

func newHub(t testing.TB, server apiServer) *hub {
	t.Helper()
	h := newHubWithoutController(t, server)
	regtest.Grant(t, h.Client, "hub")
	h.grantBootstrapTokens("hub")
	cfg := server.User("hub")
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			h.requests.Add(1)
			return next.RoundTrip(r)
		})
	})
	h.start(cfg, Options{Clock: h.clock, BootstrapTokens: true})
	return h
}

// grantBootstrapTokens grants a user the generated Role for bootstrap tokens.
func (h *hub) grantBootstrapTokens(user string) {
	require.NoError(h.T, mustertest.GrantFiles(h.T.Context(), h.Client, user, "../../hub/rbac/bootstrap-tokens.yaml"))
}

func managerOptions() ctrl.Options {
	return ctrl.Options{Scheme: regtest.Scheme(), Logger: logr.Discard()}
}

func (h *hub) start(cfg *rest.Config, options Options) {
	stop := mustertest.StartManager(h.T, cfg, managerOptions(),
		func(mgr ctrl.Manager) error { return SetupWithManager(mgr, h.server.Address(options)) })
	h.T.Cleanup(h.server.Settle)
	h.stop = func() {
		h.server.Settle()
		stop()
	}
}

// token creates a JoinToken, and deletes it at the end of the test.
func (h *hub) token(name string, spec v1alpha1.JoinTokenSpec) *v1alpha1.JoinToken {
	token := &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: spec}
	regtest.Create(h.T, h.Client, token)
	return token
}

// waitFor waits until a token has a reason, and returns it.
func (h *hub) waitFor(token *v1alpha1.JoinToken, reason string,
	is ...func(*v1alpha1.JoinToken) bool) *v1alpha1.JoinToken {
	h.T.Helper()
	h.Holds(reason, func() bool {
		require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(token), token))
		ready := meta.FindStatusCondition(token.Status.Conditions, v1alpha1.ConditionReady)
		ok := ready != nil && ready.Reason == reason && ready.ObservedGeneration == token.Generation
		for _, is := range is {
			ok = ok && is(token)
		}
		return ok
	})
	return token
}

// advance sets the clock forward and triggers a reconcile of the token.
func (h *hub) advance(token *v1alpha1.JoinToken, d time.Duration) {
	h.T.Helper()
	h.clock.SetTime(h.clock.Now().Add(d))
	before := token.DeepCopy()
	metav1.SetMetaDataAnnotation(&token.ObjectMeta, "example.com/now", h.clock.Now().Format(time.RFC3339Nano))
	require.NoError(h.T, h.Client.Patch(h.T.Context(), token, client.MergeFrom(before)))
}

func (h *hub) secret(token *v1alpha1.JoinToken) *corev1.Secret {
	h.T.Helper()
	secret := &corev1.Secret{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(token), secret))
	return secret
}

// bootstrap returns the bootstrap in a token's Secret.
func (h *hub) bootstrap(token *v1alpha1.JoinToken) *registration.Bootstrap {
	h.T.Helper()
	secret := h.secret(token)
	require.Len(h.T, secret.Data, 2, "join.yaml and values")
	bootstrap, err := registration.ParseBootstrap(secret.Data["join.yaml"])
	require.NoError(h.T, err)
	return bootstrap
}

// configWith returns the config with a bootstrap credential.
func (h *hub) configWith(bootstrap *registration.Bootstrap) *rest.Config {
	return h.server.Connect(bootstrap.RESTConfig())
}

// createRequest creates a JoinRequest with a bootstrap credential.
func (h *hub) createRequest(bootstrap *registration.Bootstrap, clusterID string) (*v1alpha1.JoinRequest, error) {
	h.T.Helper()
	claim, err := registration.NewClaimKey()
	require.NoError(h.T, err)
	request := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{
		ClusterID: clusterID, Name: "east", Credential: v1alpha1.CredentialRequest{Type: v1alpha1.CredentialIdentity},
	}}
	require.NoError(h.T, registration.Sign(request, claim, bootstrap))
	err = regtest.Client(h.T, h.configWith(bootstrap)).Create(h.T.Context(), request)
	if err == nil {
		h.T.Cleanup(func() { require.NoError(h.T, client.IgnoreNotFound(h.Client.Delete(context.Background(), request))) })
	}
	return request, err
}

// credentialWorks reports whether a bootstrap credential can still get JoinRequests.
func (h *hub) credentialWorks(bootstrap *registration.Bootstrap) bool {
	h.T.Helper()
	err := regtest.Client(h.T, h.configWith(bootstrap)).Get(h.T.Context(),
		client.ObjectKey{Namespace: namespace, Name: "join-none"}, &v1alpha1.JoinRequest{})
	return client.IgnoreNotFound(err) == nil
}

// ownedBy returns the names of the objects of a token.
func (h *hub) ownedBy(token *v1alpha1.JoinToken) []string {
	h.T.Helper()
	var names []string
	for _, kind := range owned() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersionKind())
		require.NoError(h.T, h.Client.List(h.T.Context(), list, client.InNamespace(namespace),
			client.MatchingLabels{membership.JoinTokenLabel: token.Name}))
		for _, item := range list.Items {
			names = append(names, kind.Kind+"/"+item.Name)
		}
	}
	return names
}

// systemSecret returns the Secret of a bootstrap token, or nil.
func (h *hub) systemSecret(token *v1alpha1.JoinToken) *corev1.Secret {
	h.T.Helper()
	secret := &corev1.Secret{}
	err := h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: token.Name}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(h.T, err)
	return secret
}

func (h *hub) account(token *v1alpha1.JoinToken) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "join-" + token.Name}}
}

func (h *hub) binding(token *v1alpha1.JoinToken) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "join-" + token.Name}}
}
