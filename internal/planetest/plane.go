package planetest

import (
	"context"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/internal/localplane"
)

// Main is TestMain of a package whose tests share planes: it runs the tests without the logs of controller-runtime, stops the planes and exits.
func Main(m *testing.M, shared ...*localplane.Shared) {
	ctrllog.SetLogger(logr.Discard())
	// The second handler sleeps until a time that all errors of the process share. Tests in virtual time have different times, and
	// would sleep for years.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	os.Exit(localplane.Run(m, shared...))
}

// Scheme knows Kubernetes' own types, and those that are added. It panics if two types have one name, which is up to the code alone.
func Scheme(add ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme}, add...) {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// Client returns a client without a cache, once it has installed definitions, as with crds.Install.
func Client(t testing.TB, config *rest.Config, scheme *runtime.Scheme, installs ...func(context.Context, client.Client) error) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	for _, install := range installs {
		require.NoError(t, install(t.Context(), c))
	}
	return c
}

// Prepare is localplane.Options.Prepare that installs definitions, as with crds.Install, and whatever else can be done with an admin's client:
// the plane's garbage collector then knows them from its start.
func Prepare(scheme *runtime.Scheme, installs ...func(context.Context, client.Client) error) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, config *rest.Config) error {
		c, err := client.New(config, client.Options{Scheme: scheme})
		for _, install := range installs {
			if err == nil {
				err = install(ctx, c)
			}
		}
		return err
	}
}

// Namespace makes a namespace that no other test has, and returns its name. It stays as long as the plane.
func Namespace(t testing.TB, c client.Client) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	require.NoError(t, c.Create(t.Context(), namespace))
	return namespace.Name
}

// Change changes an object that is there, by a merge patch of what is different then: no change that others make meanwhile is in the way.
func Change[T client.Object](t testing.TB, c client.Client, object T, change func(T)) {
	t.Helper()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	before := object.DeepCopyObject().(client.Object)
	change(object)
	require.NoError(t, c.Patch(t.Context(), object, client.MergeFrom(before)))
}
