package kubeconfig

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/muster-sdk/muster/membership/internal/pool"
)

// ErrEnded is the error of requests with a config after the lender has closed it.
var ErrEnded = errors.New("the hub has ended this access to the member")

// Live is the access to a member. It can be replaced while clients and caches use it. Its methods may be called
// concurrently, and perform no I/O unless Options.AllowFiles is set.
type Live struct {
	mu     sync.Mutex
	access *Access // nil: closed
	lent   map[*loan]struct{}
}

// NewLive returns a Live with the content of a Secret. It opens a connection only for a request. It returns errors that
// appear when a connection is prepared, such as a file that is allowed and does not exist.
func NewLive(access *Access) (*Live, error) {
	if _, err := connect(access); err != nil {
		return nil, err
	}
	return &Live{access: access, lent: map[*loan]struct{}{}}, nil
}

// Access returns the current access; nil after Close.
func (l *Live) Access() *Access {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.access
}

// Replace makes all further requests use another Access, and closes the connections of the previous one: requests in
// progress fail, and watches end. It does nothing if the revision is the current one. After an error the previous
// Access remains in use.
func (l *Live) Replace(access *Access) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.access == nil:
		return ErrEnded
	case l.access.revision == access.revision:
		return nil
	}
	next := make(map[*loan]*connections, len(l.lent))
	for lent := range l.lent {
		var err error
		if next[lent], err = connect(access); err != nil {
			return err
		}
	}
	l.access = access
	for lent, connections := range next {
		lent.connections.Swap(connections).close()
	}
	return nil
}

// Lend returns a config for clients and caches that shares its connections with no other config, and a function that
// closes it: its requests then fail with [ErrEnded]. The caller may change the config except its Transport. Its Host
// is the current address, for information: the address is determined for each request. Clients that do not use the
// Transport, such as exec and port-forward, cannot use such a config.
func (l *Live) Lend() (*rest.Config, func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.access == nil {
		return nil, nil, ErrEnded
	}
	made, err := connect(l.access)
	if err != nil {
		return nil, nil, err
	}
	lent := &loan{}
	lent.connections.Store(made)
	l.lent[lent] = struct{}{}
	takeBack := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.lent, lent)
		lent.connections.Swap(nil).close()
	}
	// The path of the server is added to each request.
	host := url.URL{Scheme: l.access.server.Scheme, Host: l.access.server.Host}
	return &rest.Config{Host: host.String(), Transport: lent}, takeBack, nil
}

// Close closes all configs. Lend returns an error afterwards. It may be called more than once.
func (l *Live) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.access = nil
	for lent := range l.lent {
		lent.connections.Swap(nil).close()
	}
	clear(l.lent)
}

// loan is the transport of a config.
type loan struct {
	connections atomic.Pointer[connections] // nil: the config was taken back
}

// RoundTrip sends a request with the current access.
func (l *loan) RoundTrip(request *http.Request) (*http.Response, error) {
	c := l.connections.Load()
	if c == nil {
		return nil, pool.Refuse(request, ErrEnded)
	}
	return c.send(request)
}

// CloseIdleConnections allows client-go to close idle connections.
func (l *loan) CloseIdleConnections() {
	if c := l.connections.Load(); c != nil {
		c.pool.CloseIdleConnections()
	}
}

// connections are the connections of one loan with one Access.
type connections struct {
	server  *url.URL
	wrapped http.RoundTripper // the pool, with the credential
	pool    *pool.Pool
}

// connect prepares the connections with an Access, without opening one.
func connect(access *Access) (*connections, error) {
	failed := func(err error) (*connections, error) {
		return nil, fmt.Errorf("prepare a connection to %s: %w", access.Server(), err)
	}
	c := &connections{server: access.server, pool: pool.New(nil)}
	base := rest.CopyConfig(access.config)
	base.Dial = c.pool.DialContext
	config, err := base.TransportConfig()
	if err != nil {
		return failed(err)
	}
	tlsConfig, err := transport.TLSConfigFor(config)
	if err != nil {
		return failed(err)
	}
	c.pool.Use(&http.Transport{
		Proxy:              config.Proxy,
		ProxyConnectHeader: access.proxyHeaders,
		TLSClientConfig:    tlsConfig,
		DialContext:        config.DialHolder.Dial, // a program that provides certificates may have wrapped it
		DisableCompression: config.DisableCompression,
	})
	if c.wrapped, err = transport.HTTPWrappersForConfig(config, c.pool); err != nil {
		return failed(err)
	}
	return c, nil
}

// send sends a request. Its URL may contain a previous address of the member.
func (c *connections) send(request *http.Request) (*http.Response, error) {
	request = utilnet.CloneRequest(request)
	to := *request.URL
	to.Scheme, to.Host = c.server.Scheme, c.server.Host
	if prefix := strings.TrimSuffix(c.server.EscapedPath(), "/"); prefix != "" {
		// Escaped as a whole, because the path of a proxied service may contain escapes itself.
		whole, err := url.Parse(prefix + to.EscapedPath())
		if err != nil {
			return nil, fmt.Errorf("prepare a request to %s: %w", c.server, err)
		}
		to.Path, to.RawPath = whole.Path, whole.RawPath
	}
	request.URL, request.Host = &to, ""
	return c.wrapped.RoundTrip(request)
}

func (c *connections) close() {
	if c != nil {
		c.pool.Close()
	}
}
