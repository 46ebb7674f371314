package mustertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// spy is a testing.TB that records failures instead of failing the real test.
type spy struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (s *spy) Helper()          {}
func (s *spy) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *spy) Errorf(format string, args ...any) {
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

func (s *spy) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

// failuresOf runs a test until it returns or calls a fatal method, and returns its messages.
func failuresOf(t *testing.T, test func(testing.TB)) []string {
	s, done := &spy{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, f := range s.cleanups {
				f()
			}
		}()
		test(s)
	}()
	<-done
	return s.failures
}

// server is an HTTP server that responds to every request and counts the requests.
type server int

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	*s++
	response := httptest.NewRecorder()
	if r.Method == http.MethodPost {
		response.WriteHeader(http.StatusCreated)
	}
	return response.Result(), nil
}

// send sends a request such as "GET /api/v1/pods", and reports whether it received a response.
func send(t *testing.T, transport http.RoundTripper, request string) bool {
	t.Helper()
	response, err := transport.RoundTrip(requestOf(t, request))
	if err == nil {
		require.NoError(t, response.Body.Close())
	}
	return err == nil
}

func requestOf(t *testing.T, request string) *http.Request {
	t.Helper()
	var method, path string
	_, err := fmt.Sscan(request, &method, &path)
	require.NoError(t, err)
	return httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
}
