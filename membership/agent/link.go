package agent

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/muster-sdk/muster/membership/internal/pool"
	"github.com/muster-sdk/muster/membership/registration"
)

// keeper stores the credential for all links of an agent, and can replace it.
type keeper struct {
	identity bool // there is no credential to store: the user's config authenticates
	stored   atomic.Pointer[stored]
}

type stored struct {
	token       string
	certificate *tls.Certificate
}

func newKeeper(material registration.Material, claim *registration.ClaimKey) (*keeper, error) {
	k := &keeper{identity: material.Token == "" && len(material.Certificate) == 0}
	return k, k.keep(material, claim)
}

func (k *keeper) keep(material registration.Material, claim *registration.ClaimKey) error {
	next := &stored{token: material.Token}
	if len(material.Certificate) > 0 {
		key := material.Key
		if len(key) == 0 {
			var err error
			if key, err = claim.Marshal(); err != nil {
				return err
			}
		}
		pair, err := tls.X509KeyPair(material.Certificate, key)
		if err != nil {
			return fmt.Errorf("use the certificate that the hub issued: %w", err)
		}
		next.certificate = &pair
	}
	k.stored.Store(next)
	return nil
}

// A link is a connection to the hub that shares its TCP connections with no other link, so that slow requests on one
// link do not delay another. The hub may move: clients continue to use its first address, and the link sends their
// requests to the current one.
type link struct {
	config *rest.Config // for the first address
	base   *url.URL     // the first address, which clients use
	keeper *keeper
	client *http.Client
	writes flowcontrol.RateLimiter // nil: writes have no limit
	route  atomic.Pointer[route]   // nil: the link is closed
}

// route is a connection to the hub at one address.
type route struct {
	config *rest.Config
	server *url.URL
	tls    *tls.Config // nil: none
	entry  http.RoundTripper
	pool   atomic.Pointer[pool.Pool] // made with one credential; nil: the route is closed
}

// newLink returns a link with the config. It authenticates each request, or with certificates each connection, with
// the current credential of the keeper.
func newLink(base *rest.Config, k *keeper) (*link, error) {
	r, err := newRoute(base, k)
	if err != nil {
		return nil, err
	}
	l := &link{config: r.config, base: r.server, keeper: k}
	l.route.Store(r)
	l.client = &http.Client{Transport: l, Timeout: r.config.Timeout}
	return l, nil
}

func newRoute(base *rest.Config, k *keeper) (*route, error) {
	config := rest.CopyConfig(base)
	if !k.identity {
		config = rest.AnonymousClientConfig(base)
		config.WrapTransport = base.WrapTransport
	}
	server, _, err := rest.DefaultServerUrlFor(config) // the scheme may follow from TLS
	if err != nil {
		return nil, fmt.Errorf("prepare a connection to the hub at %s: %w", config.Host, err)
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare a connection to the hub at %s: %w", config.Host, err)
	}
	if tlsConfig != nil && !k.identity {
		tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if certificate := k.stored.Load().certificate; certificate != nil {
				return certificate, nil
			}
			return &tls.Certificate{}, nil
		}
	}
	r := &route{config: config, server: server, tls: tlsConfig}
	r.pool.Store(r.newPool())
	if r.entry, err = rest.HTTPWrappersForConfig(config, bearer{k, r}); err != nil {
		return nil, fmt.Errorf("prepare a connection to the hub at %s: %w", config.Host, err)
	}
	return r, nil
}

func (r *route) newPool() *pool.Pool {
	p := pool.New(r.config.Dial)
	p.Use(&http.Transport{Proxy: r.config.Proxy, TLSClientConfig: r.tls.Clone(),
		DisableCompression: r.config.DisableCompression})
	return p
}

// RoundTrip sends a request with the current route. A write waits until the rate limit of writes permits it.
func (l *link) RoundTrip(request *http.Request) (*http.Response, error) {
	if l.writes != nil && writes(request.Method) {
		if err := l.writes.Wait(request.Context()); err != nil {
			return nil, pool.Refuse(request, fmt.Errorf("wait for the limit of writes to the hub: %w", err))
		}
	}
	r := l.route.Load()
	if r == nil {
		return nil, pool.Refuse(request, errClosed)
	}
	return r.entry.RoundTrip(readdressed(request, l.base, r.server))
}

func writes(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// RoundTrip sends a request over the current connections.
func (r *route) RoundTrip(request *http.Request) (*http.Response, error) {
	p := r.pool.Load()
	if p == nil {
		return nil, pool.Refuse(request, errClosed)
	}
	return p.RoundTrip(request)
}

var errClosed = errors.New("the agent has closed this connection to the hub")

// readdressed changes the address of a request from one address of the hub to another. Requests to other addresses stay
// unchanged.
func readdressed(request *http.Request, from, to *url.URL) *http.Request {
	if *from == *to || request.URL.Host != from.Host {
		return request
	}
	request = request.Clone(request.Context()) // a RoundTripper must not modify its argument
	request.URL.Scheme, request.URL.Host = to.Scheme, to.Host
	if request.Host == from.Host {
		request.Host = to.Host
	}
	moved := func(path, from, to string) string {
		rest, ok := strings.CutPrefix(path, strings.TrimSuffix(from, "/"))
		if !ok {
			return path
		}
		return strings.TrimSuffix(to, "/") + rest
	}
	if request.URL.RawPath != "" {
		request.URL.RawPath = moved(request.URL.RawPath, from.EscapedPath(), to.EscapedPath())
	}
	request.URL.Path = moved(request.URL.Path, from.Path, to.Path)
	return request
}

// CloseIdleConnections allows client-go to close idle connections.
func (l *link) CloseIdleConnections() {
	if r := l.route.Load(); r != nil {
		if p := r.pool.Load(); p != nil {
			p.CloseIdleConnections()
		}
	}
}

// reset closes all connections. Later connections use the current credential, and another pool: a pool detects with a
// delay that its connections were closed, and would reuse them until then.
func (l *link) reset() {
	r := l.route.Load()
	r.pool.Swap(r.newPool()).Close()
}

// take closes all connections, and uses another route for later ones.
func (l *link) take(next *route) { l.route.Swap(next).close() }

// close closes all connections, and prevents new ones.
func (l *link) close() { l.take(nil) }

func (r *route) close() { r.pool.Swap(nil).Close() }

// clientConfig returns a config for clients that use this link. It does not contain the TLS settings and credentials
// that the link applies: client-go rejects a transport together with TLS settings.
func (l *link) clientConfig() *rest.Config {
	return &rest.Config{
		Host: l.base.String(), Transport: l.client.Transport, UserAgent: l.config.UserAgent, Timeout: l.config.Timeout,
		QPS: l.config.QPS, Burst: l.config.Burst, RateLimiter: l.config.RateLimiter,
		WarningHandler: l.config.WarningHandler, WarningHandlerWithContext: l.config.WarningHandlerWithContext,
	}
}

// bearer adds the stored token to each request.
type bearer struct {
	keeper *keeper
	next   http.RoundTripper
}

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	if token := b.keeper.stored.Load().token; token != "" {
		request = utilnet.CloneRequest(request)
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return b.next.RoundTrip(request)
}

// WrappedRoundTripper is for client-go, which cancels requests through it.
func (b bearer) WrappedRoundTripper() http.RoundTripper { return b.next }
