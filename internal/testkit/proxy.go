package testkit

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// ConnectProxy runs an HTTP proxy until the test ends, and returns its URL. It calls a function with each CONNECT
// request, and connects to the address that the function returns.
func ConnectProxy(t testing.TB, address func(*http.Request) string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server, err := net.Dial("tcp", address(r)) //nolint:noctx // It ends with the connection of the client.
		if err != nil {
			return
		}
		defer server.Close()
		client, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(server, buffered) }()
		_, _ = io.Copy(client, server)
	}))
	t.Cleanup(s.Close)
	return s.URL
}
