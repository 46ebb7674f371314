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
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // connections are closed in the middle of things
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

// What is under way fails when the pool is closed, and nothing is sent afterwards.
func TestClose(t *testing.T) {
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
	require.True(t, utilnet.IsProbableEOF(err), "client-go tries again what it takes for a connection that was lost")
	require.True(t, body.closed, "a RoundTripper owes that, whatever it returns")

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

// TestClosedWhileDialing checks that a connection that is being opened while its pool is closed is closed as well, at
// every point in time.
func TestClosedWhileDialing(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		// whether Close is called before the connection is there, or after; neither: before it is asked for
		before, after bool
		dials         int
	}{
		{name: "before", reason: "nothing is opened for a pool that is closed", dials: 0},
		{name: "meanwhile", reason: "Close does not know of it yet", before: true, dials: 1},
		{name: "after", reason: "Close knows of it", after: true, dials: 1},
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
				require.ErrorIs(t, err, io.EOF, "the other side hears that it is closed")
			}
		})
	}
}

// TestDialFails checks that the error of a dialer is returned.
func TestDialFails(t *testing.T) {
	p := New(func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF })
	_, err := p.DialContext(t.Context(), "tcp", "east:443")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// TestCloseUnderLoad checks that no connection is left after a Close during requests.
func TestCloseUnderLoad(t *testing.T) {
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
