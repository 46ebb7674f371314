package pool

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/util/connrotation"
)

// ErrClosed is the error of requests and new connections of a closed pool. It wraps [net.ErrClosed].
var ErrClosed = fmt.Errorf("the connections to the API server are closed: %w", net.ErrClosed)

const (
	dialTimeout      = 10 * time.Second
	keepAlive        = 30 * time.Second
	handshakeTimeout = 10 * time.Second
)

// A Pool contains the connections of one http.Transport. Its methods, except Use, are safe for concurrent use.
type Pool struct {
	dialer    *connrotation.Dialer
	transport *http.Transport
	closed    atomic.Bool
}

// New returns a pool that opens connections with a function. Default: a dialer with a timeout of ten seconds. Call Use
// before the first request.
func New(dial connrotation.DialFunc) *Pool {
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext
	}
	return &Pool{dialer: connrotation.NewDialer(dial)}
}

// Use sets the transport of the pool, which then owns it, and sets its missing fields: the handshake timeout, the
// defaults of client-go, and DialContext of the pool. If DialContext is set already, it must call that of the pool.
func (p *Pool) Use(transport *http.Transport) {
	if transport.DialContext == nil {
		transport.DialContext = p.DialContext
	}
	if transport.TLSHandshakeTimeout == 0 {
		transport.TLSHandshakeTimeout = handshakeTimeout
	}
	p.transport = utilnet.SetTransportDefaults(transport)
}

// DialContext opens a connection that ends with the pool, even if the pool is closed meanwhile.
func (p *Pool) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if p.closed.Load() {
		return nil, ErrClosed
	}
	connection, err := p.dialer.DialContext(ctx, network, address)
	if err == nil && p.closed.Load() { // Close may have closed the known connections before
		_ = connection.Close()
		return nil, ErrClosed
	}
	return connection, err
}

// RoundTrip implements [http.RoundTripper].
func (p *Pool) RoundTrip(request *http.Request) (*http.Response, error) {
	if p.closed.Load() {
		return nil, Refuse(request, ErrClosed)
	}
	return p.transport.RoundTrip(request)
}

// CloseIdleConnections closes idle connections. client-go calls a method of this name.
func (p *Pool) CloseIdleConnections() { p.transport.CloseIdleConnections() }

// Close closes all connections: active requests fail, and watches end. It may be called several times, and on a nil
// pool.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.closed.Store(true) // set before existing connections are closed
	p.transport.CloseIdleConnections()
	p.dialer.CloseAll()
}

// Refuse closes the body of a request that is not sent, as an [http.RoundTripper] must, and returns the error.
func Refuse(request *http.Request, err error) error {
	if request.Body != nil {
		_ = request.Body.Close()
	}
	return err
}
