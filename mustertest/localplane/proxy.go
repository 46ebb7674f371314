package localplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// A Proxy is a TCP proxy on a port of 127.0.0.1 that simulates failures of the network between a client and a server.
// It starts without a failure. Its methods may be called concurrently. Each failure applies to open and to new
// connections until another call changes it.
type Proxy struct {
	target   string
	listener net.Listener

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	health  health
	changed chan struct{} // closed when health changes
	links   map[*link]struct{}
}

// health is the failure that the proxy simulates.
type health struct {
	cut, stalled bool
	delay        time.Duration
}

// NewProxy starts a proxy in front of target, which is HOST:PORT or the URL in the Host of a rest.Config. The target
// does not need to listen yet, because each connection to the proxy dials it anew. Close ends the proxy.
func NewProxy(target string) (*Proxy, error) {
	if server, err := url.Parse(target); err == nil && server.Host != "" {
		target = server.Host
	}
	if _, _, err := net.SplitHostPort(target); err != nil {
		return nil, fmt.Errorf("start a proxy: target %q is not HOST:PORT: %w", target, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a proxy for %s: %w", target, err)
	}
	p := &Proxy{target: target, listener: listener, changed: make(chan struct{}), links: map[*link]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(p.accept)
	return p, nil
}

// Addr returns the HOST:PORT of the proxy, which replaces that of the target.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Config returns a copy of cfg that uses the proxy. The server's certificate must be valid for 127.0.0.1, as that of a
// Plane is, or cfg must set ServerName.
func (p *Proxy) Config(cfg *rest.Config) *rest.Config {
	through := rest.CopyConfig(cfg)
	through.Host = p.Addr()
	if server, err := url.Parse(cfg.Host); err == nil && server.Host != "" {
		server.Host = p.Addr()
		through.Host = server.String()
	}
	return through
}

// Cut resets all open connections and each new one, like a server that has crashed.
func (p *Proxy) Cut() { p.set(func(h *health) { h.cut, h.stalled = true, false }) }

// Stall stops all traffic without closing connections: open connections stay open, and new ones are accepted and hang,
// as in a network partition. Data that was sent in the meantime arrives after Heal.
func (p *Proxy) Stall() { p.set(func(h *health) { h.cut, h.stalled = false, true }) }

// Delay delays all data by d in each direction, without a limit of the throughput. Zero ends the delay. It does not end
// Cut or Stall.
func (p *Proxy) Delay(d time.Duration) { p.set(func(h *health) { h.delay = d }) }

// Heal ends Cut, Stall and Delay. Connections that were reset stay closed.
func (p *Proxy) Heal() { p.set(func(h *health) { *h = health{} }) }

// Close ends the proxy and all connections, and waits until no goroutine is left. It may be called more than once.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.cancel()
	for link := range p.links {
		link.reset()
	}
	p.mu.Unlock()
	err := p.listener.Close()
	p.wg.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close the proxy for %s: %w", p.target, err)
	}
	return nil
}

func (p *Proxy) set(change func(*health)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.health)
	close(p.changed)
	p.changed = make(chan struct{})
	if p.health.cut {
		for link := range p.links {
			link.reset()
		}
	}
}

func (p *Proxy) delay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.health.delay
}

// pass blocks while the proxy is stalled. It returns false if the link has ended in the meantime.
func (p *Proxy) pass(l *link) bool {
	for {
		p.mu.Lock()
		stalled, changed := p.health.stalled, p.changed
		p.mu.Unlock()
		if !stalled {
			return l.ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-l.ctx.Done():
			return false
		}
	}
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			if p.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			// For example, no file descriptor is left. Accept may succeed later.
			select {
			case <-time.After(10 * time.Millisecond):
			case <-p.ctx.Done():
			}
			continue
		}
		if l := p.add(conn.(*net.TCPConn)); l != nil {
			p.wg.Go(func() {
				defer p.remove(l)
				l.run()
			})
		}
	}
}

// add creates a link for an accepted connection. If the proxy is cut or closed, it resets the connection and returns
// nil.
func (p *Proxy) add(client *net.TCPConn) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &link{proxy: p, client: client}
	l.ctx, l.cancel = context.WithCancel(p.ctx)
	if p.health.cut || p.ctx.Err() != nil {
		l.reset()
		return nil
	}
	p.links[l] = struct{}{}
	return l
}

func (p *Proxy) remove(l *link) {
	l.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
