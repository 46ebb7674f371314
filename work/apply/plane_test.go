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

// fixture is an owner with a separate engine on an API server with the definitions of a member.
type fixture struct {
	*testkit.Hub
	counted   *requests
	engine    *apply.Engine
	owner     apply.Owner
	inventory []v1alpha1.AppliedResource // the last recorded inventory
}

// newFixture returns a fixture on the shared plane.
func newFixture(t testing.TB) *fixture {
	t.Helper()
	return fixtureOn(testkit.NewHub(t, plane.ForTest(t).Config(), clientgoscheme.Scheme))
}

// newMemoryFixture returns a fixture on an API server in memory, for tests in virtual time.
func newMemoryFixture(t testing.TB) *fixture {
	t.Helper()
	return fixtureOn(testkit.NewMemoryHub(t, clientgoscheme.Scheme, crds.InstallOnMember))
}

func fixtureOn(hub *testkit.Hub) *fixture {
	hub.T.Helper()
	f := &fixture{Hub: hub}
	f.owner = f.newOwner(f.Namespace)
	f.restart()
	return f
}

// in returns the same fixture for a subtest.
func (f *fixture) in(t testing.TB) *fixture {
	hub, part := *f.Hub, *f
	hub.T = t
	part.Hub, part.inventory = &hub, nil
	return &part
}

// other returns another owner in the same namespace.
func (f *fixture) other() *fixture {
	o := &fixture{Hub: f.Hub}
	o.owner = f.newOwner(f.Namespace + "-other")
	o.restart()
	return o
}

func (f *fixture) newOwner(name string) apply.Owner {
	f.T.Helper()
	work := f.create("{apiVersion: work.muster.dev/v1alpha1, kind: AppliedWork, metadata: {name: " + name +
		"}, spec: {fieldOwner: x, work: {hub: h, namespace: east, name: web, uid: u}}}")
	return apply.Owner{
		Reference: metav1.OwnerReference{APIVersion: work.GetAPIVersion(), Kind: work.GetKind(), Name: name,
			UID: work.GetUID()},
		FieldOwner: "muster-" + name,
	}
}

// restart gives the owner an engine without cached state.
func (f *fixture) restart() {
	f.engine = apply.New(newClient(f.T, f.counting()), apply.Options{})
}

// counting returns a client configuration that counts requests.
func (f *fixture) counting() *rest.Config {
	config := rest.CopyConfig(f.Config)
	f.counted = &requests{}
	config.Wrap(f.counted.wrap)
	return config
}

// requireNoMoreWrites requires that the engine stops writing while other clients write to the objects, and does not
// write after a restart. On a busy API server, a definition may need more than one apply until it is established.
func (f *fixture) requireNoMoreWrites(objects []apply.Object, others ...func()) {
	f.T.Helper()
	pass := func() (writes int, unfinished string) {
		for _, other := range others {
			other()
		}
		f.counted.take()
		for _, change := range f.apply(objects...) {
			if !change.Done() {
				unfinished = fmt.Sprintf("%s: %s (%v)", change.Object, change.Message, change.Err)
			}
			require.NotEqual(f.T, v1alpha1.ReasonContested, change.Reason, "%s: %s", change.Object, change.Message)
		}
		_, writes = f.counted.take()
		return writes, unfinished
	}
	for end := time.Now().Add(deadline); ; {
		writes, unfinished := pass()
		if writes == 0 && unfinished == "" {
			break
		}
		require.Less(f.T, time.Now(), end, "the writes do not end; not done: %q", unfinished)
		<-time.After(200 * time.Millisecond)
	}
	for range 3 {
		<-time.After(200 * time.Millisecond)
		writes, unfinished := pass()
		require.Empty(f.T, unfinished)
		require.Zero(f.T, writes, "writes after the engine has stopped writing")
	}
	f.restart()
	for range 2 {
		for _, change := range f.apply(objects...) {
			require.NotEqual(f.T, apply.Configured, change.Action, "%s after a restart", change.Object)
		}
		_, writes := f.counted.take()
		require.Zero(f.T, writes, "writes after a restart")
	}
}

func (f *fixture) create(text string) *unstructured.Unstructured {
	f.T.Helper()
	u := manifest(f.T, strings.ReplaceAll(text, "NS", f.Namespace))
	require.NoError(f.T, f.Client.Create(f.T.Context(), u, client.FieldOwner("another-client")))
	return u
}

func (f *fixture) get(like *unstructured.Unstructured) *unstructured.Unstructured {
	f.T.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(like.GroupVersionKind())
	require.NoError(f.T, f.Client.Get(f.T.Context(), client.ObjectKeyFromObject(like), live))
	return live
}

// patch edits an object as a user would.
func (f *fixture) patch(object *unstructured.Unstructured, text string) {
	f.T.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(f.T, err)
	require.NoError(f.T, f.Client.Patch(f.T.Context(), object.DeepCopy(), client.RawPatch("application/merge-patch+json",
		data), client.FieldOwner("editor")))
}

func (f *fixture) object(text string, options ...func(*apply.Object)) apply.Object {
	f.T.Helper()
	o := apply.Object{Manifest: manifest(f.T, strings.ReplaceAll(text, "NS", f.Namespace))}
	for _, option := range options {
		option(&o)
	}
	return o
}

func (f *fixture) configMap(name, data string, options ...func(*apply.Object)) apply.Object {
	f.T.Helper()
	return f.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: NS}, data: "+data+"}",
		options...)
}

func (f *fixture) set(objects ...apply.Object) apply.Set {
	return apply.Set{Owner: f.owner, Objects: objects, Inventory: f.inventory, Record: func(_ context.Context,
		inventory []v1alpha1.AppliedResource) error {
		f.inventory = slices.Clone(inventory)
		return nil
	}}
}

// apply applies objects and records the inventory, as a controller does.
func (f *fixture) apply(objects ...apply.Object) []apply.Change {
	f.T.Helper()
	changes, err := f.engine.Apply(f.T.Context(), f.set(objects...), nil)
	require.NoError(f.T, err)
	f.inventory = changes.Inventory
	return changes.Changes
}

func (f *fixture) one(object apply.Object) apply.Change {
	f.T.Helper()
	return f.apply(object)[0]
}

// prune prunes the recorded objects until all are deleted or released.
func (f *fixture) prune(policy v1alpha1.DeletePolicy) {
	f.T.Helper()
	require.Eventually(f.T, func() bool {
		pruned, err := f.engine.Prune(f.T.Context(), f.owner, f.inventory, policy)
		require.NoError(f.T, err)
		f.inventory = pruned.Inventory
		return pruned.Done()
	}, deadline, 50*time.Millisecond)
	require.Empty(f.T, f.inventory)
}

func (f *fixture) isGone(object *unstructured.Unstructured) bool {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := f.Client.Get(f.T.Context(), client.ObjectKeyFromObject(object), live)
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
func (f *fixture) objects(text string) []apply.Object {
	f.T.Helper()
	var list []map[string]any
	data, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "NS", f.Namespace)))
	require.NoError(f.T, err)
	require.NoError(f.T, utiljson.Unmarshal(data, &list))
	objects := make([]apply.Object, len(list))
	for i := range list {
		objects[i].Manifest = &unstructured.Unstructured{Object: list[i]}
	}
	return objects
}
