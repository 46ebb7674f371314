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

// ErrClosed is what requests get from a pool that is closed, and connections that are being opened for it. It wraps [net.ErrClosed].
var ErrClosed = fmt.Errorf("these connections to the API server are not used any more: %w", net.ErrClosed)

const (
	dialTimeout      = 10 * time.Second
	keepAlive        = 30 * time.Second
	handshakeTimeout = 10 * time.Second
)

// A Pool is the connections of one http.Transport. Its methods may be called concurrently, but for Use.
type Pool struct {
	dialer    *connrotation.Dialer
	transport *http.Transport
	closed    atomic.Bool
}

// New returns a pool that opens connections by a function; nil: one that gives up after ten seconds. It serves no requests before Use was called.
func New(dial connrotation.DialFunc) *Pool {
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext
	}
	return &Pool{dialer: connrotation.NewDialer(dial)}
}

// Use has the pool send requests by a transport, which is the pool's from then on, and fills in what it leaves open: how long a handshake may take, what
// client-go sets, and DialContext, which is the pool's own. A DialContext that is set has to come down to that.
func (p *Pool) Use(transport *http.Transport) {
	if transport.DialContext == nil {
		transport.DialContext = p.DialContext
	}
	if transport.TLSHandshakeTimeout == 0 {
		transport.TLSHandshakeTimeout = handshakeTimeout
	}
	p.transport = utilnet.SetTransportDefaults(transport)
}

// DialContext opens a connection that ends with the pool, also when that is closed while it is being opened.
func (p *Pool) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if p.closed.Load() {
		return nil, ErrClosed
	}
	connection, err := p.dialer.DialContext(ctx, network, address)
	if err == nil && p.closed.Load() { // Close may have been through with those that it knew
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

// CloseIdleConnections closes what nobody uses; client-go looks for a method of this name.
func (p *Pool) CloseIdleConnections() { p.transport.CloseIdleConnections() }

// Close closes all connections: requests that are on their way fail, and watches end. It may be called more than once, and of a nil pool.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.closed.Store(true) // before those that are there are closed
	p.transport.CloseIdleConnections()
	p.dialer.CloseAll()
}

// Refuse does for a request that is not sent what an [http.RoundTripper] owes whatever it returns, and returns the error.
func Refuse(request *http.Request, err error) error {
	if request.Body != nil {
		_ = request.Body.Close()
	}
	return err
}
