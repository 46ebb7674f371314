package agent_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// wire records the requests of the agent to an API server, and lets a test modify them.
type wire struct {
	mu       sync.Mutex
	requests []string
	// interceptor handles the requests; nil: requests are not changed
	interceptor func(request *http.Request, next http.RoundTripper) (*http.Response, error)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		w.mu.Lock()
		w.requests = append(w.requests, describe(request))
		interceptor := w.interceptor
		w.mu.Unlock()
		if interceptor != nil {
			return interceptor(request, next)
		}
		return next.RoundTrip(request)
	})
}

// describe formats a request, as in "PATCH configmaps a", "LIST configmaps" or "WATCH configmaps".
func describe(request *http.Request) string {
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case len(path) > 1 && path[0] == "api":
		path = path[2:]
	case len(path) > 2 && path[0] == "apis":
		path = path[3:]
	default:
		return "DISCOVER"
	}
	if len(path) == 0 {
		return "DISCOVER"
	}
	if len(path) > 2 && path[0] == "namespaces" {
		path = path[2:]
	}
	verb := request.Method
	query := request.URL.Query()
	switch {
	case query.Get("watch") == "true":
		verb = "WATCH"
	case verb == http.MethodGet && len(path) == 1:
		verb = "LIST"
	}
	if query.Get("dryRun") != "" {
		verb = "DRYRUN"
	}
	return verb + " " + strings.Join(path, " ")
}

// take returns the requests since the last call, except for discovery and watches.
func (w *wire) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.requests
	w.requests = nil
	return slices.DeleteFunc(taken, func(r string) bool {
		return r == "DISCOVER" || strings.HasPrefix(r, "WATCH ") || strings.HasPrefix(r, "LIST ")
	})
}

// writes returns the requests that write, except for Events.
func writes(requests []string) []string {
	return slices.DeleteFunc(slices.Clone(requests), func(r string) bool {
		return strings.HasPrefix(r, "GET ") || strings.HasPrefix(r, "DRYRUN ") || strings.HasSuffix(r, " events") ||
			strings.Contains(r, " events ")
	})
}

// intercept sets the function that handles all requests from now on.
func (w *wire) intercept(interceptor func(*http.Request, http.RoundTripper) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interceptor = interceptor
}
