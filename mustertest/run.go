package mustertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// endPatience is how long something may take to end. Managers have half a minute by default, and a minute in some tests.
const endPatience = 2 * time.Minute

// Run runs something until the returned function is called, or the test ends, and waits for its end. The test fails, and goes on, if it
// ends with an error or not at all. What runs is named in words, as "the hub"; it may have several parts.
func Run(t testing.TB, what string, starts ...func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, len(starts))
	for _, start := range starts {
		go func() { ended <- start(ctx) }()
	}
	stop = sync.OnceFunc(func() {
		cancel()
		deadline := time.After(endPatience)
		for range starts {
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("%s ended with an error: %v", what, err)
				}
			case <-deadline:
				t.Errorf("%s does not end", what)
				return
			}
		}
	})
	t.Cleanup(stop)
	return stop
}

// Manager makes a manager, which serves no metrics, with what setups add to it.
func Manager(t testing.TB, config *rest.Config, options manager.Options, setups ...func(manager.Manager) error) manager.Manager {
	t.Helper()
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	mgr, err := manager.New(config, options)
	require.NoError(t, err)
	for _, setup := range setups {
		require.NoError(t, setup(mgr))
	}
	return mgr
}

// StartManager is Run of a Manager.
func StartManager(t testing.TB, config *rest.Config, options manager.Options, setups ...func(manager.Manager) error) (stop func()) {
	t.Helper()
	return Run(t, "the manager", Manager(t, config, options, setups...).Start)
}
