package agent

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// changeableBootstrap is a bootstrap credential that an administrator changes, and that counts its reads.
type changeableBootstrap struct {
	mu    sync.Mutex
	now   *registration.Bootstrap
	reads atomic.Int64
}

func (c *changeableBootstrap) Load(context.Context) (*registration.Bootstrap, error) {
	c.reads.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, nil
}

func (c *changeableBootstrap) Forget(context.Context) error { return nil }

// at changes the address of the hub in the bootstrap credential.
func (c *changeableBootstrap) at(server string, ca []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := *c.now
	next.Server, next.CA = server, ca
	c.now = &next
}

func (c *changeableBootstrap) remove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = nil
}

// proxied returns a proxy of the hub whose network can fail.
func (h *fakeHub) proxied() *localplane.Proxy {
	h.t.Helper()
	proxy, err := localplane.NewProxy(h.config.Host)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = proxy.Close() })
	return proxy
}

// reencrypted serves the hub at another address, below a path, with a certificate of another authority.
func (h *fakeHub) reencrypted() (server string, ca []byte) {
	h.t.Helper()
	config, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: h.config.CAData}})
	require.NoError(h.t, err)
	target, err := url.Parse(h.config.Host)
	require.NoError(h.t, err)
	transport := &http.Transport{TLSClientConfig: config}
	h.t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	return tlsServer(h.t, http.StripPrefix("/hubs/one", proxy)).at("/hubs/one")
}

type served struct{ *httptest.Server }

func tlsServer(t *testing.T, handler http.Handler) served {
	s := httptest.NewUnstartedServer(handler)
	s.TLS = &tls.Config{NextProtos: []string{"h2"}}
	s.EnableHTTP2 = true
	return startTLS(t, s)
}

// startTLS starts a server that stops at the end of the test.
func startTLS(t *testing.T, s *httptest.Server) served {
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections() // otherwise a watch blocks Close
		s.Close()
	})
	return served{s}
}

// pipes is the listener of a server in memory.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// DialContext connects to the server. It can be used as rest.Config.Dial.
func (p *pipes) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return p }

func (p *pipes) Network() string { return "pipe" }

// String returns a name in the certificate of httptest.
func (p *pipes) String() string { return "example.com:443" }

func (s served) at(path string) (server string, ca []byte) {
	return s.URL + path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// TestHubAddress_Changed moves the hub while the agent is joined, and again while the agent is not running.
func TestHubAddress_Changed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method registration.Method
		move   func(*fakeHub) (string, []byte)
	}{
		"token": {token.Method{}, (*fakeHub).reencrypted},
		"csr": {csr.Method{},
			func(h *fakeHub) (string, []byte) { return h.proxied().Config(h.config).Host, h.config.CAData }},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHub(t, plane.ForTest(t), "moves-"+name).serve()
			old, source, store, w := h.proxied(), &changeableBootstrap{now: h.bootstrap}, &memory{}, &wire{}
			source.at(old.Config(h.config).Host, h.config.CAData)
			var started atomic.Int64
			lent := make(chan Hub, 10)
			o := Options{Method: tc.method, Bootstrap: source, Store: store, HubConfig: w.config, Companions: []Companion{
				CompanionFunc("works", func(ctx context.Context, hub Hub) error {
					started.Add(1)
					lent <- hub
					<-ctx.Done()
					return nil
				}),
			}}
			r := h.run(o)
			requirePhase(t, r, lifecycle.Joined)
			before := store.parsed(t)
			companion, err := rest.HTTPClientFor((<-lent).Config)
			require.NoError(t, err)
			companionReads := func() bool {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
					before.Member.Server+"/apis/membership.muster.dev/v1alpha1/namespaces/"+h.memberNamespace()+"/memberships", nil)
				require.NoError(t, err)
				response, err := companion.Do(request)
				if err != nil {
					return false
				}
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				return err == nil && response.StatusCode == http.StatusOK && strings.Contains(string(body), "uid-"+h.name)
			}
			require.True(t, companionReads())
			h.requireHeartbeats()
			reads := source.reads.Load()
			h.requireHeartbeats()
			require.Equal(t, reads, source.reads.Load(), "a connected agent does not read the bootstrap credential")

			old.Cut()
			server, ca := tc.move(h)
			source.at(server, ca)
			eventually(t, "the agent does not use the new address",
				func() bool { return store.parsed(t).Member.Server == server })
			h.requireHeartbeats()
			eventually(t, "the companion does not reach the hub with its config", companionReads)
			h.touch()
			eventually(t, "the agent does not observe changes of the Membership", func() bool {
				return store.parsed(t).Leave.DeadlineSeconds == h.membership().Spec.Leave.DeadlineSeconds
			})
			require.EqualValues(t, 1, started.Load(), "the companion was restarted")
			require.Equal(t, lifecycle.Joined, r.last().Phase)

			// The agent restarts after the hub has moved back.
			r.stop()
			old.Heal()
			source.at(before.Member.Server, before.Member.CA)
			r = h.run(o)
			requirePhase(t, r, lifecycle.Joined)
			require.Equal(t, before.Member.Server, store.parsed(t).Member.Server)
			r.stop()
			source.remove()
			r = h.run(o)
			requirePhase(t, r, lifecycle.Joined)
			h.requireHeartbeats()

			after := store.parsed(t)
			require.Equal(t, before.ClaimKey, after.ClaimKey)
			require.Equal(t, before.Member.UID, after.Member.UID)
			require.True(t, before.Member.Credential.same(after.Member.Credential.material()))
			require.Equal(t, 1, w.take()["POST joinrequests"], "the agent sent another JoinRequest")
		})
	}
}

// TestHubAddress_WrongAddressIsNotUsed checks bootstrap credentials whose address is not that of the agent's hub.
func TestHubAddress_WrongAddressIsNotUsed(t *testing.T) {
	testkit.Virtual(t, testHubAddressWrongAddressIsNotUsed)
}

func testHubAddressWrongAddressIsNotUsed(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "stays").serve()
	var requested atomic.Int64
	var answer atomic.Value
	listener := newPipes()
	answers := func(w http.ResponseWriter, _ *http.Request) {
		requested.Add(1)
		w.Header().Set("Content-Type", "application/json")
		body := answer.Load().(string)
		if body == "401" {
			w.WriteHeader(http.StatusUnauthorized)
			body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`
		}
		_, _ = io.WriteString(w, body)
	}
	wrong := startTLS(t,
		&httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(answers)}})
	list := func(items string) string {
		return `{"kind":"MembershipList","apiVersion":"membership.muster.dev/v1alpha1","metadata":{"resourceVersion":"1"},` +
			`"items":[` + items + `]}`
	}
	of := func(name, uid string) string {
		return list(`{"metadata":{"name":"self","namespace":"` + h.memberNamespace() + `"},"spec":{"memberName":"` + name +
			`","memberUID":"` + uid + `"}}`)
	}
	old, source, store := h.network, &changeableBootstrap{now: h.bootstrap}, &memory{}
	o := Options{Bootstrap: source, Store: store, HubConfig: func(config *rest.Config) {
		if config.Host == wrong.URL {
			config.Dial = listener.DialContext
		}
	}}
	r := h.run(o)
	requirePhase(t, r, lifecycle.Joined)
	h.requireHeartbeats()
	before := store.parsed(t)
	source.at(wrong.at(""))
	for _, tc := range []struct{ answer, reason string }{
		{"401", "the agent's credential is refused there"},
		{list(""), "there is no Membership for the agent there"},
		{of(h.name, "uid-of-another"), "the Membership there belongs to another member"},
		{of("another", "uid-"+h.name), "the Membership there belongs to another member"},
		{"no hub at all", "the hub does not respond there either"},
	} {
		answer.Store(tc.answer)
		old.Cut()
		eventually(t, "the message does not contain the reason",
			func() bool { return strings.Contains(r.last().Message, tc.reason) })
		require.Contains(t, r.last().Message, wrong.URL)
		require.Equal(t, lifecycle.Joined, r.last().Phase, "an unreachable hub does not change the phase")
		require.Equal(t, before.Member.Server, store.parsed(t).Member.Server)
		old.Heal()
		h.requireHeartbeats()
		eventually(t, "the message is not reset", func() bool {
			h.touch()
			return r.last().Message == "The member has joined the hub."
		})
	}
	requested.Store(0)
	start := time.Now()
	old.Cut()
	eventually(t, "the agent does not retry the wrong address", func() bool { return requested.Load() >= 3 })
	require.GreaterOrEqual(t, time.Since(start), 2*lifecycle.RetryPoll,
		"the agent sends a request to the wrong hub at most every two seconds")
	old.Heal()
	r.stop()

	// The wrong address is not used after a restart either.
	answer.Store("401")
	r = h.run(o)
	requirePhase(t, r, lifecycle.Joined)
	h.requireHeartbeats()
	require.Contains(t, r.last().Message, "the agent's credential is refused there")
	require.Equal(t, before.Member.Server, store.parsed(t).Member.Server)
	requests := &v1alpha1.JoinRequestList{}
	require.NoError(t, h.c.List(t.Context(), requests, client.InNamespace(h.name)))
	require.Len(t, requests.Items, 1)
}

func TestReaddressed(t *testing.T) {
	for _, tc := range []struct{ reason, request, from, to, want string }{
		{"no move", "https://a/api?x=1", "https://a", "https://a", "https://a/api?x=1"},
		{"another host", "https://a/api?x=1", "https://a", "https://b:6443", "https://b:6443/api?x=1"},
		{"to an address with a path", "https://a/api", "https://a", "https://b/hub", "https://b/hub/api"},
		{"from an address with a path", "https://a/hub/api", "https://a/hub/", "https://b/", "https://b/api"},
		{"escaped characters stay escaped", "https://a/hub/api/x%2Fy", "https://a/hub", "https://b/other",
			"https://b/other/api/x%2Fy"},
		{"a request to another server", "https://c/hub/api", "https://a/hub", "https://b", "https://c/hub/api"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			parsed := func(s string) *url.URL {
				u, err := url.Parse(s)
				require.NoError(t, err)
				return u
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tc.request, nil)
			require.NoError(t, err)
			got := readdressed(request, parsed(tc.from), parsed(tc.to))
			require.Equal(t, tc.want, got.URL.String())
			require.Equal(t, got.URL.Host, got.Host)
			require.Equal(t, tc.request, request.URL.String(), "the request of the caller is not changed")
		})
	}
}
