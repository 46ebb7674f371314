package agent_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/crds"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// deadline is the timeout of conditions; it is long, because a slow machine is not a failure.
const deadline = 3 * time.Minute

var plane = localplane.Shared{Options: localplane.Options{Name: "work", Nodes: 1}}

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	_ = flag.Set("test.parallel", "100") // tests on the plane mostly wait; testkit.Virtual limits the others
	os.Exit(localplane.Run(m, &plane))
}

// scheme has the kinds of Kubernetes and of Works.
var scheme = mustertest.Scheme(v1alpha1.AddToScheme)

func newClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	return c
}

// install installs the definitions of a hub and a member.
func install(t testing.TB, c client.Client) {
	t.Helper()
	require.NoError(t, crds.InstallOnHub(context.Background(), c))
	require.NoError(t, crds.InstallOnMember(context.Background(), c))
}

var installed sync.Once

// world is a hub and a member with separate namespaces. Both may be one plane.
type world struct {
	t        testing.TB
	hub      client.Client
	member   client.Client
	server   *apiserver.Server // nil: a plane
	options  agent.Options
	toHub    *wire
	toMember *wire // to the member

	name string // of the hub, and of the namespace on the member; the one on the hub is member-NAME
}

var worlds atomic.Int32

// newWorld returns a world whose hub and member are the shared plane.
func newWorld(t testing.TB) *world {
	t.Helper()
	config := plane.ForTest(t).Config()
	c := newClient(t, config)
	installed.Do(func() { install(t, c) })
	return worldOf(t, config, config)
}

// newWorldWithMember returns a world whose member is the shared plane and whose hub is an API server in memory, for
// tests of objects on a member.
func newWorldWithMember(t testing.TB) *world {
	t.Helper()
	config := plane.ForTest(t).Config()
	installed.Do(func() { install(t, newClient(t, config)) })
	return worldOf(t, newMemory(t).Admin(), config)
}

// newMemory returns an API server in memory with the definitions of a hub and a member.
func newMemory(t testing.TB) *apiserver.Server {
	t.Helper()
	return testkit.Memory(t, scheme, crds.InstallOnHub, crds.InstallOnMember)
}

// newWorldInMemory returns a world on an API server in memory, for tests in virtual time.
func newWorldInMemory(t testing.TB) *world {
	t.Helper()
	server := newMemory(t)
	w := worldOf(t, server.Admin(), server.Admin())
	w.server = server
	return w
}

// worldOf returns a world on two planes with the definitions.
func worldOf(t testing.TB, hub, member *rest.Config) *world {
	t.Helper()
	w := &world{t: t, name: fmt.Sprintf("w%d", worlds.Add(1)), toHub: &wire{}, toMember: &wire{}}
	w.hub, w.member = newClient(t, hub), newClient(t, member)
	w.options = agent.Options{
		Hub: hub, Member: member, Namespace: "member-" + w.name, HubName: w.name, StatusInterval: 50 * time.Millisecond,
		StatusGracePeriod: -1, // no controller reports on the custom resources of most tests
	}
	w.create(w.hub, "{apiVersion: v1, kind: Namespace, metadata: {name: "+w.options.Namespace+"}}")
	w.create(w.member, "{apiVersion: v1, kind: Namespace, metadata: {name: NS}}")
	return w
}

// start runs an agent until the test ends, or the returned function is called.
func (w *world) start(change ...func(*agent.Options)) (stop func()) {
	w.t.Helper()
	options := w.options
	options.Hub, options.Member = rest.CopyConfig(options.Hub), rest.CopyConfig(options.Member)
	for _, c := range change {
		c(&options)
	}
	options.Hub.Wrap(w.toHub.wrap)
	options.Member.Wrap(w.toMember.wrap)
	a, err := agent.New(options)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				w.t.Errorf("agent: unexpected error: %v", err)
			}
		case <-time.After(deadline):
			w.t.Error("the agent does not stop")
		}
	})
	w.t.Cleanup(stop)
	return stop
}

func (w *world) manifest(text string) *unstructured.Unstructured {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "NS", w.name)))
	require.NoError(w.t, err)
	require.NoError(w.t, u.UnmarshalJSON(data))
	return u
}

func (w *world) create(c client.Client, text string) *unstructured.Unstructured {
	w.t.Helper()
	u := w.manifest(text)
	require.NoError(w.t, c.Create(context.Background(), u, client.FieldOwner("somebody")))
	return u
}

// configMap returns the manifest of a ConfigMap.
func configMap(name, data string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: NS}, data: " + data + "}"
}

// manifests returns the field manifests of a spec.
func manifests(texts ...string) string { return "manifests: [" + strings.Join(texts, ", ") + "]" }

// work creates a Work with a spec.
func (w *world) work(name, spec string) *v1alpha1.Work {
	w.t.Helper()
	work := w.spec(name, spec)
	require.NoError(w.t, w.hub.Create(context.Background(), work))
	return work
}

func (w *world) spec(name, spec string) *v1alpha1.Work {
	w.t.Helper()
	work := &v1alpha1.Work{}
	require.NoError(w.t, yaml.UnmarshalStrict([]byte(strings.ReplaceAll(spec, "NS", w.name)), &work.Spec))
	work.Namespace, work.Name = w.options.Namespace, name
	return work
}

// change replaces the spec of a Work.
func (w *world) change(work *v1alpha1.Work, spec string) {
	w.t.Helper()
	next := w.spec(work.Name, spec)
	w.eventually(func() error {
		if err := w.hub.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		work.Spec = next.Spec
		return w.hub.Update(context.Background(), work)
	})
}

// delete starts the deletion of a Work.
func (w *world) delete(work *v1alpha1.Work) {
	w.t.Helper()
	require.NoError(w.t, w.hub.Delete(context.Background(), work.DeepCopy()))
}

func (w *world) gone(work *v1alpha1.Work) {
	w.t.Helper()
	w.eventually(func() error {
		now := &v1alpha1.Work{}
		switch err := w.hub.Get(context.Background(), client.ObjectKeyFromObject(work), now); {
		case client.IgnoreNotFound(err) != nil:
			return err
		case err == nil && now.UID == work.UID:
			return fmt.Errorf("the Work still exists: %s", now.Status.Message)
		}
		return nil
	})
}

// read returns an object of the member; nil: it does not exist.
func (w *world) read(kind, name string) *unstructured.Unstructured {
	w.t.Helper()
	u := w.manifest("{" + kinds[kind] + "}")
	err := w.member.Get(context.Background(), client.ObjectKey{Namespace: w.name, Name: name}, u)
	require.NoError(w.t, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return u
}

var kinds = map[string]string{
	"ConfigMap":  "apiVersion: v1, kind: ConfigMap",
	"Secret":     "apiVersion: v1, kind: Secret",
	"Deployment": "apiVersion: apps/v1, kind: Deployment",
	"Job":        "apiVersion: batch/v1, kind: Job",
}

// data returns a field of a ConfigMap's data; "": it does not exist.
func (w *world) data(name, field string) string {
	w.t.Helper()
	u := w.read("ConfigMap", name)
	if u == nil {
		return ""
	}
	value, _, _ := unstructured.NestedString(u.Object, "data", field)
	return value
}

// rolledOut waits for a Deployment and sets its status as its controller would after a rollout.
func (w *world) rolledOut(name string) {
	w.t.Helper()
	w.eventually(func() error {
		deployment := &appsv1.Deployment{}
		key := client.ObjectKey{Namespace: w.name, Name: name}
		if err := w.member.Get(w.t.Context(), key, deployment); err != nil {
			return err
		}
		replicas := *deployment.Spec.Replicas
		deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: replicas,
			UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			}}
		return w.member.Status().Update(w.t.Context(), deployment)
	})
}

// patch edits an object of the member as a user would.
func (w *world) patch(object client.Object, text string) {
	w.t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(w.t, err)
	copied, _ := object.DeepCopyObject().(client.Object)
	require.NoError(w.t, w.member.Patch(context.Background(), copied, client.RawPatch("application/merge-patch+json",
		data), client.FieldOwner("editor")))
}

// applied returns the inventory of a Work; nil: there is none.
func (w *world) applied(work *v1alpha1.Work) *v1alpha1.AppliedWork {
	w.t.Helper()
	applied := &v1alpha1.AppliedWork{}
	err := w.member.Get(context.Background(), client.ObjectKey{Name: agent.AppliedWorkName(w.options.HubName,
		work.Namespace, work.Name)}, applied)
	require.NoError(w.t, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return applied
}

func comma(text string) string {
	if text == "" {
		return ""
	}
	return ", " + text
}

func equal[T comparable](want, got T) error {
	if want != got {
		return fmt.Errorf("want %v, got %v", want, got)
	}
	return nil
}

func newProxy(t testing.TB, config *rest.Config) *localplane.Proxy {
	t.Helper()
	proxy, err := localplane.NewProxy(config.Host)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	return proxy
}

func resource(group, version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

func list() metav1.ListOptions { return metav1.ListOptions{} }

func replace(text, old, with string) string { return strings.ReplaceAll(text, old, with) }
