package lookup_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/crds"
	"github.com/muster-sdk/muster/addon/internal/lookup"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

var plane = localplane.Shared{Options: localplane.Options{
	Name:    "lookup",
	Prepare: mustertest.Prepare(scheme, crds.Install),
}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

var scheme = mustertest.Scheme(apiextensionsv1.AddToScheme, v1alpha1.AddToScheme)

// hub is a namespace of an API server.
type hub struct {
	*testkit.Hub
	config *rest.Config // of a Finder
	cache  cache.Options
	clock  *testclock.FakeClock
}

// newHub returns a namespace of a server in memory.
func newHub(t testing.TB) *hub {
	t.Helper()
	return hubOf(testkit.NewMemoryHub(t, scheme, crds.Install))
}

// newHubOnPlane returns a namespace of the shared plane.
func newHubOnPlane(t testing.TB) *hub {
	t.Helper()
	return hubOf(testkit.NewHub(t, plane.ForTest(t).Config(), scheme))
}

func hubOf(h *testkit.Hub) *hub {
	return &hub{Hub: h, config: h.Config, cache: cache.Options{Scheme: scheme}, clock: testclock.NewFakeClock(time.Now())}
}

// change changes an existing object.
func change[T client.Object](h *hub, object T, f func(T)) {
	h.T.Helper()
	mustertest.Change(h.T, h.Client, object, f)
}

func (h *hub) configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name},
		Data: map[string]string{"value": value}}
}

// ref returns a reference to an object of a resource in the hub's namespace, as in configmaps or widgets.example.com.
func (h *hub) ref(resource, name string) v1alpha1.ConfigReference {
	r := schema.ParseGroupResource(resource)
	return v1alpha1.ConfigReference{Group: r.Group, Resource: r.Resource,
		ObjectName: v1alpha1.ObjectName{Namespace: h.Namespace, Name: name}}
}

// kind defines a kind Widget in a separate group.
func (h *hub) kind() (resource string, widget func(name string) *unstructured.Unstructured) {
	h.T.Helper()
	group := h.Namespace + ".example.com"
	anything := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget",
				ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: anything},
			}},
		},
	}
	h.Create(definition)
	h.T.Cleanup(func() { _ = h.Client.Delete(context.Background(), definition) })
	h.Holds("the kind is established", func() bool {
		require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(definition), definition))
		for _, c := range definition.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	})
	h.Holds("discovery has the kind", func() bool {
		_, err := h.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: "Widget"}, "v1")
		return err == nil
	})
	return "widgets." + group, func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
		u.SetAPIVersion(group + "/v1")
		u.SetKind("Widget")
		u.SetNamespace(h.Namespace)
		u.SetName(name)
		return u
	}
}

// user creates a user with the permissions of the rules in the hub's namespace, and those of all authenticated users.
func (h *hub) user() (name string, grant func(everywhere bool, verbs ...string)) {
	name = "controller-of-" + h.Namespace
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}
	h.config = plane.ForTest(h.T).User(name)
	h.config.QPS, h.config.Burst = 1000, 1000
	return name, func(everywhere bool, verbs ...string) {
		h.T.Helper()
		at, rules := metav1.ObjectMeta{Name: name},
			[]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: verbs}}
		if everywhere {
			h.Create(&rbacv1.ClusterRole{ObjectMeta: at, Rules: rules},
				&rbacv1.ClusterRoleBinding{ObjectMeta: at, Subjects: subjects,
					RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}})
			return
		}
		at.Namespace = h.Namespace
		h.Create(&rbacv1.Role{ObjectMeta: at, Rules: rules},
			&rbacv1.RoleBinding{ObjectMeta: at, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}})
	}
}

// running is a running Finder with its requests to the API server and its calls of Changed.
type running struct {
	*lookup.Finder
	h    *hub
	stop func()

	mu       sync.Mutex
	requests map[string]int
	calls    map[string]int
	fail     func(*http.Request) error
}

// over counts requests: "GET <name>" for one object, "LIST <resource>" and "WATCH <resource>" for many.
func (r *running) countRequests(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(request *http.Request) (*http.Response, error) {
		parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
		verb := "GET "
		switch {
		case request.URL.Query().Get("watch") == "true":
			verb = "WATCH "
		case request.URL.Query().Has("limit") || request.URL.Query().Has("resourceVersion"):
			verb = "LIST "
		}
		r.mu.Lock()
		r.requests[verb+parts[len(parts)-1]]++
		fail := r.fail
		r.mu.Unlock()
		if fail != nil {
			if err := fail(request); err != nil {
				return nil, err
			}
		}
		return next.RoundTrip(request)
	})
}

func (r *running) requestsOf(request string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests[request]
}

func (r *running) failing(f func(*http.Request) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = f
}

func (r *running) called(user string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[user]
}

// waitForCall waits until the number of calls of Changed for a user exceeds a number, and returns it.
func (r *running) waitForCall(user string, than int) int {
	r.h.T.Helper()
	r.h.Holds("Changed is called for "+user, func() bool { return r.called(user) > than })
	return r.called(user)
}

func (h *hub) start() *running {
	h.T.Helper()
	r := &running{h: h, requests: map[string]int{}, calls: map[string]int{}}
	config := rest.CopyConfig(h.config)
	config.Wrap(r.countRequests)
	transport, err := rest.HTTPClientFor(config)
	require.NoError(h.T, err)
	var mapper meta.RESTMapper
	mapper, err = apiutil.NewDynamicRESTMapper(config, transport)
	require.NoError(h.T, err)
	options := h.cache
	options.HTTPClient, options.Mapper = transport, mapper
	objects, err := cache.New(config, options)
	require.NoError(h.T, err)
	live, err := client.New(config, client.Options{HTTPClient: transport, Mapper: mapper, Scheme: options.Scheme})
	require.NoError(h.T, err)
	r.Finder, err = lookup.New(lookup.Options{
		Cache: objects, Live: live, Mapper: mapper, Log: logr.Discard(), Clock: h.clock,
		Changed: func(user types.NamespacedName) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.calls[user.Name]++
		},
	})
	require.NoError(h.T, err)
	r.stop = mustertest.Run(h.T, "the Finder", objects.Start, r.Start)
	require.True(h.T, objects.WaitForCacheSync(h.T.Context()))
	return r
}

// found is the result of a Find for one configuration, as text.
type found struct {
	value   string // the value of a ConfigMap, the size of a Widget, "missing", or "unknown"
	problem lookup.Problem
}

func (r *running) find(user string, references ...v1alpha1.ConfigReference) []found {
	r.h.T.Helper()
	objects, problems, err := r.Find(r.h.T.Context(), types.NamespacedName{Namespace: r.h.Namespace, Name: user},
		references)
	require.NoError(r.h.T, err)
	out := make([]found, len(references))
	for i, reference := range references {
		out[i].value = "missing"
		if object := objects[reference]; object != nil {
			out[i].value = textOf(object.Unstructured)
			require.Equal(r.h.T, config.Hash(object.Unstructured), object.Hash)
		}
		for _, p := range problems {
			if p.ConfigReference == reference {
				require.Nil(r.h.T, objects[reference])
				out[i] = found{"unknown", p}
			}
		}
	}
	return out
}

func (r *running) value(user string, reference v1alpha1.ConfigReference) string {
	r.h.T.Helper()
	return r.find(user, reference)[0].value
}

func textOf(object *unstructured.Unstructured) string {
	for _, path := range [][]string{{"data", "value"}, {"spec", "size"}, {"spec", "version"},
		{"spec", "installNamespace"}} {
		if field, exists, _ := unstructured.NestedFieldNoCopy(object.Object, path...); exists {
			return object.GetKind() + " " + strings.Trim(strings.ReplaceAll(fmt.Sprint(field), "\n", " "), " ")
		}
	}
	return object.GetKind()
}
