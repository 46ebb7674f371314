package testkit

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// Network is the network between clients and a server of Memory, with failures as those of localplane.Proxy. It starts
// without a failure. Each failure applies to open and to new connections until another call changes it. All waiting is
// durable in the sense of testing/synctest.
type Network struct {
	// Dial connects to the server.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu      sync.Mutex
	failure failure
	changed chan struct{} // closed when failure changes; nil until the first conn waits
	conns   map[*networkConn]struct{}
}

type failure int

const (
	healthy failure = iota
	stopped
	cut
	stalled
)

// DialContext connects to the server. It can be used as rest.Config.Dial.
func (n *Network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if state, _ := n.state(); state == stopped {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	conn, err := n.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &networkConn{Conn: conn, network: n, closed: make(chan struct{}), written: make(chan struct{}, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conns == nil {
		n.conns = map[*networkConn]struct{}{}
	}
	n.conns[c] = struct{}{}
	if n.failure == cut || n.failure == stopped {
		c.reset()
	}
	go c.send()
	return c, nil
}

// Stop resets all open connections and refuses new ones, as if the server had ended.
func (n *Network) Stop() { n.set(stopped) }

// Cut resets all open connections and each new one.
func (n *Network) Cut() { n.set(cut) }

// Stall stops all traffic without closing connections: open connections stay open, and new ones hang, as in a network
// partition. Data that was sent in the meantime arrives after Heal.
func (n *Network) Stall() { n.set(stalled) }

// Heal ends the failure. Connections that were reset stay closed.
func (n *Network) Heal() { n.set(healthy) }

func (n *Network) set(state failure) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failure = state
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
	if state == cut || state == stopped {
		for c := range n.conns {
			c.reset()
		}
	}
}

func (n *Network) state() (failure, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return n.failure, n.changed
}

// networkConn is a connection through a Network. Its writes do not wait for the server, like those of a network with
// large buffers.
type networkConn struct {
	net.Conn
	network *Network
	closed  chan struct{}
	written chan struct{} // receives an element after a write

	mu     sync.Mutex
	buffer []byte
	err    error // the reason why the connection was closed
}

// pass waits while the network is stalled. It returns false if the connection was closed.
func (c *networkConn) pass() bool {
	for {
		state, changed := c.network.state()
		if state != stalled {
			return c.reason() == nil
		}
		select {
		case <-changed:
		case <-c.closed:
			return false
		}
	}
}

// Read reads data that the server has sent, and waits while the network is stalled.
func (c *networkConn) Read(into []byte) (int, error) {
	if !c.pass() {
		return 0, c.reason()
	}
	n, err := c.Conn.Read(into)
	if !c.pass() {
		return 0, c.reason()
	}
	return n, err
}

// Write sends data to the server, after the end of a stall.
func (c *networkConn) Write(data []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	c.buffer = append(c.buffer, data...)
	select {
	case c.written <- struct{}{}:
	default:
	}
	return len(data), nil
}

// send sends the written data to the server until the connection is closed.
func (c *networkConn) send() {
	for {
		select {
		case <-c.written:
		case <-c.closed:
			return
		}
		if !c.pass() {
			return
		}
		c.mu.Lock()
		data := c.buffer
		c.buffer = nil
		c.mu.Unlock()
		if _, err := c.Conn.Write(data); err != nil {
			return // the server has closed the connection, and Read returns this
		}
	}
}

func (c *networkConn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close closes the connection. Data that was not sent is lost.
func (c *networkConn) Close() error {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	delete(c.network.conns, c)
	c.end(net.ErrClosed)
	return nil
}

func (c *networkConn) reset() { c.end(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}) }

// end closes the connection, unless that has happened before.
func (c *networkConn) end(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = reason
		close(c.closed)
		_ = c.Conn.Close() // a pipe returns no error
	}
}
