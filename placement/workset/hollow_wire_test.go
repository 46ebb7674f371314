package workset_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// shopNamespace is the namespace on members for the objects of the tests.
const shopNamespace = "shop"

// ownCluster is a transport that makes a part of a control plane look like a separate cluster. It replaces the
// namespace shop by shop-<member> in requests, and back in responses. A list or a watch of all namespaces becomes one
// of that namespace. It supports JSON only.
//
// Cluster-scoped objects are not separated. The only ones of an agent are AppliedWorks, which the agent distinguishes
// from those of other hubs by a label.
type ownCluster struct {
	next   http.RoundTripper
	member string
}

func (o ownCluster) RoundTrip(r *http.Request) (*http.Response, error) {
	path, err := o.path(r.URL.Path)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = path, ""
	r.Header.Set("Accept", onlyJSON(r.Header.Get("Accept")))
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err := r.Body.Close(); err != nil {
			return nil, err
		}
		if err != nil {
			return nil, err
		}
		if kind := r.Header.Get("Content-Type"); len(text) > 0 && !strings.Contains(kind, "json") && !strings.Contains(kind,
			"apply-patch+yaml") {
			return nil, fmt.Errorf("%s %s has a body of type %s", r.Method, r.URL.Path, kind)
		}
		text = bytes.ReplaceAll(text, field(shopNamespace), field(o.namespace()))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	}
	response, err := o.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	// A watch is one line for each event, and everything else has one or a few.
	response.Body = &lines{body: response.Body, from: bufio.NewReader(response.Body), change: func(line []byte) []byte {
		return bytes.ReplaceAll(line, field(o.namespace()), field(shopNamespace))
	}}
	response.ContentLength = -1
	response.Header.Del("Content-Length")
	return response, nil
}

func (o ownCluster) namespace() string { return shopNamespace + "-" + o.member }

// field returns the JSON field with the namespace of an object.
func field(namespace string) []byte { return fmt.Appendf(nil, `"namespace":%q`, namespace) }

// path returns the path on the control plane for a path in the member's cluster.
func (o ownCluster) path(path string) (string, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	root := map[string]int{"api": 2, "apis": 3}[parts[0]] // number of segments before the resource
	switch {
	case root == 0 || len(parts) <= root || parts[root] == "appliedworks":
		return path, nil
	case parts[root] != "namespaces" && len(parts) == root+1:
		parts = slices.Insert(parts, root, "namespaces", o.namespace())
	case parts[root] == "namespaces" && len(parts) > root+2 && parts[root+1] == shopNamespace:
		parts[root+1] = o.namespace()
	default:
		return "", fmt.Errorf("%s is not in the namespace %s, and would affect all members", path, shopNamespace)
	}
	return "/" + strings.Join(parts, "/"), nil
}

// onlyJSON removes all other formats from the header Accept.
func onlyJSON(accepted string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(accepted, ","), func(kind string) bool {
		return strings.Contains(kind, "protobuf") || strings.Contains(kind, "cbor")
	}), ",")
}

// lines changes a response line by line while it is read.
type lines struct {
	body   io.Closer
	from   *bufio.Reader
	change func([]byte) []byte
	rest   []byte
	err    error
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		var line []byte
		line, l.err = l.from.ReadBytes('\n')
		l.rest = l.change(line)
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *lines) Close() error { return l.body.Close() }
