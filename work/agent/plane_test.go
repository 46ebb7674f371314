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

// fixture is a hub and a member. Both may be one plane.
type fixture struct {
	*testkit.Hub
	member   client.Client
	server   *apiserver.Server // nil: a plane
	options  agent.Options
	toHub    *wire
	toMember *wire // to the member

	name string // of the hub, and of the namespace on the member
}

var fixtures atomic.Int32

// newFixture returns a fixture whose hub and member are the shared plane.
func newFixture(t testing.TB) *fixture {
	t.Helper()
	config := plane.ForTest(t).Config()
	installed.Do(func() { install(t, newClient(t, config)) })
	return fixtureOf(t, config, config)
}

// newFixtureWithMember returns a fixture whose member is the shared plane and whose hub is an API server in memory, for
// tests of objects on a member.
func newFixtureWithMember(t testing.TB) *fixture {
	t.Helper()
	config := plane.ForTest(t).Config()
	installed.Do(func() { install(t, newClient(t, config)) })
	return fixtureOf(t, newMemory(t).Admin(), config)
}

// newMemory returns an API server in memory with the definitions of a hub and a member.
func newMemory(t testing.TB) *apiserver.Server {
	t.Helper()
	return testkit.Memory(t, scheme, crds.InstallOnHub, crds.InstallOnMember)
}

// newMemoryFixture returns a fixture on an API server in memory, for tests in virtual time.
func newMemoryFixture(t testing.TB) *fixture {
	t.Helper()
	server := newMemory(t)
	f := fixtureOf(t, server.Admin(), server.Admin())
	f.server = server
	return f
}

// fixtureOf returns a fixture on two API servers with the definitions.
func fixtureOf(t testing.TB, hub, member *rest.Config) *fixture {
	t.Helper()
	f := &fixture{Hub: testkit.NewHub(t, hub, scheme), member: newClient(t, member),
		name: fmt.Sprintf("w%d", fixtures.Add(1)), toHub: &wire{}, toMember: &wire{}}
	f.options = agent.Options{
		Hub: hub, Member: member, Namespace: f.Namespace, HubName: f.name, StatusInterval: 50 * time.Millisecond,
		StatusGracePeriod: -1, // no controller reports on the custom resources of most tests
	}
	f.create(f.member, "{apiVersion: v1, kind: Namespace, metadata: {name: NS}}")
	return f
}

// start runs an agent until the test ends, or the returned function is called.
func (f *fixture) start(change ...func(*agent.Options)) (stop func()) {
	f.T.Helper()
	options := f.options
	options.Hub, options.Member = rest.CopyConfig(options.Hub), rest.CopyConfig(options.Member)
	for _, c := range change {
		c(&options)
	}
	options.Hub.Wrap(f.toHub.wrap)
	options.Member.Wrap(f.toMember.wrap)
	a, err := agent.New(options)
	require.NoError(f.T, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				f.T.Errorf("agent: unexpected error: %v", err)
			}
		case <-time.After(deadline):
			f.T.Error("the agent does not stop")
		}
	})
	f.T.Cleanup(stop)
	return stop
}

func (f *fixture) manifest(text string) *unstructured.Unstructured {
	f.T.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "NS", f.name)))
	require.NoError(f.T, err)
	require.NoError(f.T, u.UnmarshalJSON(data))
	return u
}

func (f *fixture) create(c client.Client, text string) *unstructured.Unstructured {
	f.T.Helper()
	u := f.manifest(text)
	require.NoError(f.T, c.Create(context.Background(), u, client.FieldOwner("another-client")))
	return u
}

// configMap returns the manifest of a ConfigMap.
func configMap(name, data string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: NS}, data: " + data + "}"
}

// manifests returns the field manifests of a spec.
func manifests(texts ...string) string { return "manifests: [" + strings.Join(texts, ", ") + "]" }

// work creates a Work with a spec.
func (f *fixture) work(name, spec string) *v1alpha1.Work {
	f.T.Helper()
	work := f.spec(name, spec)
	f.Create(work)
	return work
}

func (f *fixture) spec(name, spec string) *v1alpha1.Work {
	f.T.Helper()
	work := &v1alpha1.Work{}
	require.NoError(f.T, yaml.UnmarshalStrict([]byte(strings.ReplaceAll(spec, "NS", f.name)), &work.Spec))
	work.Namespace, work.Name = f.options.Namespace, name
	return work
}

// change replaces the spec of a Work.
func (f *fixture) change(work *v1alpha1.Work, spec string) {
	f.T.Helper()
	next := f.spec(work.Name, spec)
	f.Eventually("Work "+work.Name+" is changed", func() error {
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		work.Spec = next.Spec
		return f.Client.Update(context.Background(), work)
	})
}

// delete starts the deletion of a Work.
func (f *fixture) delete(work *v1alpha1.Work) {
	f.T.Helper()
	require.NoError(f.T, f.Client.Delete(context.Background(), work.DeepCopy()))
}

func (f *fixture) gone(work *v1alpha1.Work) {
	f.T.Helper()
	f.Eventually("Work "+work.Name+" is deleted", func() error {
		now := &v1alpha1.Work{}
		switch err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), now); {
		case client.IgnoreNotFound(err) != nil:
			return err
		case err == nil && now.UID == work.UID:
			return fmt.Errorf("the Work still exists: %s", now.Status.Message)
		}
		return nil
	})
}

// read returns an object of the member; nil: it does not exist.
func (f *fixture) read(kind, name string) *unstructured.Unstructured {
	f.T.Helper()
	u := f.manifest("{" + kinds[kind] + "}")
	err := f.member.Get(context.Background(), client.ObjectKey{Namespace: f.name, Name: name}, u)
	require.NoError(f.T, client.IgnoreNotFound(err))
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
func (f *fixture) data(name, field string) string {
	f.T.Helper()
	u := f.read("ConfigMap", name)
	if u == nil {
		return ""
	}
	value, _, _ := unstructured.NestedString(u.Object, "data", field)
	return value
}

// rolledOut waits for a Deployment and sets its status as its controller would after a rollout.
func (f *fixture) rolledOut(name string) {
	f.T.Helper()
	f.Eventually("Deployment "+name+" is rolled out", func() error {
		deployment := &appsv1.Deployment{}
		key := client.ObjectKey{Namespace: f.name, Name: name}
		if err := f.member.Get(f.T.Context(), key, deployment); err != nil {
			return err
		}
		replicas := *deployment.Spec.Replicas
		deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: replicas,
			UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			}}
		return f.member.Status().Update(f.T.Context(), deployment)
	})
}

// patch edits an object of the member as a user would.
func (f *fixture) patch(object client.Object, text string) {
	f.T.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(f.T, err)
	copied, _ := object.DeepCopyObject().(client.Object)
	require.NoError(f.T, f.member.Patch(context.Background(), copied, client.RawPatch("application/merge-patch+json",
		data), client.FieldOwner("editor")))
}

// applied returns the inventory of a Work; nil: there is none.
func (f *fixture) applied(work *v1alpha1.Work) *v1alpha1.AppliedWork {
	f.T.Helper()
	applied := &v1alpha1.AppliedWork{}
	err := f.member.Get(context.Background(), client.ObjectKey{Name: agent.AppliedWorkName(f.options.HubName,
		work.Namespace, work.Name)}, applied)
	require.NoError(f.T, client.IgnoreNotFound(err))
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
