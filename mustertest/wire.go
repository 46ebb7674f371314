package mustertest

import (
	"maps"
	"net/http"
	"strings"
	"sync"
)

// RoundTripper lets a function be an http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Attributes are what a request is about, in the words of RBAC.
type Attributes struct {
	Verb      string // as "list" or "deletecollection"
	Group     string // empty: the core group
	Resource  string // with its subresource, as "works/status"
	Namespace string // empty: none, or all
	Name      string // empty: none, or many
}

// AttributesOf are those of a request to an API server. Discovery has none: their Resource is empty.
func AttributesOf(r *http.Request) Attributes {
	var a Attributes
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		a.Group, parts = parts[1], parts[3:]
	default:
		return a
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		a.Namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	a.Resource = parts[0]
	if len(parts) > 1 {
		a.Name = parts[1]
	}
	if len(parts) > 2 {
		a.Resource += "/" + parts[2]
	}
	a.Verb = verbOf(r, a.Name == "")
	return a
}

func verbOf(r *http.Request, many bool) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if many {
			return "deletecollection"
		}
		return "delete"
	}
	switch watch := r.URL.Query().Get("watch"); {
	case watch == "true" || watch == "1":
		return "watch"
	case many:
		return "list"
	default:
		return "get"
	}
}

// Wire counts the requests that go over it. The zero value is one that nothing has gone over; it may be used concurrently.
type Wire struct {
	mu       sync.Mutex
	requests map[string]int // by method and resource, as in "PATCH works/status"
}

// Over wraps a client's transport, as rest.Config.Wrap takes it.
func (w *Wire) Over(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		w.mu.Lock()
		if w.requests == nil {
			w.requests = map[string]int{}
		}
		w.requests[r.Method+" "+AttributesOf(r).Resource]++
		w.mu.Unlock()
		return next.RoundTrip(r)
	})
}

// Of is how many requests of a method and a resource there were, as of "GET works".
func (w *Wire) Of(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests[what]
}

// Writes are how many requests there were by method and resource, but for those that read and those about Events.
func (w *Wire) Writes() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	writes := map[string]int{}
	maps.Copy(writes, w.requests)
	maps.DeleteFunc(writes, func(what string, _ int) bool {
		return strings.HasPrefix(what, http.MethodGet) || strings.HasSuffix(what, " events")
	})
	return writes
}

// Forget starts to count anew.
func (w *Wire) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.requests)
}
