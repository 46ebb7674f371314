package localplane

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// short is the time for which a test checks that no data arrives.
const short = 50 * time.Millisecond

func TestProxyCarriesBothWays(t *testing.T) {
	proxy := newTestProxy(t, echo(t))
	conn := dial(t, proxy)
	big := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB, many pieces
	go func() {
		_, _ = io.WriteString(conn, big)
		_ = conn.CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	require.NoError(t, err, "the end of one direction leaves the other open")
	require.Equal(t, big, string(got))
}

func TestProxyCut(t *testing.T) {
	proxy := newTestProxy(t, echo(t))
	conn := dial(t, proxy)
	require.NoError(t, conn.exchange("hello"))

	proxy.Cut()
	require.ErrorIs(t, conn.exchange("hello"), syscall.ECONNRESET)
	require.ErrorIs(t, dialAndExchange(proxy), syscall.ECONNRESET, "a new connection is cut")

	proxy.Heal()
	require.Error(t, conn.exchange("hello"), "Heal does not restore a cut connection")
	require.NoError(t, dial(t, proxy).exchange("hello"))
}

func TestProxyStall(t *testing.T) {
	proxy := newTestProxy(t, echo(t))
	conn := dial(t, proxy)
	require.NoError(t, conn.exchange("before"))

	proxy.Stall()
	fresh := dial(t, proxy)
	for _, c := range []*testConn{conn, fresh} {
		_, err := io.WriteString(c, "meanwhile\n")
		require.NoError(t, err, "a write on a stalled connection succeeds")
		require.NoError(t, c.SetReadDeadline(time.Now().Add(short)))
		_, err = c.lines.ReadString('\n')
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "neither data nor the end of the connection")
		require.NoError(t, c.SetReadDeadline(time.Now().Add(eventually)))
	}

	proxy.Heal()
	for _, c := range []*testConn{conn, fresh} {
		line, err := c.lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "meanwhile\n", line, "the line arrives after Heal")
		require.NoError(t, c.exchange("after"))
	}
}

func TestProxyStallHidesTheEndOfAConnection(t *testing.T) {
	accepted := make(chan net.Conn, 1)
	proxy := newTestProxy(t, listen(t, func(conn net.Conn) { accepted <- conn }))
	conn := dial(t, proxy)
	server := <-accepted
	defer server.Close()
	proxy.Stall()
	require.NoError(t, conn.Close())
	require.NoError(t, server.SetReadDeadline(time.Now().Add(short)))
	_, err := server.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	proxy.Heal()
	require.NoError(t, server.SetReadDeadline(time.Now().Add(eventually)))
	_, err = server.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

func TestProxyCutAfterStall(t *testing.T) {
	proxy := newTestProxy(t, echo(t))
	proxy.Stall()
	conn := dial(t, proxy)
	proxy.Cut()
	require.ErrorIs(t, conn.exchange("hello"), syscall.ECONNRESET)
}

func TestProxyDelay(t *testing.T) {
	const delay = 60 * time.Millisecond
	proxy := newTestProxy(t, echo(t))
	conn := dial(t, proxy)
	require.NoError(t, conn.exchange("warm"))

	proxy.Delay(delay)
	began := time.Now()
	require.NoError(t, conn.exchange("slow"))
	require.GreaterOrEqual(t, time.Since(began), 2*delay, "one delay in each direction")

	began = time.Now()
	go func() {
		_, _ = io.WriteString(conn, strings.Repeat("x", 64*pieceSize))
		_ = conn.CloseWrite()
	}()
	_, err := io.Copy(io.Discard, conn)
	require.NoError(t, err)
	require.Less(t, time.Since(began), 64*delay, "the pieces are delayed together, not one after the other")

	proxy.Heal()
	conn = dial(t, proxy)
	began = time.Now()
	require.NoError(t, conn.exchange("quick"))
	require.Less(t, time.Since(began), 2*delay)
}

func TestProxy_NoListener(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	proxy := newTestProxy(t, listener.Addr().String())
	require.ErrorIs(t, dialAndExchange(proxy), syscall.ECONNRESET)
}

func TestProxyClose(t *testing.T) {
	target := echo(t)
	for name, fault := range map[string]func(*Proxy){
		"healthy": func(*Proxy) {},
		"stalled": (*Proxy).Stall,
		"cut":     (*Proxy).Cut,
		"delayed": func(p *Proxy) { p.Delay(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			proxy := newTestProxy(t, target)
			old := dial(t, proxy)
			require.NoError(t, old.exchange("hello"))
			fault(proxy)
			_, _ = io.WriteString(old, "on its way\n")
			fresh := make(chan error)
			go func() { fresh <- dialAndExchange(proxy) }()
			require.NoError(t, proxy.Close())
			if err := <-fresh; name != "healthy" { // A healthy proxy may complete the exchange before Close.
				require.Error(t, err)
			}
			_, err := io.Copy(io.Discard, old)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the old connection ends")
			require.NoError(t, proxy.Close(), "Close may be called again")
			require.ErrorIs(t, dialAndExchange(proxy), syscall.ECONNREFUSED)
		})
	}
}

func TestProxyConfig(t *testing.T) {
	proxy := newTestProxy(t, "https://127.0.0.1:6443/prefix")
	require.Equal(t, "127.0.0.1:6443", proxy.target)
	cfg := &rest.Config{Host: "https://127.0.0.1:6443/prefix", BearerToken: "kept"}
	require.Equal(t, "https://"+proxy.Addr()+"/prefix", proxy.Config(cfg).Host)
	require.Equal(t, "kept", proxy.Config(cfg).BearerToken)
	require.Equal(t, "https://127.0.0.1:6443/prefix", cfg.Host, "the argument is not changed")

	_, err := NewProxy("no port")
	require.ErrorContains(t, err, `target "no port" is not HOST:PORT`)
}

func TestProxyInFrontOfAPlane(t *testing.T) {
	p := shared.ForTest(t)
	proxy := newTestProxy(t, p.Config().Host)
	cfg := proxy.Config(p.Config())
	cfg.Timeout = time.Second
	require.NoError(t, get(t, cfg))
	proxy.Stall()
	var timeout net.Error
	require.True(t, errors.As(get(t, cfg), &timeout) && timeout.Timeout(), "a stalled connection ends with a timeout")
	proxy.Cut()
	err := get(t, cfg) // The reader of a pooled connection can see the reset before a request is written to it.
	require.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE),
		"a cut connection is reset: %v", err)
	proxy.Heal()
	cfg.Timeout = eventually
	require.NoError(t, get(t, cfg))
}

func newTestProxy(t *testing.T, target string) *Proxy {
	t.Helper()
	verifyNoLeaks(t)
	proxy, err := NewProxy(target)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	return proxy
}

// echo starts a server that sends back all received data, and returns its address.
func echo(t *testing.T) string {
	t.Helper()
	return listen(t, func(conn net.Conn) {
		_, _ = io.Copy(conn, conn)
		_ = conn.Close()
	})
}

func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		wg.Wait()
	})
	return listener.Addr().String()
}

type testConn struct {
	*net.TCPConn
	lines *bufio.Reader
}

func dial(t *testing.T, proxy *Proxy) *testConn {
	t.Helper()
	conn, err := net.Dial("tcp", proxy.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(eventually)))
	return &testConn{TCPConn: conn.(*net.TCPConn), lines: bufio.NewReader(conn)}
}

// dialAndExchange opens a new connection and calls exchange.
func dialAndExchange(proxy *Proxy) error {
	conn, err := net.Dial("tcp", proxy.Addr())
	if err != nil {
		return err // A reset may arrive so early that the dial fails.
	}
	defer conn.Close()
	return (&testConn{TCPConn: conn.(*net.TCPConn), lines: bufio.NewReader(conn)}).exchange("hello")
}

// exchange sends a line and reads the echo.
func (c *testConn) exchange(line string) error {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return err
	}
	got, err := c.lines.ReadString('\n')
	if err == nil && got != line+"\n" {
		return errors.New("wrong echo: " + got)
	}
	return err
}
