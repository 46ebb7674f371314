package localplane

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// A link is one connection through a Proxy.
type link struct {
	proxy  *Proxy
	client *net.TCPConn
	ctx    context.Context // ends with the link
	cancel context.CancelFunc

	mu     sync.Mutex
	server *net.TCPConn // nil until dialed
	broken bool
}

// inFlight limits the pieces that one direction of a link buffers while it is delayed or stalled. If the buffer is
// full, the sender waits, as with a full TCP window.
const inFlight = 256

const pieceSize = 16 << 10

// A piece is data in transit. The last piece has no data, but the reason why the stream ended: io.EOF or another error.
type piece struct {
	data []byte
	end  error
	due  time.Time
}

// run copies data in both directions until both sides have closed or one of them is broken.
func (l *link) run() {
	defer l.close()
	server, err := l.dial()
	if err != nil {
		l.reset() // A direct connection to the target would have failed too.
		return
	}
	var wg sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{l.client, server}, {server, l.client}} {
		pieces := make(chan piece, inFlight)
		wg.Go(func() { l.read(way[0], pieces) })
		wg.Go(func() { l.write(pieces, way[1]) })
	}
	wg.Wait()
}

func (l *link) dial() (*net.TCPConn, error) {
	if !l.proxy.pass(l) {
		return nil, l.ctx.Err()
	}
	conn, err := (&net.Dialer{}).DialContext(l.ctx, "tcp", l.proxy.target)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = conn.(*net.TCPConn)
	if l.broken { // Cut was called during the dial.
		resetConn(l.server)
		return nil, net.ErrClosed
	}
	return l.server, nil
}

func (l *link) read(from *net.TCPConn, pieces chan<- piece) {
	defer close(pieces)
	buffer := make([]byte, pieceSize)
	for {
		n, err := from.Read(buffer)
		due := time.Now().Add(l.proxy.delay())
		if n > 0 && !send(l.ctx, pieces, piece{data: bytes.Clone(buffer[:n]), due: due}) {
			return
		}
		if err != nil {
			send(l.ctx, pieces, piece{end: err, due: due})
			return
		}
	}
}

func send(ctx context.Context, pieces chan<- piece, p piece) bool {
	select {
	case pieces <- p:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *link) write(pieces <-chan piece, to *net.TCPConn) {
	for p := range pieces {
		if !l.sleepUntil(p.due) || !l.proxy.pass(l) {
			return
		}
		if p.end == nil {
			_, p.end = to.Write(p.data)
		}
		switch {
		case p.end == nil:
		case errors.Is(p.end, io.EOF):
			_ = to.CloseWrite() // The other direction may still send data.
			return
		default:
			l.reset()
			return
		}
	}
}

func (l *link) sleepUntil(due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// reset breaks the link immediately: both sides get "connection reset by peer".
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
	l.cancel()
	resetConn(l.client)
	if l.server != nil {
		resetConn(l.server)
	}
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

func resetConn(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // Close then sends RST rather than FIN.
	_ = conn.Close()
}
