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

// endTimeout bounds the end of what Run started. A manager waits 30 s for its runnables by default.
const endTimeout = 2 * time.Minute

// Run calls each function in a goroutine, cancels their context when stop is called or the test ends, and waits for
// their ends. The test fails, but continues, if a function returns an error or does not return within two minutes. The
// name, such as "the hub", is for messages.
func Run(t testing.TB, name string, starts ...func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, len(starts))
	for _, start := range starts {
		go func() { ended <- start(ctx) }()
	}
	stop = sync.OnceFunc(func() {
		cancel()
		deadline := time.After(endTimeout)
		for range starts {
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("%s ended with an error: %v", name, err)
				}
			case <-deadline:
				t.Errorf("%s did not end within %s", name, endTimeout)
				return
			}
		}
	})
	t.Cleanup(stop)
	return stop
}

// Manager returns a manager that serves no metrics, after it has called each of the setups.
func Manager(t testing.TB, config *rest.Config, options manager.Options,
	setups ...func(manager.Manager) error) manager.Manager {
	t.Helper()
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	mgr, err := manager.New(config, options)
	require.NoError(t, err)
	for _, setup := range setups {
		require.NoError(t, setup(mgr))
	}
	return mgr
}

// StartManager runs a manager that serves no metrics, after it has called each of the setups, as Run does. A stop waits
// for at most ten seconds until the caches of the manager are synced: a manager that is stopped earlier keeps a core
// busy until then, and for ever in virtual time, which does not advance meanwhile.
func StartManager(t testing.TB, config *rest.Config, options manager.Options,
	setups ...func(manager.Manager) error) (stop func()) {
	t.Helper()
	mgr := Manager(t, config, options, setups...)
	synced := make(signal)
	require.NoError(t, mgr.Add(synced))
	return Run(t, "the manager", func(ctx context.Context) error {
		starting, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(starting) }()
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
		}
		select {
		case err := <-ended:
			return err
		case <-synced:
		case <-time.After(startTimeout):
		}
		cancel()
		return <-ended
	})
}

// startTimeout bounds the wait for caches when a manager is stopped.
const startTimeout = 10 * time.Second

// signal is a runnable that is closed when a manager starts it, which is after its caches are synced.
type signal chan struct{}

func (s signal) Start(context.Context) error { close(s); return nil }

func (signal) NeedLeaderElection() bool { return false }
