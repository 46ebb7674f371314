package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fleet is the set of a hub's connections to its members; see [SetupWithManager].
type Fleet struct {
	options  Options
	cache    cache.Cache
	client   client.Client // without a cache
	log      logr.Logger
	recorder events.EventRecorder
	elected  <-chan struct{}
	metrics  *metrics

	goroutines *goroutines
	secrets    secretIndex

	mu      sync.Mutex
	current duties
}

const (
	// requestTimeout is the timeout of requests to the hub.
	requestTimeout = 30 * time.Second
	// grace is how long a runner may take to return after its context has ended.
	grace = 10 * time.Second
)

// NeedLeaderElection returns false: every replica with a Provider has live clusters. All other work waits until the
// replica is the leader.
func (f *Fleet) NeedLeaderElection() bool { return false }

// Start runs the fleet for the manager. It returns when all goroutines of members have returned, or the grace period
// has passed.
func (f *Fleet) Start(ctx context.Context) error {
	hide, err := f.metrics.expose()
	if err != nil {
		return fmt.Errorf("register the metrics of the fleet: %w", err)
	}
	defer hide()
	f.goroutines.begin(ctx)
	select {
	case <-f.elected:
		f.change(func(d *duties) { d.leading = true })
		<-ctx.Done()
	case <-ctx.Done():
	}
	select {
	case <-f.goroutines.end():
	case <-f.options.Clock.After(grace + time.Second):
		f.log.Info("Some runners have not returned in time, and the fleet ends without them")
	}
	return nil
}

// change changes the duties, and wakes the goroutines of all members.
func (f *Fleet) change(how func(*duties)) {
	f.mu.Lock()
	how(&f.current)
	f.mu.Unlock()
	f.goroutines.wake()
}

// liveClusters are the live clusters of a started provider. The zero value: no provider is started.
type liveClusters struct {
	runner  Runner
	permits func(labels map[string]string) bool // whether the provider may engage a member; nil: every member
}

// duties are the tasks of this replica for members.
type duties struct {
	leading bool         // it runs the runners and writes conditions
	live    liveClusters // those that a provider engages
}

func (d duties) none() bool { return !d.leading && d.live.runner == nil }

func (f *Fleet) duties() duties {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current
}
