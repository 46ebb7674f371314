package apiserver

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
)

// request is a parsed request, similar to kube-apiserver's RequestInfo.
type request struct {
	ctx   context.Context
	http  *http.Request
	query url.Values
	user  user

	// verb is get, list, watch, create, update, patch, delete or deletecollection. For a non-resource path, verb is the
	// lower-case HTTP method.
	verb        string
	gvr         schema.GroupVersionResource // empty if the request is for a non-resource path
	kind        *kinds.Kind                 // nil if the resource is not served
	namespace   string
	name        string
	subresource string

	dryRun   bool
	response response
}

// response specifies how the server responds to a request.
type response struct {
	accept   accepted
	cut      time.Duration // ends a watch after this time; zero: never
	warnings []string
}

func (r *response) warn(text string) { r.warnings = append(r.warnings, text) }

// forResource reports whether the request is for a resource.
func (r *request) forResource() bool { return r.gvr.Resource != "" }

// parse parses the path and the query of a request.
func (s *Server) parse(hr *http.Request) *request {
	r := &request{ctx: hr.Context(), http: hr, query: hr.URL.Query(), verb: strings.ToLower(hr.Method)}
	r.dryRun = len(r.query["dryRun"]) > 0
	parts := strings.FieldsFunc(hr.URL.Path, func(c rune) bool { return c == '/' })
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		r.gvr.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		r.gvr.Group, r.gvr.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return r
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		r.namespace = parts[1]
		if len(parts) > 2 && (parts[2] != "status" && parts[2] != "finalize") {
			parts = parts[2:]
		}
	}
	r.gvr.Resource = parts[0]
	if len(parts) > 1 {
		r.name = parts[1]
	}
	if len(parts) > 2 {
		r.subresource = strings.Join(parts[2:], "/")
	}
	r.kind = s.served.kind(r.gvr)
	switch hr.Method {
	case http.MethodPost:
		r.verb = "create"
	case http.MethodPut:
		r.verb = "update"
	case http.MethodPatch:
		r.verb = "patch"
	case http.MethodDelete:
		r.verb = "delete"
		if r.name == "" {
			r.verb = "deletecollection"
		}
	case http.MethodGet, http.MethodHead:
		r.verb = "get"
		if r.name == "" {
			r.verb = "list"
			if selector, err := fields.ParseSelector(r.query.Get("fieldSelector")); err == nil {
				if name, ok := selector.RequiresExactMatch("metadata.name"); ok {
					r.name = name
				}
			}
			if watch := r.query.Get("watch"); watch != "" && watch != "false" && watch != "0" {
				r.verb = "watch"
			}
		}
	}
	return r
}

// groupResource returns the GroupResource for error messages.
func (r *request) groupResource() schema.GroupResource { return r.gvr.GroupResource() }
