package agent

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

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
// does not delay another.
type link struct {
	config *rest.Config
	client *http.Client
	dial   connrotation.DialFunc
	tls    *tls.Config          // nil: none
	pool   atomic.Pointer[pool] // of nil: the link is closed
}

// pool is the connections that were made with one credential.
type pool struct {
	*http.Transport
	dialer *connrotation.Dialer
}

// newLink returns a link by the config, authenticated by what the keeper holds at the time of each request or,
// with certificates, of each connection.
func newLink(base *rest.Config, k *keeper) (*link, error) {
	config := rest.CopyConfig(base)
	if !k.identity {
		config = rest.AnonymousClientConfig(base)
		config.WrapTransport = base.WrapTransport
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
	l := &link{config: config, dial: config.Dial, tls: tlsConfig}
	if l.dial == nil {
		l.dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	l.pool.Store(l.newPool())
	wrapped, err := rest.HTTPWrappersForConfig(config, bearer{k, l})
	if err != nil {
		return nil, fmt.Errorf("prepare a connection to the hub at %s: %w", config.Host, err)
	}
	l.client = &http.Client{Transport: wrapped, Timeout: config.Timeout}
	return l, nil
}

func (l *link) newPool() *pool {
	dialer := connrotation.NewDialer(l.dial)
	return &pool{dialer: dialer, Transport: utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               l.config.Proxy,
		TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig:     l.tls.Clone(),
		DialContext:         dialer.DialContext,
		DisableCompression:  l.config.DisableCompression,
	})}
}

// RoundTrip sends a request over the connections of the time.
func (l *link) RoundTrip(request *http.Request) (*http.Response, error) {
	p := l.pool.Load()
	if p == nil {
		if request.Body != nil {
			_ = request.Body.Close() // which a RoundTripper owes, whatever it returns
		}
		return nil, errClosed
	}
	return p.RoundTrip(request)
}

var errClosed = errors.New("the agent has ended this access to the hub")

// CloseIdleConnections lets client-go close what nobody uses.
func (l *link) CloseIdleConnections() {
	if p := l.pool.Load(); p != nil {
		p.CloseIdleConnections()
	}
}

// reset closes all connections. The next ones are made with the credential that is kept by then, and in another pool: one
// whose connections were closed takes a moment to see that, and would hand them out until then.
func (l *link) reset() { l.pool.Swap(l.newPool()).close() }

// close closes all connections, and lets nobody make more.
func (l *link) close() { l.pool.Swap(nil).close() }

func (p *pool) close() {
	p.CloseIdleConnections()
	p.dialer.CloseAll()
}

// clientConfig is how others make clients that use this link. It has nothing of what the link does itself: client-go
// refuses a transport with TLS beside it.
func (l *link) clientConfig() (*rest.Config, error) {
	server, _, err := rest.DefaultServerUrlFor(l.config) // the scheme may follow from TLS
	if err != nil {
		return nil, fmt.Errorf("prepare a connection to the hub at %s: %w", l.config.Host, err)
	}
	return &rest.Config{
		Host: server.String(), Transport: l.client.Transport, UserAgent: l.config.UserAgent, Timeout: l.config.Timeout,
		QPS: l.config.QPS, Burst: l.config.Burst, RateLimiter: l.config.RateLimiter,
		WarningHandler: l.config.WarningHandler, WarningHandlerWithContext: l.config.WarningHandlerWithContext,
	}, nil
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
