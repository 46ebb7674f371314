package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/crds"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

const (
	deadline = 90 * time.Second
	tick     = 50 * time.Millisecond
)

// plane has the definitions before its garbage collector starts, which discovers others twice a minute.
var plane = localplane.Shared{Options: localplane.Options{Name: "apply",
	Prepare: mustertest.Prepare(clientgoscheme.Scheme, crds.InstallOnMember)}}

func TestMain(m *testing.M) { os.Exit(localplane.Run(m, &plane)) }

// requests records the requests to the API server, as in "PATCH /api/v1/namespaces/shop".
type requests struct {
	mu      sync.Mutex
	methods []string
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if path := request.URL.Path; path != "/api" && path != "/apis" && strings.Count(path, "/") > 3 ||
			strings.HasPrefix(path, "/api/v1/") {
			r.mu.Lock()
			r.methods = append(r.methods, request.Method)
			r.mu.Unlock()
		}
		return next.RoundTrip(request)
	})
}

// take returns the number of reads and writes since the last call, without discovery.
func (r *requests) take() (reads, writes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, method := range r.methods {
		if method == http.MethodGet {
			reads++
		} else {
			writes++
		}
	}
	r.methods = nil
	return reads, writes
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func yamlToJSON(t testing.TB, text string) []byte {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	return data
}

func manifest(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, u.UnmarshalJSON(data))
	return u
}

func newClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	return c
}

// An apiServer is a control plane or an API server in memory.
type apiServer interface {
	Config() *rest.Config
	User(name string, groups ...string) *rest.Config
}

// memoryServer is an API server in memory, for tests in virtual time.
type memoryServer struct{ server *apiserver.Server }

// Config returns the config of an administrator.
func (m memoryServer) Config() *rest.Config { return m.server.Admin() }

// User returns the config of a user in these groups.
func (m memoryServer) User(name string, groups ...string) *rest.Config {
	return m.server.Config(name, groups...)
}

// world is an owner with a separate engine and namespace.
type world struct {
	t         testing.TB
	server    apiServer
	admin     client.Client
	namespace string
	counted   *requests
	engine    *apply.Engine
	owner     apply.Owner
	inventory []v1alpha1.AppliedResource // the last recorded inventory
}

var worlds atomic.Int32

// newWorld returns a world on the shared plane.
func newWorld(t testing.TB) *world {
	t.Helper()
	return worldOn(t, plane.ForTest(t))
}

// newWorldInMemory returns a world on an API server in memory, for tests in virtual time.
func newWorldInMemory(t testing.TB) *world {
	t.Helper()
	return worldOn(t, memoryServer{testkit.Memory(t, clientgoscheme.Scheme, crds.InstallOnMember)})
}

// worldOn returns a world on an API server with the definitions of a member.
func worldOn(t testing.TB, server apiServer) *world {
	t.Helper()
	w := &world{t: t, server: server, admin: newClient(t, server.Config()), namespace: fmt.Sprintf("w-%d", worlds.Add(1))}
	w.create("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.namespace + "}}")
	w.owner = w.newOwner(w.namespace)
	w.restart()
	return w
}

// in returns the same world for a subtest.
func (w *world) in(t testing.TB) *world {
	part := *w
	part.t, part.inventory = t, nil
	return &part
}

// other returns another owner in the same namespace.
func (w *world) other() *world {
	o := &world{t: w.t, server: w.server, admin: w.admin, namespace: w.namespace}
	o.owner = w.newOwner(w.namespace + "-other")
	o.restart()
	return o
}

func (w *world) newOwner(name string) apply.Owner {
	w.t.Helper()
	work := w.create("{apiVersion: work.muster.dev/v1alpha1, kind: AppliedWork, metadata: {name: " + name +
		"}, spec: {fieldOwner: x, work: {hub: h, namespace: east, name: web, uid: u}}}")
	return apply.Owner{
		Reference: metav1.OwnerReference{APIVersion: work.GetAPIVersion(), Kind: work.GetKind(), Name: name,
			UID: work.GetUID()},
		FieldOwner: "muster-" + name,
	}
}

// restart gives the owner an engine without cached state.
func (w *world) restart() {
	w.engine = apply.New(newClient(w.t, w.counting()), apply.Options{})
}

// counting returns a client configuration that counts requests.
func (w *world) counting() *rest.Config {
	config := w.server.Config()
	w.counted = &requests{}
	config.Wrap(w.counted.wrap)
	return config
}

// requireNoMoreWrites requires that the engine stops writing while other clients write to the objects, and does not
// write after a restart. On a busy API server, a definition may need more than one apply until it is established.
func (w *world) requireNoMoreWrites(objects []apply.Object, others ...func()) {
	w.t.Helper()
	pass := func() (writes int, unfinished string) {
		for _, other := range others {
			other()
		}
		w.counted.take()
		for _, change := range w.apply(objects...) {
			if !change.Done() {
				unfinished = fmt.Sprintf("%s: %s (%v)", change.Object, change.Message, change.Err)
			}
			require.NotEqual(w.t, v1alpha1.ReasonContested, change.Reason, "%s: %s", change.Object, change.Message)
		}
		_, writes = w.counted.take()
		return writes, unfinished
	}
	for end := time.Now().Add(deadline); ; {
		writes, unfinished := pass()
		if writes == 0 && unfinished == "" {
			break
		}
		require.Less(w.t, time.Now(), end, "the writes do not end; not done: %q", unfinished)
		<-time.After(200 * time.Millisecond)
	}
	for range 3 {
		<-time.After(200 * time.Millisecond)
		writes, unfinished := pass()
		require.Empty(w.t, unfinished)
		require.Zero(w.t, writes, "writes after the engine has stopped writing")
	}
	w.restart()
	for range 2 {
		for _, change := range w.apply(objects...) {
			require.NotEqual(w.t, apply.Configured, change.Action, "%s after a restart", change.Object)
		}
		_, writes := w.counted.take()
		require.Zero(w.t, writes, "writes after a restart")
	}
}

func (w *world) create(text string) *unstructured.Unstructured {
	w.t.Helper()
	u := manifest(w.t, strings.ReplaceAll(text, "NS", w.namespace))
	require.NoError(w.t, w.admin.Create(w.t.Context(), u, client.FieldOwner("somebody")))
	return u
}

func (w *world) get(like *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(like.GroupVersionKind())
	require.NoError(w.t, w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(like), live))
	return live
}

// patch edits an object as a user would.
func (w *world) patch(object *unstructured.Unstructured, text string) {
	w.t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(w.t, err)
	require.NoError(w.t, w.admin.Patch(w.t.Context(), object.DeepCopy(), client.RawPatch("application/merge-patch+json",
		data), client.FieldOwner("editor")))
}

func (w *world) object(text string, options ...func(*apply.Object)) apply.Object {
	w.t.Helper()
	o := apply.Object{Manifest: manifest(w.t, strings.ReplaceAll(text, "NS", w.namespace))}
	for _, option := range options {
		option(&o)
	}
	return o
}

func (w *world) configMap(name, data string, options ...func(*apply.Object)) apply.Object {
	w.t.Helper()
	return w.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: NS}, data: "+data+"}",
		options...)
}

func (w *world) set(objects ...apply.Object) apply.Set {
	return apply.Set{Owner: w.owner, Objects: objects, Inventory: w.inventory, Record: func(_ context.Context,
		inventory []v1alpha1.AppliedResource) error {
		w.inventory = slices.Clone(inventory)
		return nil
	}}
}

// apply applies objects and records the inventory, as a controller does.
func (w *world) apply(objects ...apply.Object) []apply.Change {
	w.t.Helper()
	changes, err := w.engine.Apply(w.t.Context(), w.set(objects...), nil)
	require.NoError(w.t, err)
	w.inventory = changes.Inventory
	return changes.Changes
}

func (w *world) one(object apply.Object) apply.Change {
	w.t.Helper()
	return w.apply(object)[0]
}

// prune prunes the recorded objects until all are deleted or released.
func (w *world) prune(policy v1alpha1.DeletePolicy) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		pruned, err := w.engine.Prune(w.t.Context(), w.owner, w.inventory, policy)
		require.NoError(w.t, err)
		w.inventory = pruned.Inventory
		return pruned.Done()
	}, deadline, 50*time.Millisecond)
	require.Empty(w.t, w.inventory)
}

func (w *world) isGone(object *unstructured.Unstructured) bool {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(object), live)
	return client.IgnoreNotFound(err) == nil && err != nil
}

// state returns an object without the fields that only the API server writes.
func state(t testing.TB, object *unstructured.Unstructured) string {
	t.Helper()
	object = object.DeepCopy()
	for _, field := range []string{"resourceVersion", "managedFields"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	data, err := json.Marshal(object.Object)
	require.NoError(t, err)
	return string(data)
}

func takeover(t v1alpha1.Takeover) func(*apply.Object) {
	return func(o *apply.Object) { o.Takeover = t }
}
func drift(d v1alpha1.DriftPolicy) func(*apply.Object) { return func(o *apply.Object) { o.Drift = d } }
func keepConflicts(o *apply.Object)                    { o.KeepConflicts = true }
func wave(n int32) func(*apply.Object)                 { return func(o *apply.Object) { o.Wave = &n } }

func ignored(t testing.TB, paths ...string) func(*apply.Object) {
	t.Helper()
	return func(o *apply.Object) {
		for _, text := range paths {
			path, err := v1alpha1.ParseFieldPath(text)
			require.NoError(t, err)
			o.IgnoredFields = append(o.IgnoredFields, path)
		}
	}
}

func lower(s string) string { return strings.ToLower(s) }

// sameNamed returns another object of the same name.
func sameNamed(o apply.Object) *unstructured.Unstructured {
	u := o.Manifest.DeepCopy()
	u.Object["data"] = map[string]any{"k": "found"}
	return u
}

func objectMeta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func replace(text, old, with string) string { return strings.ReplaceAll(text, old, with) }

func long(n int) string { return strings.Repeat("x", n) }

func mustJSON(t testing.TB, o apply.Object) []byte {
	t.Helper()
	data, err := json.Marshal(o.Manifest.Object)
	require.NoError(t, err)
	return data
}

// noContext is a test whose context does not end before its clean-up.
type noContext struct{ testing.TB }

func (noContext) Context() context.Context { return context.Background() }

// objects returns the objects of a YAML list.
func (w *world) objects(text string) []apply.Object {
	w.t.Helper()
	var list []map[string]any
	data, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "NS", w.namespace)))
	require.NoError(w.t, err)
	require.NoError(w.t, utiljson.Unmarshal(data, &list))
	objects := make([]apply.Object, len(list))
	for i := range list {
		objects[i].Manifest = &unstructured.Unstructured{Object: list[i]}
	}
	return objects
}
