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

// Fleet is a hub's connections to its members; see [SetupWithManager].
type Fleet struct {
	options  Options
	cache    cache.Cache
	reader   client.Reader // not the cache
	client   client.Client
	log      logr.Logger
	recorder events.EventRecorder
	elected  <-chan struct{}
	metrics  *metrics

	goroutines sync.WaitGroup

	mu        sync.Mutex
	life      context.Context    // of the goroutines of members; nil: not started, or ended
	leading   bool               // runners and conditions are ours
	clusters  Runner             // engages live clusters; nil: nobody wants any
	members   map[string]*member // those that have a goroutine
	waiting   map[string]*observed
	running   map[string]chan struct{} // by member and runner: closed when that has returned
	secretsOf map[string]types.NamespacedName
	bySecret  map[types.NamespacedName]map[string]struct{}
}

const (
	// requestTimeout bounds what is asked of the hub.
	requestTimeout = 30 * time.Second
	// grace is what a runner has to return when its context has ended.
	grace = 10 * time.Second
)

// NeedLeaderElection is false: live clusters are for every program that wants them. What is the leader's waits for it.
func (f *Fleet) NeedLeaderElection() bool { return false }

// Start is for the manager. It returns when all that runs for members has ended, or had its time to.
func (f *Fleet) Start(ctx context.Context) error {
	hide, err := f.metrics.expose()
	if err != nil {
		return fmt.Errorf("show the metrics of the fleet: %w", err)
	}
	defer hide()
	f.mu.Lock()
	f.life = ctx
	waiting := f.waiting
	f.waiting = nil
	f.mu.Unlock()
	for name, o := range waiting {
		f.tell(name, o)
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

// change changes what all members have to know, and has them look.
func (f *Fleet) change(how func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how()
	for _, m := range f.members {
		m.wake()
	}
}

// duties are what is to be done for members by this program.
type duties struct {
	leading  bool
	clusters Runner
}

func (d duties) none() bool { return !d.leading && d.clusters == nil }

func (f *Fleet) duties() duties {
	f.mu.Lock()
	defer f.mu.Unlock()
	return duties{f.leading, f.clusters}
}

// tell has a member's goroutine know what was observed; nil is that the member is gone. It does not wait. A member that
// the hub is not to reach, and is not reaching, has no goroutine.
func (f *Fleet) tell(name string, o *observed) {
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
	m.tell(o)
}

// leave ends the goroutine of a member, unless there is news for it.
func (f *Fleet) leave(m *member) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := m.latest(); o != nil && concerns(o) {
		return false
	}
	delete(f.members, m.name)
	return true
}

// seenSecret is what was read of a member's Secret last.
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
