package apiserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
)

// Config returns a client configuration of a user. Requests are function calls of the Server: they use no network and
// no TLS, and all waiting is durable in the sense of testing/synctest. If the configuration has a bearer token, the
// token determines the user. A user without groups has almost no permissions; see Admin.
func (s *Server) Config(name string, groups ...string) *rest.Config {
	return &rest.Config{
		Host: "https://" + s.host(), QPS: -1,
		Transport: s.Transport(name, groups...),
	}
}

// Admin returns a client configuration of a user with all permissions.
func (s *Server) Admin() *rest.Config { return s.Config("admin", groupMasters) }

// Transport returns a RoundTripper that sends requests to the Server as a user. If name is empty, only bearer tokens
// authenticate a request.
func (s *Server) Transport(name string, groups ...string) http.RoundTripper {
	return &transport{s: s, user: user{Name: name, Groups: slices.Clone(groups)}}
}

// ConfigTLS returns a client configuration with a client certificate that connects by DialContext.
func (s *Server) ConfigTLS(name string, groups ...string) (*rest.Config, error) {
	certificate, key, err := s.authority.clientCertificate(user{Name: name, Groups: groups}, s.options.Clock.Now())
	if err != nil {
		return nil, fmt.Errorf("issue a client certificate for user %s: %w", name, err)
	}
	return &rest.Config{
		Host: "https://" + s.host(), QPS: -1, Dial: s.DialContext,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.CertificateAuthority(), CertData: certificate, KeyData: key},
	}, nil
}

// URL returns the address of the Server, for configurations that use Transport or DialContext.
func (s *Server) URL() string { return "https://" + s.host() }

// CertificateAuthority returns the certificate in PEM that verifies the Server and the client certificates that it
// signs.
func (s *Server) CertificateAuthority() []byte { return bytes.Clone(s.authority.pem) }

// Token returns a bearer token of a user. It does not expire.
func (s *Server) Token(name string, groups ...string) string {
	token := "in-memory-" + s.ids.uid()
	s.tokens.add(token, user{Name: name, Groups: slices.Clone(groups)})
	return token
}

type transport struct {
	s    *Server
	user user
}

// RoundTrip sends a request to the Server. A watch runs in a goroutine until its body is closed.
func (t *transport) RoundTrip(hr *http.Request) (*http.Response, error) {
	if hr.Body != nil {
		defer hr.Body.Close()
	}
	ctx := hr.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if t.s.ctx.Err() != nil {
		return nil, errClosed
	}
	in := hr.Clone(withUser(ctx, t.user))
	in.RemoteAddr, in.Host = "in-memory", hr.URL.Host
	if watch := in.URL.Query().Get("watch"); hr.Method != http.MethodGet || watch == "" || watch == "false" ||
		watch == "0" {
		out := &recorder{}
		serveRecorded(t.s, out, in)
		return out.response(hr)
	}
	return t.stream(hr, in)
}

// serveRecorded calls ServeHTTP for a request that has no connection to close. It recovers from http.ErrAbortHandler.
func serveRecorded(s *Server, out *recorder, in *http.Request) {
	defer func() {
		if problem := recover(); problem != nil && problem != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
			panic(problem)
		}
	}()
	s.ServeHTTP(out, in)
}

func (t *transport) stream(hr, in *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(in.Context())
	reader, writer := io.Pipe()
	out := &recorder{pipe: writer, started: make(chan struct{})}
	t.s.background.Go(func() {
		defer cancel()
		serveRecorded(t.s, out, in.WithContext(ctx))
		out.finish()
	})
	select {
	case <-out.started:
	case <-ctx.Done():
		cancel()
		_ = reader.CloseWithError(context.Cause(ctx)) // never returns an error
		return nil, ctx.Err()
	}
	response, err := out.response(hr)
	if err != nil {
		cancel()
		_ = reader.Close() // never returns an error
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() {
		// After the context of the client has ended, the body ends without an error. watch.Filter, which controller-runtime
		// uses for watches of metadata, would send an error to a consumer that no longer receives, and leak its goroutine.
		_ = writer.Close() // never returns an error
	})
	response.Body = &streamBody{reader, func() { stop(); cancel() }}
	return response, nil
}

// CloseIdleConnections does nothing: there are no connections.
func (t *transport) CloseIdleConnections() {}

type streamBody struct {
	*io.PipeReader
	cancel func()
}

// Read returns io.EOF after Close, for the reason given in stream.
func (b *streamBody) Read(into []byte) (int, error) {
	n, err := b.PipeReader.Read(into)
	if errors.Is(err, io.ErrClosedPipe) {
		err = io.EOF
	}
	return n, err
}

func (b *streamBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// recorder is a ResponseWriter that buffers the response. For a watch it writes the body to a pipe.
type recorder struct {
	header  http.Header
	code    int
	body    bytes.Buffer
	dropped error

	pipe    *io.PipeWriter
	started chan struct{}
	once    sync.Once
}

func (r *recorder) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

func (r *recorder) WriteHeader(code int) {
	if r.code != 0 {
		return
	}
	r.code = code
	r.start()
}

func (r *recorder) start() {
	if r.started != nil {
		r.once.Do(func() { close(r.started) })
	}
}

func (r *recorder) Write(data []byte) (int, error) {
	if r.code == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.pipe != nil {
		return r.pipe.Write(data)
	}
	return r.body.Write(data)
}

// Flush implements http.Flusher. It does nothing, because Write does not buffer.
func (r *recorder) Flush() {}

// drop makes the client receive an error instead of a response.
func (r *recorder) drop(err error) { r.dropped = err }

func (r *recorder) finish() {
	r.start()
	if r.pipe != nil {
		_ = r.pipe.CloseWithError(r.dropped) // never returns an error; nil is the end of the body
	}
}

func (r *recorder) response(hr *http.Request) (*http.Response, error) {
	if r.dropped != nil {
		if lost, ok := errors.AsType[dropped](r.dropped); ok {
			return nil, lost.error
		}
		return nil, r.dropped
	}
	out := &http.Response{
		StatusCode: r.code, Status: fmt.Sprintf("%d %s", r.code, http.StatusText(r.code)), Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     r.Header(), Request: hr, ContentLength: -1,
	}
	if r.pipe == nil {
		out.ContentLength = int64(r.body.Len())
		out.Body = io.NopCloser(bytes.NewReader(r.body.Bytes()))
	}
	return out, nil
}

// listener is an in-memory network with TLS, for clients that open their own connections.
type listener struct {
	mu     sync.Mutex
	server *http.Server
	conns  chan net.Conn
	closed chan struct{}
	done   sync.WaitGroup
}

// DialContext connects to the Server in memory and ignores the address. It can be used as rest.Config.Dial and
// http.Transport.DialContext. The connection uses HTTP/1.1 over TLS. Client certificates of the Server's certificate
// authority authenticate users.
func (s *Server) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	l, err := s.listen()
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Server) listen() (*listener, error) {
	l := &s.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, errClosed
	}
	if l.server != nil {
		return l, nil
	}
	l.conns, l.closed = make(chan net.Conn), make(chan struct{})
	pool := x509.NewCertPool()
	pool.AddCert(s.authority.certificate)
	l.server = &http.Server{
		Handler: s, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{s.authority.serving}, ClientAuth: tls.RequestClientCert,
			MinVersion: tls.VersionTLS12,
			Time:       s.options.Clock.Now, ClientCAs: pool, NextProtos: []string{"http/1.1"},
		},
	}
	l.done.Go(func() { _ = l.server.Serve(tls.NewListener(acceptor{l}, l.server.TLSConfig)) }) // ends by Close
	return l, nil
}

func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server == nil {
		return
	}
	close(l.closed)
	_ = l.server.Close() // no connection needs a graceful shutdown
	l.done.Wait()
}

type acceptor struct{ l *listener }

func (a acceptor) Accept() (net.Conn, error) {
	select {
	case conn := <-a.l.conns:
		return conn, nil
	case <-a.l.closed:
		return nil, net.ErrClosed
	}
}

func (a acceptor) Close() error   { return nil }
func (a acceptor) Addr() net.Addr { return memoryAddr{} }

type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return "memory" }
