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

// endTimeout limits how long stop waits for the functions that Run started. A manager waits 30 s for its runnables by
// default.
const endTimeout = 2 * time.Minute

// Run calls each function in a goroutine. It cancels their context when stop is called or the test ends, and waits
// until they return. The test fails, but continues, if a function returns an error or does not return within two
// minutes. The messages contain name, such as "the hub".
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

// Manager calls each of the setups and returns a manager that serves no metrics.
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

// StartManager calls each of the setups and runs a manager that serves no metrics, with the same stop semantics as Run.
// Stop first waits, for at most ten seconds, until the caches of the manager are synced. A manager that is stopped
// before its caches are synced keeps a core busy until then. In virtual time it never stops, because the virtual time
// does not advance meanwhile.
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

// startTimeout limits how long stop waits for the caches of a manager.
const startTimeout = 10 * time.Second

// signal is a runnable that closes the channel when the manager starts it, which happens after the caches are synced.
type signal chan struct{}

func (s signal) Start(context.Context) error { close(s); return nil }

func (signal) NeedLeaderElection() bool { return false }
