package mustertest

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

	"github.com/muster-sdk/muster/mustertest/localplane"
)

// Main implements TestMain of a package whose tests share planes. It discards the logs of controller-runtime, runs the
// tests, stops the planes and exits.
func Main(m *testing.M, shared ...*localplane.Shared) {
	ctrllog.SetLogger(logr.Discard())
	// The second handler sleeps until a time that all errors of the process share. Tests in virtual time run on different
	// clocks, so the handler would sleep for years.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // There is no other way.
	os.Exit(localplane.Run(m, shared...))
}

// StartPlane starts a control plane for one test, and stops it after the test and its subtests. A start takes several
// seconds and 600 MB of memory; use [localplane.Shared] for a plane that all tests of a package share. StartPlane skips
// the test under -short. It fails the test if the plane does not start, or if a component of the plane ends by itself.
func StartPlane(t testing.TB, options localplane.Options) *localplane.Plane {
	t.Helper()
	return localplane.ForTest(t, options)
}

// Scheme returns a scheme with the types of Kubernetes and the types that the functions add. It panics if two types
// have the same name, which is a bug in the program.
func Scheme(add ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme}, add...) {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// Client returns a client without a cache, after it has called each of installs, such as crds.Install.
func Client(t testing.TB, config *rest.Config, scheme *runtime.Scheme, installs ...func(context.Context,
	client.Client) error) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	for _, install := range installs {
		require.NoError(t, install(t.Context(), c))
	}
	return c
}

// Prepare returns a function for localplane.Options.Prepare, which calls each of installs, such as crds.Install. The
// garbage collector of the plane then knows the definitions from its start.
func Prepare(scheme *runtime.Scheme, installs ...func(context.Context,
	client.Client) error) func(context.Context, *rest.Config) error {
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

// Namespace creates a namespace with a unique name, and returns the name. The namespace is not deleted.
func Namespace(t testing.TB, c client.Client) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	require.NoError(t, c.Create(t.Context(), namespace))
	return namespace.Name
}

// Change reads an object, changes it and writes the difference as a merge patch without a resourceVersion precondition,
// so the write never conflicts with other writers. The object must have its namespace and name set. After the call it
// contains the new state.
func Change[T client.Object](t testing.TB, c client.Client, object T, change func(T)) {
	t.Helper()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	before := object.DeepCopyObject().(client.Object)
	change(object)
	require.NoError(t, c.Patch(t.Context(), object, client.MergeFrom(before)))
}
