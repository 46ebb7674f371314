package benchflux_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/work/crds"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

const deadline = time.Minute

// stage is the control plane to which all candidates apply.
type stage struct {
	config     *rest.Config
	admin      client.Client
	watch      watch
	namespaces int
}

func newStage(b *testing.B) *stage {
	b.Helper()
	log.SetLogger(logr.Discard())
	s := &stage{config: localplane.ForTest(b, localplane.Options{Name: "benchflux"}).Config()}
	s.admin, _ = s.newClient(b)
	require.NoError(b, crds.InstallOnMember(b.Context(), s.admin))
	s.watch = newWatch(b, s.config)
	s.measure(b, s.newRun(b, "floor")) // An API server that has just started is slow.
	return s
}

// requests counts requests to the API server.
type requests struct{ n atomic.Int64 }

// reset returns the number of requests since the last reset.
func (r *requests) reset() int64 { return r.n.Swap(0) }

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		r.n.Add(1)
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// newClient returns a client and the count of its requests.
func (s *stage) newClient(b *testing.B) (client.Client, *requests) {
	b.Helper()
	scheme := runtime.NewScheme()
	require.NoError(b, clientgoscheme.AddToScheme(scheme))
	require.NoError(b, v1alpha1.AddToScheme(scheme))
	config := rest.CopyConfig(s.config)
	counted := &requests{}
	config.Wrap(counted.wrap)
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(b, err)
	return c, counted
}

// newRun creates a candidate with its own namespace and client.
func (s *stage) newRun(b *testing.B, name string) *run {
	b.Helper()
	s.namespaces++
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, s.namespaces)}}
	require.NoError(b, s.admin.Create(b.Context(), namespace))
	// The kube-controller-manager creates this ConfigMap in each namespace, and must not create it in the measured time.
	require.Eventually(b, func() bool {
		return s.admin.Get(b.Context(), client.ObjectKey{Namespace: namespace.Name, Name: "kube-root-ca.crt"},
			&corev1.ConfigMap{}) == nil
	}, deadline, 10*time.Millisecond)
	t := &run{namespace: namespace.Name}
	t.candidate, t.requests = s.newCandidate(b, name, namespace.Name)
	return t
}

// applyAll runs each candidate once, and waits until the watch has observed the objects.
func (s *stage) applyAll(b *testing.B, names []string) map[string]*run {
	b.Helper()
	observed := map[string]*run{}
	for _, name := range names {
		t := s.newRun(b, name)
		s.measure(b, t)
		s.watch.waitFor(b, s.list(b, t.namespace))
		observed[name] = t
	}
	return observed
}

// edit changes one ConfigMap in a hundred, other ones in each round, and waits until the watch has observed them.
func (s *stage) edit(b *testing.B, t *run, round int) {
	b.Helper()
	t.edited = nil
	var edited []corev1.ConfigMap
	for i := round % (count / drifted); i < count; i += count / drifted {
		object := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: nameOf(i)}}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"url":"edited"}}`))
		require.NoError(b, s.admin.Patch(b.Context(), &object, patch, client.FieldOwner("editor")))
		t.edited, edited = append(t.edited, i), append(edited, object)
	}
	s.watch.waitFor(b, edited)
}

// check fails unless all ConfigMaps have the desired value.
func (s *stage) check(b *testing.B, namespace string) {
	b.Helper()
	found := 0
	for _, object := range s.list(b, namespace) {
		var i int
		if _, err := fmt.Sscanf(object.Name, "config-%d", &i); err == nil && object.Data["url"] == valueOf(i) {
			found++
		}
	}
	require.Equal(b, count, found, "ConfigMaps with the desired value in namespace %s", namespace)
}

func (s *stage) list(b *testing.B, namespace string) []corev1.ConfigMap {
	b.Helper()
	list := &corev1.ConfigMapList{}
	require.NoError(b, s.admin.List(b.Context(), list, client.InNamespace(namespace)))
	return list.Items
}

// manifests returns new desired objects of a namespace. Candidates do not share objects, because they change them.
func manifests(namespace string) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, count)
	for i := range objects {
		objects[i] = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": nameOf(i), "namespace": namespace, "labels": map[string]any{"app": "shop"}},
			"data": map[string]any{
				"url": valueOf(i), "level": "info",
				"settings.yaml": "retries: 3\ntimeout: 30s\ncache:\n  size: 128Mi\n  ttl: 10m\n",
			},
		}}
	}
	return objects
}
