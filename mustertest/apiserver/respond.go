package apiserver

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
)

// accepted is the encoding of a response that the client accepts.
type accepted struct {
	media string // kinds.JSON, kinds.YAML or kinds.Protobuf
	as    string // "", Table, PartialObjectMetadata or PartialObjectMetadataList
	// aggregated specifies whether the client accepts an aggregated discovery document.
	aggregated bool
}

var transforms = []string{"Table", "PartialObjectMetadata", "PartialObjectMetadataList"}

// negotiate returns the first media type of the Accept header that the server can encode.
func negotiate(header string, protobuf bool) (accepted, error) {
	if strings.TrimSpace(header) == "" {
		return accepted{media: kinds.JSON}, nil
	}
	for part := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil {
			continue
		}
		out := accepted{as: params["as"]}
		if out.as == "APIGroupDiscoveryList" {
			if params["v"] != "v2" {
				continue
			}
			out.as, out.aggregated = "", true
		} else if out.as != "" && (!slices.Contains(transforms, out.as) || params["g"] != metav1.GroupName ||
			params["v"] != "v1") {
			continue
		}
		switch media {
		case kinds.JSON, "application/*", "*/*":
			out.media = kinds.JSON
		case kinds.YAML:
			out.media = kinds.YAML
		case kinds.Protobuf:
			if !protobuf || out.as != "" || out.aggregated {
				continue
			}
			out.media = kinds.Protobuf
		default:
			continue
		}
		return out, nil
	}
	return accepted{}, notAcceptable()
}

// notAcceptable returns the error of the generic handler, which only requests for built-in kinds reach.
func notAcceptable(more ...string) error {
	media := append([]string{kinds.JSON, kinds.YAML, kinds.Protobuf}, more...)
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Details: &metav1.StatusDetails{},
		Message: "406: Not Acceptable\n\nAvailable representations: " + strings.Join(media, ", "),
	}}
}

// notAcceptableCustom returns the error of the handler of custom resources.
func notAcceptableCustom() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + strings.Join([]string{kinds.JSON, kinds.YAML,
			kinds.Protobuf}, ", "),
	}}
}

// notImplemented returns an error for a feature of kube-apiserver that the server does not implement.
func notImplemented(feature string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: feature + " is not implemented by the in-memory API server; see its package documentation",
	}}
}

// asStatus returns the Status that a client receives for an error.
func asStatus(err error) *metav1.Status {
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status := known.Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		if status.Code == 0 {
			status.Code = http.StatusInternalServerError
		}
		return &status
	}
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: http.StatusInternalServerError, Reason: metav1.StatusReasonUnknown, Message: err.Error(),
	}
}

func (r *request) header(w http.ResponseWriter) {
	for _, text := range r.response.warnings {
		if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			w.Header().Add("Warning", header)
		}
	}
	r.response.warnings = nil
}

// fail writes an error as the response.
func (r *request) fail(w http.ResponseWriter, err error) {
	status := asStatus(err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	r.status(w, status)
}

func (r *request) status(w http.ResponseWriter, status *metav1.Status) {
	r.header(w)
	code := int(status.Code)
	if code == 0 {
		code = http.StatusOK
	}
	if r.response.accept.media == kinds.Protobuf {
		if body, err := kinds.EncodeProtobuf(status); err == nil {
			reply(w, code, kinds.Protobuf, body)
			return
		}
	}
	body, err := json.Marshal(status)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	reply(w, code, kinds.JSON, append(body, '\n'))
}

func reply(w http.ResponseWriter, code int, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(code)
	_, _ = w.Write(body) // an error means that the client has disconnected
}

// object writes an object as the response, in the encoding that the client accepts.
func (r *request) object(w http.ResponseWriter, code int, kind *kinds.Kind, obj kinds.Object) {
	r.encoded(w, code, kind, obj, func() ([]byte, error) { return json.Marshal(obj) })
}

func (r *request) encoded(w http.ResponseWriter, code int, kind *kinds.Kind, obj kinds.Object,
	asJSON func() ([]byte, error)) {
	body, err := r.encode(kind, obj, asJSON)
	if err != nil {
		r.fail(w, err)
		return
	}
	r.header(w)
	reply(w, code, r.response.accept.media, body)
}

func (r *request) encode(kind *kinds.Kind, obj kinds.Object, asJSON func() ([]byte, error)) ([]byte, error) {
	switch {
	case r.response.accept.as == "Table":
		table, err := tableOf(kind, []kinds.Object{obj}, r.query.Get("includeObject"), listMeta(obj))
		if err != nil {
			return nil, err
		}
		return marshal(r.response.accept.media, table)
	case strings.HasPrefix(r.response.accept.as, "PartialObjectMetadata"):
		return marshal(r.response.accept.media, partial(obj))
	case r.response.accept.as != "":
		return nil, notAcceptable()
	case r.response.accept.media == kinds.Protobuf:
		if !kind.Builtin() {
			return nil, notAcceptable()
		}
		typed, err := kind.Typed(obj)
		if err != nil {
			return nil, err
		}
		return kinds.EncodeProtobuf(typed)
	case r.response.accept.media == kinds.YAML:
		return yaml.Marshal(obj)
	}
	body, err := asJSON()
	if err != nil {
		return nil, err
	}
	return append(slices.Clip(body), '\n'), nil
}

func marshal(media string, value any) ([]byte, error) {
	if media == kinds.YAML {
		return yaml.Marshal(value)
	}
	body, err := json.Marshal(value)
	return append(body, '\n'), err
}

func partial(obj kinds.Object) kinds.Object {
	return kinds.Object{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": obj["metadata"]}
}

func listMeta(obj kinds.Object) metav1.ListMeta {
	metadata, _ := obj["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	return metav1.ListMeta{ResourceVersion: version}
}

// decode decodes the body of a request as an object of the kind.
func (r *request) decode(kind *kinds.Kind, body []byte) (kinds.Object, error) {
	media, err := r.contentType()
	if err != nil {
		return nil, err
	}
	decoded, err := kind.Decode(body, media)
	if err != nil {
		if decoded.GVK.Kind != "" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
				decoded.GVK.Kind, decoded.GVK.Version, kind.GVK.Kind, err))
		}
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)",
			kind.GVK.Kind, err, summary(body)))
	}
	if decoded.GVK.GroupVersion() != kind.GVK.GroupVersion() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the API version in the data (%s) does not match the expected API version (%s)",
			decoded.GVK.GroupVersion(), kind.GVK.GroupVersion()))
	}
	if decoded.GVK.Kind != kind.GVK.Kind {
		return nil,
			apierrors.NewBadRequest(
				fmt.Sprintf("%s in version %q cannot be handled as a %s: converting (%s) to (%s): unknown conversion",
					decoded.GVK.Kind, decoded.GVK.Version, kind.GVK.Kind, decoded.GVK, kind.GVK))
	}
	if err := r.strict(decoded.Strict); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
			decoded.GVK.Kind, decoded.GVK.Version, kind.GVK.Kind, err))
	}
	return decoded.Object, nil
}

// strict applies the field validation directive of the request.
func (r *request) strict(found []error) error {
	if len(found) == 0 {
		return nil
	}
	switch r.query.Get("fieldValidation") {
	case metav1.FieldValidationIgnore:
		return nil
	case metav1.FieldValidationStrict:
		return runtime.NewStrictDecodingError(found)
	}
	for _, err := range found {
		r.response.warn(err.Error())
	}
	return nil
}

// summary returns the beginning of a body for an error message.
func summary(body []byte) string {
	const limit = 30
	switch {
	case len(body) == 0:
		return "<empty>"
	case body[0] != '{':
		if len(body) > limit {
			return hex.EncodeToString(body[:limit]) + " ..."
		}
		return hex.EncodeToString(body)
	case len(body) > limit:
		return string(body[:limit]) + " ..."
	}
	return string(body)
}

func (r *request) contentType() (string, error) {
	header := r.http.Header.Get("Content-Type")
	if header == "" {
		return kinds.JSON, nil
	}
	media, _, err := mime.ParseMediaType(header)
	if err == nil && slices.Contains([]string{kinds.JSON, kinds.YAML, kinds.Protobuf}, media) {
		return media, nil
	}
	return "", r.unsupportedMedia(kinds.JSON, kinds.YAML, kinds.Protobuf)
}

// unsupportedMedia returns the error for a body in an unknown format. The generic handler, which only requests for
// built-in kinds reach, has another message than the handler of custom resources.
func (r *request) unsupportedMedia(supported ...string) error {
	status := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s",
			strings.Join(supported, ", ")),
	}
	if r.kind.Builtin() && r.verb == "patch" {
		status.Details, status.Message = &metav1.StatusDetails{}, "415: Unsupported Media Type"
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// unknownResource writes the response of the generic handler for an unknown resource, which is not a Status.
func unknownResource(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte("404 page not found\n"))
}

func methodNotAllowed(gr schema.GroupResource, verb string) error {
	return apierrors.NewMethodNotSupported(gr, verb)
}
