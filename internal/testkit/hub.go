package testkit

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
)

// Hub is an API server as its administrator uses it in a test, and a namespace that no other test uses. The server is
// in memory or a control plane. The fixture of a package embeds a Hub, and adds what only that package needs.
type Hub struct {
	T         testing.TB
	Client    client.WithWatch
	Config    *rest.Config // of the administrator
	Namespace string
}

// NewHub returns the Hub of an API server, and installs definitions there, as with crds.Install. Its clients send up to
// a thousand requests per second, or any number if the config has no limit.
func NewHub(t testing.TB, config *rest.Config, scheme *apiruntime.Scheme,
	installs ...func(context.Context, client.Client) error) *Hub {
	t.Helper()
	config = rest.CopyConfig(config)
	if config.QPS >= 0 {
		config.QPS, config.Burst = 1000, 1000
	}
	c := mustertest.Client(t, config, scheme, installs...)
	return &Hub{T: t, Client: c, Config: config, Namespace: mustertest.Namespace(t, c)}
}

// NewMemoryHub returns the Hub of a server of [Memory].
func NewMemoryHub(t testing.TB, scheme *apiruntime.Scheme,
	installs ...func(context.Context, client.Client) error) *Hub {
	t.Helper()
	return NewHub(t, Memory(t, scheme, installs...).Admin(), scheme)
}

// Server is a control plane or an API server in memory.
type Server interface {
	// Config returns the config of an administrator.
	Config() *rest.Config
	// User returns the config of a user in these groups.
	User(name string, groups ...string) *rest.Config
}

// MemoryServer is a [Server] in memory, for tests in virtual time.
type MemoryServer struct{ *apiserver.Server }

// Config returns the config of an administrator.
func (m MemoryServer) Config() *rest.Config { return m.Admin() }

// User returns the config of a user in these groups.
func (m MemoryServer) User(name string, groups ...string) *rest.Config {
	return m.Server.Config(name, groups...)
}

// hubTimeout limits the waits of a Hub. It matters only if a test fails.
const hubTimeout = 3 * time.Minute

// Eventually waits until a check returns nil.
func (h *Hub) Eventually(expected string, check func() error) {
	h.T.Helper()
	mustertest.Eventually(h.T, hubTimeout, expected, check)
}

// Holds waits until a condition is true.
func (h *Hub) Holds(expected string, condition func() bool) {
	h.T.Helper()
	mustertest.Holds(h.T, hubTimeout, expected, condition)
}

// Create creates objects.
func (h *Hub) Create(objects ...client.Object) {
	h.T.Helper()
	for _, object := range objects {
		require.NoError(h.T, h.Client.Create(h.T.Context(), object))
	}
}
