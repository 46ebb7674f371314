package selection_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/placement/internal/selection"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// plane is the plane of the tests that need one. One test uses it at a time, because some tests kill its API server.
var plane = localplane.NewPool(1, localplane.Options{Name: "selection"})

func TestMain(m *testing.M) { mustertest.Main(m, plane.Shared()...) }

// hub is a namespace of an API server.
type hub struct {
	*testkit.Hub
	server testkit.Server
}

var scheme = mustertest.Scheme(apiextensionsv1.AddToScheme)

// newHub returns a namespace of a server in memory.
func newHub(t testing.TB) *hub {
	return hubOn(t, testkit.MemoryServer{Server: testkit.Memory(t, scheme)})
}

// newHubOnPlane returns a namespace of the control plane.
func newHubOnPlane(t testing.TB) *hub { return hubOn(t, plane.ForTest(t)) }

func hubOn(t testing.TB, server testkit.Server) *hub {
	t.Helper()
	return &hub{testkit.NewHub(t, server.Config(), scheme), server}
}

func (h *hub) newNamespace() string {
	h.T.Helper()
	return mustertest.Namespace(h.T, h.Client)
}

func (h *hub) owner(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: h.Namespace, Name: name}
}

// change changes an existing object.
func change[T client.Object](h *hub, object T, f func(T)) {
	h.T.Helper()
	mustertest.Change(h.T, h.Client, object, f)
}

func (h *hub) configMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name, Labels: labels},
		Data: map[string]string{"name": name}}
}

// user creates a user with the permissions of the rules in the namespace.
func (h *hub) user(rules ...rbacv1.PolicyRule) (name string, config *rest.Config, grant func(...rbacv1.PolicyRule)) {
	h.T.Helper()
	name = "controller-of-" + h.Namespace
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "controller"}, Rules: rules}
	require.NoError(h.T, mustertest.Grant(h.T.Context(), h.Client, name, role))
	return name, h.server.User(name), func(rules ...rbacv1.PolicyRule) {
		change(h, role, func(r *rbacv1.Role) { r.Rules = rules })
	}
}

// running is a running Watcher, with its requests to the API server and its calls of Changed.
type running struct {
	*selection.Watcher
	h         *hub
	transport *transport
	stop      func()

	mu    sync.Mutex
	calls map[string]int
}

func (h *hub) start(with ...func(*selection.Options)) *running {
	h.T.Helper()
	r := &running{h: h, transport: &transport{}, calls: map[string]int{}}
	o := selection.Options{Config: h.server.Config(), Log: logr.Discard(), Changed: func(owner types.NamespacedName) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls[owner.Name]++
	}}
	for _, f := range with {
		f(&o)
	}
	o.Config.Wrap(r.transport.wrap)
	var err error
	r.Watcher, err = selection.New(o)
	require.NoError(h.T, err)
	r.stop = mustertest.Run(h.T, "the Watcher", r.Start)
	return r
}

// selectFor calls Select for an owner.
func (r *running) selectFor(owner string, selectors ...v1alpha1.ResourceSelector) selection.Selected {
	r.h.T.Helper()
	return r.Select(r.h.T.Context(), r.h.owner(owner), selectors)
}

func (r *running) changedCalls(owner string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[owner]
}

// awaitChanged waits until Changed was called more often than the given number for an owner, and returns the new
// number.
func (r *running) awaitChanged(owner string, before int) int {
	r.h.T.Helper()
	r.h.Holds(owner+" is notified", func() bool { return r.changedCalls(owner) > before })
	return r.changedCalls(owner)
}

func names(selected selection.Selected) []string {
	out := []string{}
	for _, o := range selected.Objects {
		out = append(out, o.Kind+" "+o.Name)
	}
	return out
}

func reasons(selected selection.Selected) []string {
	out := []string{}
	for _, p := range selected.Problems {
		out = append(out, p.Reason)
	}
	return out
}

func all(kind string) v1alpha1.ResourceSelector { return v1alpha1.ResourceSelector{Kind: kind} }

func named(kind, name string) v1alpha1.ResourceSelector {
	return v1alpha1.ResourceSelector{Kind: kind, Name: name}
}

func labeled(kind string, labels map[string]string) v1alpha1.ResourceSelector {
	return v1alpha1.ResourceSelector{Kind: kind, LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}
}

// transport is a transport to an API server. It records the requests and the open watches, and lets a test intercept
// requests.
type transport struct {
	mu        sync.Mutex
	requested []string
	open      map[*stream]bool
	intercept func(*http.Request) *http.Response // if it or its response is nil, the request is sent
}

func (w *transport) wrap(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		request, isWatch := describe(r)
		w.mu.Lock()
		w.requested = append(w.requested, request)
		intercept := w.intercept
		w.mu.Unlock()
		if intercept != nil {
			if response := intercept(r); response != nil {
				return response, nil
			}
		}
		response, err := next.RoundTrip(r)
		if err == nil && isWatch && response.StatusCode == http.StatusOK {
			s := &stream{response.Body, w}
			response.Body = s
			w.mu.Lock()
			if w.open == nil {
				w.open = map[*stream]bool{}
			}
			w.open[s] = true
			w.mu.Unlock()
		}
		return response, err
	})
}

// describe returns a request as a text such as "WATCH configmaps shop", without a namespace if it has none, or DISCOVER
// for discovery requests.
func describe(r *http.Request) (request string, isWatch bool) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	skip := 2
	if path[0] == "apis" {
		skip = 3
	}
	if len(path) <= skip {
		return "DISCOVER", false
	}
	verb, namespace := "LIST", ""
	if path = path[skip:]; path[0] == "namespaces" && len(path) > 2 {
		namespace, path = " "+path[1], path[2:]
	}
	if r.URL.Query().Get("watch") == "true" {
		verb = "WATCH"
	}
	return verb + " " + path[0] + namespace, verb == "WATCH"
}

// stream is an open watch.
type stream struct {
	io.ReadCloser
	transport *transport
}

func (s *stream) Close() error {
	s.transport.mu.Lock()
	delete(s.transport.open, s)
	s.transport.mu.Unlock()
	return s.ReadCloser.Close()
}

func (w *transport) watches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.open)
}

// requests returns the number of requests so far that begin with the prefix.
func (w *transport) requests(prefix string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(w.requested), func(s string) bool { return !strings.HasPrefix(s, prefix) }))
}

// cut ends the open watches.
func (w *transport) cut() {
	w.mu.Lock()
	streams := w.open
	w.open = nil
	w.mu.Unlock()
	for s := range streams {
		_ = s.ReadCloser.Close()
	}
}

func (w *transport) setIntercept(intercept func(*http.Request) *http.Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.intercept = intercept
}
