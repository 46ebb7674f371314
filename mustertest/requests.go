package mustertest

import (
	"maps"
	"net/http"
	"strings"
	"sync"
)

// RoundTripper is a function that implements http.RoundTripper, for example to inject faults between a client and its
// API server.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Attributes describe a request to an API server in the terms of RBAC.
type Attributes struct {
	Verb      string // such as "list" or "deletecollection"
	Group     string // empty for the core group
	Resource  string // with the subresource, such as "works/status"; empty for requests such as discovery
	Namespace string // empty for cluster-scoped objects and for all namespaces; for a Namespace, its own name
	Name      string // empty for create, list, watch and deletecollection
}

// AttributesOf returns the attributes of a request, or the zero value if the request is not about a resource.
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

// RequestCounter counts the requests of a client. The zero value is ready to use. It may be used concurrently.
//
//	var counter mustertest.RequestCounter
//	config.Wrap(counter.Wrap)
type RequestCounter struct {
	mu       sync.Mutex
	requests map[string]int
}

// Wrap returns a transport that counts each request and passes it on. Use it with rest.Config.Wrap.
func (c *RequestCounter) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		c.mu.Lock()
		if c.requests == nil {
			c.requests = map[string]int{}
		}
		c.requests[r.Method+" "+AttributesOf(r).Resource]++
		c.mu.Unlock()
		return next.RoundTrip(r)
	})
}

// Count returns the number of requests with an HTTP method and a resource, such as "GET works" or "PATCH works/status".
func (c *RequestCounter) Count(request string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[request]
}

// Writes returns the numbers of all requests except reads and requests for Events, by HTTP method and resource.
func (c *RequestCounter) Writes() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	writes := map[string]int{}
	maps.Copy(writes, c.requests)
	maps.DeleteFunc(writes, func(request string, _ int) bool {
		return strings.HasPrefix(request, http.MethodGet) || strings.HasSuffix(request, " events")
	})
	return writes
}

// Reset sets all counts to zero.
func (c *RequestCounter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.requests)
}
