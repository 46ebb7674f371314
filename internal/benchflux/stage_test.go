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

// stage is the control plane that all ways act on.
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
	s.take(b, s.enter(b, "floor")) // an API server that has just started is slow
	return s
}

// requests counts what goes to the API server.
type requests struct{ n atomic.Int64 }

// take returns how many there were since the last take.
func (r *requests) take() int64 { return r.n.Swap(0) }

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

// enter gives a way a namespace and a client of its own.
func (s *stage) enter(b *testing.B, name string) *turn {
	b.Helper()
	s.namespaces++
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, s.namespaces)}}
	require.NoError(b, s.admin.Create(b.Context(), namespace))
	// The controller-manager puts one there, and is not to do it while the clock runs.
	require.Eventually(b, func() bool {
		return s.admin.Get(b.Context(), client.ObjectKey{Namespace: namespace.Name, Name: "kube-root-ca.crt"},
			&corev1.ConfigMap{}) == nil
	}, deadline, 10*time.Millisecond)
	t := &turn{namespace: namespace.Name}
	t.way, t.requests = s.newWay(b, name, namespace.Name)
	return t
}

// settle has each way apply everything once, and waits until the watch has noticed.
func (s *stage) settle(b *testing.B, names []string) map[string]*turn {
	b.Helper()
	observed := map[string]*turn{}
	for _, name := range names {
		t := s.enter(b, name)
		s.take(b, t)
		s.watch.knows(b, s.list(b, t.namespace))
		observed[name] = t
	}
	return observed
}

// edit changes one ConfigMap in a hundred, others each round, and waits until the watch has noticed.
func (s *stage) edit(b *testing.B, t *turn, round int) {
	b.Helper()
	t.edited = nil
	var edited []corev1.ConfigMap
	for i := round % (count / drifted); i < count; i += count / drifted {
		object := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: nameOf(i)}}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"url":"edited"}}`))
		require.NoError(b, s.admin.Patch(b.Context(), &object, patch, client.FieldOwner("editor")))
		t.edited, edited = append(t.edited, i), append(edited, object)
	}
	s.watch.knows(b, edited)
}

// check fails unless the ConfigMaps are as they are wanted.
func (s *stage) check(b *testing.B, namespace string) {
	b.Helper()
	found := 0
	for _, object := range s.list(b, namespace) {
		var i int
		if _, err := fmt.Sscanf(object.Name, "config-%d", &i); err == nil && object.Data["url"] == valueOf(i) {
			found++
		}
	}
	require.Equal(b, count, found, "ConfigMaps as they are wanted in %s", namespace)
}

func (s *stage) list(b *testing.B, namespace string) []corev1.ConfigMap {
	b.Helper()
	list := &corev1.ConfigMapList{}
	require.NoError(b, s.admin.List(b.Context(), list, client.InNamespace(namespace)))
	return list.Items
}

// manifests are what is wanted in a namespace, made for one way alone.
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
