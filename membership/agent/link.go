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

	"github.com/muster-sdk/muster/membership/internal/pool"
	"github.com/muster-sdk/muster/membership/registration"
)

// keeper holds the credential that all links of an agent use, so that it can be changed under them.
type keeper struct {
	identity bool // there is nothing to keep: the user's config authenticates
	held     atomic.Pointer[held]
}

type held struct {
	token       string
	certificate *tls.Certificate
}

func newKeeper(material registration.Material, claim *registration.ClaimKey) (*keeper, error) {
	k := &keeper{identity: material.Token == "" && len(material.Certificate) == 0}
	return k, k.keep(material, claim)
}

func (k *keeper) keep(material registration.Material, claim *registration.ClaimKey) error {
	next := &held{token: material.Token}
	if len(material.Certificate) > 0 {
		key, err := claim.Marshal()
		if err != nil {
			return err
		}
		pair, err := tls.X509KeyPair(material.Certificate, key)
		if err != nil {
			return fmt.Errorf("use the certificate that the hub issued: %w", err)
		}
		next.certificate = &pair
	}
	k.held.Store(next)
	return nil
}

// A link is one way to the hub, with connections that it shares with nobody: what is slow or stuck on one link
// does not delay another. The hub may move meanwhile: clients go on to ask for its first address, and the link leads them to where it is.
type link struct {
	config *rest.Config // of the first address
	base   *url.URL     // that address, as clients ask for it
	keeper *keeper
	client *http.Client
	route  atomic.Pointer[route] // of nil: the link is closed
}

// route is how to get to the hub at one address.
type route struct {
	config *rest.Config
	server *url.URL
	tls    *tls.Config // nil: none
	entry  http.RoundTripper
	pool   atomic.Pointer[pool.Pool] // made with one credential; of nil: the route is not used any more
}

// newLink returns a link by the config, authenticated by what the keeper holds at the time of each request or,
// with certificates, of each connection.
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
			if certificate := k.held.Load().certificate; certificate != nil {
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
	p.Use(&http.Transport{Proxy: r.config.Proxy, TLSClientConfig: r.tls.Clone(), DisableCompression: r.config.DisableCompression})
	return p
}

// RoundTrip sends a request by the route of the time.
func (l *link) RoundTrip(request *http.Request) (*http.Response, error) {
	r := l.route.Load()
	if r == nil {
		return nil, pool.Refuse(request, errClosed)
	}
	return r.entry.RoundTrip(readdressed(request, l.base, r.server))
}

// RoundTrip sends a request over the connections of the time.
func (r *route) RoundTrip(request *http.Request) (*http.Response, error) {
	p := r.pool.Load()
	if p == nil {
		return nil, pool.Refuse(request, errClosed)
	}
	return p.RoundTrip(request)
}

var errClosed = errors.New("the agent has ended this access to the hub")

// readdressed is the request that is meant for one address of a hub, as it goes to another. What is meant for neither is left as it is.
func readdressed(request *http.Request, from, to *url.URL) *http.Request {
	if *from == *to || request.URL.Host != from.Host {
		return request
	}
	request = request.Clone(request.Context()) // a RoundTripper must not change the one that it is given
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

// CloseIdleConnections lets client-go close what nobody uses.
func (l *link) CloseIdleConnections() {
	if r := l.route.Load(); r != nil {
		if p := r.pool.Load(); p != nil {
			p.CloseIdleConnections()
		}
	}
}

// reset closes all connections. The next ones are made with the credential that is kept by then, and in another pool: one
// whose connections were closed takes a moment to see that, and would hand them out until then.
func (l *link) reset() {
	r := l.route.Load()
	r.pool.Swap(r.newPool()).Close()
}

// take closes all connections, and makes the next ones by another route.
func (l *link) take(next *route) { l.route.Swap(next).close() }

// close closes all connections, and lets nobody make more.
func (l *link) close() { l.take(nil) }

func (r *route) close() { r.pool.Swap(nil).Close() }

// clientConfig is how others make clients that use this link. It has nothing of what the link does itself: client-go
// refuses a transport with TLS beside it.
func (l *link) clientConfig() *rest.Config {
	return &rest.Config{
		Host: l.base.String(), Transport: l.client.Transport, UserAgent: l.config.UserAgent, Timeout: l.config.Timeout,
		QPS: l.config.QPS, Burst: l.config.Burst, RateLimiter: l.config.RateLimiter,
		WarningHandler: l.config.WarningHandler, WarningHandlerWithContext: l.config.WarningHandlerWithContext,
	}
}

// bearer adds the token that is kept to each request.
type bearer struct {
	keeper *keeper
	next   http.RoundTripper
}

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	if token := b.keeper.held.Load().token; token != "" {
		request = utilnet.CloneRequest(request)
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return b.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find what it needs to cancel requests.
func (b bearer) WrappedRoundTripper() http.RoundTripper { return b.next }
