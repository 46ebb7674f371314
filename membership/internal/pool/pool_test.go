package pool

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// server responds to all requests, and does not complete the responses to watches.
func server(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		if r.URL.Path == "/watch" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // connections are closed during requests
	s.StartTLS()
	return s
}

func send(t *testing.T, p *Pool, url string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	return p.RoundTrip(request)
}

// trusting returns the transport for the pool of a test.
func trusting() *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // a test's own server
}

// TestPool_Close checks that requests in progress fail when the pool is closed, and that no request is sent afterwards.
func TestPool_Close(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := server(t)
	defer s.Close()
	p := New(nil)
	p.Use(trusting())
	response, err := send(t, p, s.URL)
	require.NoError(t, err)
	require.Equal(t, 2, response.ProtoMajor, "client-go's defaults are set")
	require.NoError(t, response.Body.Close())
	p.CloseIdleConnections()
	watch, err := send(t, p, s.URL+"/watch")
	require.NoError(t, err, "only idle connections were closed")
	defer watch.Body.Close()

	p.Close()
	_, err = io.ReadAll(watch.Body)
	require.Error(t, err, "the watch ends")
	body := &closing{Reader: strings.NewReader("x")}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, body)
	require.NoError(t, err)
	_, err = p.RoundTrip(request) //nolint:bodyclose // it fails
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, err, net.ErrClosed)
	require.True(t, utilnet.IsProbableEOF(err), "client-go retries after a lost connection")
	require.True(t, body.closed, "a RoundTripper must close the body, also with an error")

	p.Close()
	(*Pool)(nil).Close()
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// TestPool_CloseWhileDialing checks that a connection that is being opened while its pool is closed is closed as
// well, at every point in time.
func TestPool_CloseWhileDialing(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		// Close is called before the dialer returns, or after; neither: before DialContext
		before, after bool
		dials         int
	}{
		{name: "Close before DialContext", reason: "a closed pool opens no connection", dials: 0},
		{name: "Close while the dialer runs", reason: "Close does not know the connection yet", before: true, dials: 1},
		{name: "Close after DialContext", reason: "Close knows the connection", after: true, dials: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			near, far := net.Pipe()
			dials := 0
			var p *Pool
			p = New(func(context.Context, string, string) (net.Conn, error) {
				dials++
				if test.before {
					p.Close()
				}
				return near, nil
			})
			p.Use(&http.Transport{})
			if !test.before && !test.after {
				p.Close()
			}
			connection, err := p.DialContext(t.Context(), "tcp", "east:443")
			if test.after {
				require.NoError(t, err)
				p.Close()
				_, err = connection.Write([]byte("x"))
				require.Error(t, err, test.reason)
			} else {
				require.ErrorIs(t, err, ErrClosed, test.reason)
			}
			require.Equal(t, test.dials, dials, test.reason)
			if dials > 0 {
				_, err = far.Read(make([]byte, 1))
				require.ErrorIs(t, err, io.EOF, "the connection is closed")
			}
		})
	}
}

// TestPool_DialError checks that the error of a dialer is returned.
func TestPool_DialError(t *testing.T) {
	p := New(func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF })
	_, err := p.DialContext(t.Context(), "tcp", "east:443")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// TestPool_CloseUnderLoad checks that no connection is left after a Close during requests.
func TestPool_CloseUnderLoad(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := server(t)
	defer s.Close()
	for range 20 {
		var mu sync.Mutex
		var opened []net.Conn
		dialing := make(chan struct{}, 1)
		p := New(func(ctx context.Context, network, address string) (net.Conn, error) {
			select {
			case dialing <- struct{}{}:
			default:
			}
			connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				opened = append(opened, connection)
			}
			return connection, err
		})
		transport := trusting()
		transport.MaxConnsPerHost = 4
		p.Use(transport)
		var sending sync.WaitGroup
		for range 8 {
			sending.Go(func() {
				for {
					response, err := send(t, p, s.URL)
					if err != nil {
						return
					}
					_ = response.Body.Close()
				}
			})
		}
		<-dialing
		p.Close()
		sending.Wait() // which ends, since all requests fail from now on
		mu.Lock()
		for _, connection := range opened {
			_, err := connection.Write(nil)
			require.ErrorIs(t, err, net.ErrClosed)
		}
		mu.Unlock()
	}
}
