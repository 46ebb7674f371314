package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
)

// maxBody is the maximum size of a request body in bytes, as in kube-apiserver.
const maxBody = 3 * 1024 * 1024

// ServeHTTP handles one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	r := s.parse(hr)
	drop, err := s.inject(r, w)
	if drop != nil {
		panic(http.ErrAbortHandler) // closes the connection; Transport turns it into the error of the Fault
	}
	if err != nil {
		r.fail(w, err)
		return
	}
	s.answer(w, r)
}

func (s *Server) answer(w http.ResponseWriter, r *request) {
	var err error
	r.response.accept.media = kinds.JSON
	if r.user, err = s.authenticate(r); err != nil {
		r.fail(w, err)
		return
	}
	if err := s.authorizeRequest(r); err != nil {
		r.fail(w, err)
		return
	}
	if !r.forResource() {
		s.servePath(w, r)
		return
	}
	if r.kind == nil {
		unknownResource(w)
		return
	}
	accept, err := negotiate(r.http.Header.Get("Accept"), r.kind.Builtin())
	if err != nil {
		if !r.kind.Builtin() {
			err = notAcceptableCustom()
		} else if r.verb == "list" || r.verb == "watch" {
			err = notAcceptable(kinds.JSON+";stream=watch", kinds.Protobuf+";stream=watch")
		}
		r.fail(w, err)
		return
	}
	r.response.accept = accept
	if err := s.serveResource(w, r); err != nil {
		r.fail(w, err)
	}
}

// writeOptions validates the options of a create or update request.
func (r *request) writeOptions() error {
	var errs field.ErrorList
	kind := "CreateOptions"
	if r.verb == "update" {
		options := &metav1.UpdateOptions{}
		if err := metav1.Convert_url_Values_To_v1_UpdateOptions(&r.query, options, nil); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		kind, errs = "UpdateOptions", metav1validation.ValidateUpdateOptions(options)
	} else {
		options := &metav1.CreateOptions{}
		if err := metav1.Convert_url_Values_To_v1_CreateOptions(&r.query, options, nil); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		errs = metav1validation.ValidateCreateOptions(options)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
	}
	return nil
}

func (s *Server) serveResource(w http.ResponseWriter, r *request) error {
	if r.kind.Namespaced && r.namespace == "" && !slices.Contains([]string{"list", "watch", "deletecollection"}, r.verb) &&
		(r.verb != "create" || !r.kind.Virtual()) {
		unknownResource(w)
		return nil
	}
	if !r.kind.Namespaced && r.namespace != "" && r.gvr.GroupResource() != namespaces {
		unknownResource(w)
		return nil
	}
	if r.subresource != "" {
		return s.serveSubresource(w, r)
	}
	if !slices.Contains(r.kind.Verbs, r.verb) {
		return methodNotAllowed(r.groupResource(), r.verb)
	}
	switch r.verb {
	case "get":
		return s.get(w, r)
	case "list":
		return s.list(w, r)
	case "watch":
		return s.watch(w, r)
	case "create":
		if r.name != "" {
			return methodNotAllowed(r.groupResource(), r.verb)
		}
		if r.kind.Virtual() {
			return s.review(w, r)
		}
		return s.create(w, r)
	case "update":
		return s.update(w, r)
	case "patch":
		return s.patch(w, r)
	case "delete":
		return s.delete(w, r)
	case "deletecollection":
		return s.deleteCollection(w, r)
	}
	return methodNotAllowed(r.groupResource(), r.verb)
}

func (s *Server) serveSubresource(w http.ResponseWriter, r *request) error {
	switch gr := r.groupResource(); {
	case r.subresource == "status" && r.kind.Subresources.Status:
		switch r.verb {
		case "get":
			return s.get(w, r)
		case "update":
			return s.update(w, r)
		case "patch":
			return s.patch(w, r)
		}
	case gr == namespaces && r.subresource == "finalize" && r.verb == "update":
		return s.update(w, r)
	case gr == signingRequests && r.subresource == "approval":
		switch r.verb {
		case "get":
			return s.get(w, r)
		case "update":
			return s.update(w, r)
		case "patch":
			return s.patch(w, r)
		}
	case gr == serviceAccounts && r.subresource == "token" && r.verb == "create":
		return s.createToken(w, r)
	case slices.Contains(unimplementedSubresources, r.subresource),
		r.subresource == "scale" && r.kind.Subresources.Scale:
		return notImplemented(fmt.Sprintf("subresource %s of %s", r.subresource, gr))
	case !r.kind.Builtin():
		return apierrors.NewNotFound(gr, r.name)
	default:
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
			Details: &metav1.StatusDetails{}, Message: "the server could not find the requested resource",
		}}
	}
	return methodNotAllowed(r.groupResource(), r.verb)
}

var unimplementedSubresources = []string{
	"attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize", "scale",
}

func (r *request) body() ([]byte, error) {
	if r.http.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.http.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("read the request body: %v", err))
	}
	if len(body) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return body, nil
}

// readOptions decodes options from a JSON body. It does not change options if the body is empty.
func readOptions(body []byte, options any) error {
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, options); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// Faults specifies the faults of requests. Before is called for each request before the request is authenticated, and
// may be called concurrently. If Before returns nil, the request has no fault.
type Faults interface {
	Before(RequestInfo) *Fault
}

// FaultsFunc is a function that implements Faults.
type FaultsFunc func(RequestInfo) *Fault

// Before calls f.
func (f FaultsFunc) Before(info RequestInfo) *Fault { return f(info) }

// RequestInfo describes a request to Faults.
type RequestInfo struct {
	// Verb is the verb of RBAC, such as "list" or "deletecollection". For a non-resource path it is the lower-case HTTP
	// method.
	Verb        string
	Resource    schema.GroupVersionResource
	Namespace   string
	Name        string
	Subresource string
	Path        string
	// UserAgent is the user agent of the client. In most programs it contains the name of the component.
	UserAgent string
}

// A Fault is a failure of one request. Delay can be combined with any other field. Of the other fields, only the first
// that is set applies, in the order DropBefore, DropAfter, Status, Gone, Cut.
type Fault struct {
	// Delay is the time for which the request waits, by the Server's clock, before it takes effect.
	Delay time.Duration
	// Status, if set, is the response. The request has no effect.
	Status *metav1.Status
	// DropBefore, if set, loses the request: it has no effect, and the client receives this error.
	DropBefore error
	// DropAfter, if set, loses the response: the request takes effect, and the client receives this error. For a watch,
	// DropAfter has the same effect as DropBefore.
	DropAfter error
	// Cut is the time, by the Server's clock, after which a watch ends without an error. Zero: the watch does not end
	// early.
	Cut time.Duration
	// Gone makes a watch or a list fail with 410 Expired, as after a compaction.
	Gone bool
}

type dropped struct{ error }

func (d dropped) Unwrap() error { return d.error }

// inject applies a Fault. Drop is the error that the client receives instead of a response; fail is the error that the
// server responds with.
func (s *Server) inject(r *request, w http.ResponseWriter) (drop, fail error) {
	if s.options.Faults == nil {
		return nil, nil
	}
	fault := s.options.Faults.Before(RequestInfo{
		Verb: r.verb, Resource: r.gvr, Namespace: r.namespace, Name: r.name, Subresource: r.subresource,
		Path: r.http.URL.Path, UserAgent: r.http.UserAgent(),
	})
	if fault == nil {
		return nil, nil
	}
	note := func(err error) error {
		if recorder, ok := w.(*recorder); ok {
			recorder.drop(dropped{err})
		}
		return err
	}
	if fault.Delay > 0 {
		timer := s.options.Clock.NewTimer(fault.Delay)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-r.ctx.Done():
			return note(r.ctx.Err()), nil
		case <-s.ctx.Done():
			return note(errClosed), nil
		}
	}
	switch {
	case fault.DropBefore != nil:
		return note(fault.DropBefore), nil
	case fault.DropAfter != nil && r.verb != "watch":
		s.answer(&recorder{}, r)
		return note(fault.DropAfter), nil
	case fault.DropAfter != nil:
		return note(fault.DropAfter), nil
	case fault.Status != nil:
		return nil, &apierrors.StatusError{ErrStatus: *fault.Status}
	case fault.Gone && (r.verb == "watch" || r.verb == "list"):
		return nil, apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
	case fault.Cut > 0 && r.verb == "watch":
		r.response.cut = fault.Cut
	}
	return nil, nil
}

var errClosed = errors.New("the in-memory API server is closed")
