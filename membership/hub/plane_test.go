package hub_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/internal/localplane"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

var plane = localplane.Shared{Options: localplane.Options{Name: "hub"}}

func TestMain(m *testing.M) { os.Exit(localplane.Run(m, &plane)) }

const (
	patience = 60 * time.Second
	interval = 50 * time.Millisecond
)

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	return scheme
}

func newClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: newScheme(t)})
	require.NoError(t, err)
	return c
}

// startHub runs a hub until the returned function is called, or the test ends.
func startHub(t testing.TB, config *rest.Config, options hub.Options) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(t, crds.Install(ctx, newClient(t, config)))
	logger := logr.Discard()
	if testing.Verbose() {
		logger = testr.New(t.(*testing.T))
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme: newScheme(t), Logger: logger, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	require.NoError(t, err)
	require.NoError(t, hub.SetupWithManager(mgr, options))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			require.NoError(t, err)
		case <-time.After(patience):
			t.Error("the hub's manager does not stop")
		}
	}
	t.Cleanup(stop)
	return stop
}
