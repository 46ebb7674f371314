package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fleet is the set of a hub's connections to its members; see [SetupWithManager].
type Fleet struct {
	options  Options
	cache    cache.Cache
	reader   client.Reader // without a cache
	client   client.Client
	log      logr.Logger
	recorder events.EventRecorder
	elected  <-chan struct{}
	metrics  *metrics

	goroutines sync.WaitGroup

	mu        sync.Mutex
	life      context.Context    // of the goroutines of members; nil: not started, or ended
	leading   bool               // this replica runs the runners and writes conditions
	live      liveClusters       // those that a provider engages
	members   map[string]*member // the members with a goroutine
	waiting   map[string]*observed
	running   map[string]chan struct{} // by member and runner: closed when that has returned
	secretsOf map[string]types.NamespacedName
	bySecret  map[types.NamespacedName]map[string]struct{}
}

const (
	// requestTimeout is the timeout of requests to the hub.
	requestTimeout = 30 * time.Second
	// grace is how long a runner may take to return after its context has ended.
	grace = 10 * time.Second
)

// NeedLeaderElection returns false: live clusters are for every replica with a Provider. Everything else waits for
// leadership.
func (f *Fleet) NeedLeaderElection() bool { return false }

// Start runs the fleet for the manager. It returns when everything that runs for members has returned, or its grace
// period has passed.
func (f *Fleet) Start(ctx context.Context) error {
	hide, err := f.metrics.expose()
	if err != nil {
		return fmt.Errorf("register the metrics of the fleet: %w", err)
	}
	defer hide()
	f.mu.Lock()
	f.life = ctx
	waiting := f.waiting
	f.waiting = nil
	f.mu.Unlock()
	for name, o := range waiting {
		f.notify(name, o)
	}
	select {
	case <-f.elected:
		f.change(func() { f.leading = true })
		<-ctx.Done()
	case <-ctx.Done():
	}
	f.mu.Lock()
	f.life = nil
	f.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		f.goroutines.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-f.options.Clock.After(grace + time.Second):
		f.log.Info("Some runners have not returned in time; the fleet ends without them")
	}
	return nil
}

// change changes the shared state and wakes the goroutines of all members.
func (f *Fleet) change(how func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how()
	for _, m := range f.members {
		m.wake()
	}
}

// liveClusters are the live clusters of a started provider. The zero value: no provider is started.
type liveClusters struct {
	runner  Runner
	permits func(labels map[string]string) bool // whether the provider may engage a member; nil: every member
}

// duties are the tasks of this replica for members.
type duties struct {
	leading  bool
	clusters Runner
	permits  func(labels map[string]string) bool
}

func (d duties) none() bool { return !d.leading && d.clusters == nil }

func (f *Fleet) duties() duties {
	f.mu.Lock()
	defer f.mu.Unlock()
	return duties{f.leading, f.live.runner, f.live.permits}
}

// notify passes an observation to the goroutine of a member; nil: the member is deleted. It does not block. A member
// that the hub neither reaches nor must reach has no goroutine.
func (f *Fleet) notify(name string, o *observed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.life == nil {
		if f.waiting == nil {
			f.waiting = map[string]*observed{}
		}
		f.waiting[name] = o
		return
	}
	m := f.members[name]
	if m == nil {
		if o == nil || !concerns(o) {
			return
		}
		m = newMember(f, name)
		f.members[name] = m
		ctx := f.life
		f.goroutines.Go(func() { m.run(ctx) })
	}
	m.notify(o)
}

// leave ends the goroutine of a member, unless there is a new observation for it.
func (f *Fleet) leave(m *member) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := m.latest(); o != nil && concerns(o) {
		return false
	}
	delete(f.members, m.name)
	return true
}

// seenSecret is the last observed content of a member's Secret.
func (f *Fleet) seenSecret(name string) (secretSeen, bool) {
	f.mu.Lock()
	m, waiting := f.members[name], f.waiting[name]
	f.mu.Unlock()
	if m != nil {
		waiting = m.latest()
	}
	if waiting == nil {
		return secretSeen{}, false
	}
	return waiting.secret, true
}
