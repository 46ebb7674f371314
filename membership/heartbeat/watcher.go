package heartbeat

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
)

// AllLeases is the part of a client that a [Watcher] uses, bound to all namespaces:
//
//	client, err := coordinationv1.NewForConfig(mgr.GetConfig())
//	watcher := heartbeat.NewWatcher(client.Leases(metav1.NamespaceAll), memberOf, heartbeat.WatcherOptions{})
type AllLeases interface {
	List(ctx context.Context, opts metav1.ListOptions) (*coordinationv1.LeaseList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// WatcherOptions are the options of a [Watcher]. The zero value of each is its documented default.
type WatcherOptions struct {
	// Policy is how members are judged.
	Policy Policy

	// OnChange is told the names of the members whose verdict has changed, sorted and each once, so that
	// they are looked at again. It is called from one goroutine and may take its time: meanwhile
	// heartbeats are still observed, and further names gather for the next call. It must return in the
	// end, or the Watcher cannot stop. A name may have been untracked meanwhile, or its verdict have
	// changed back. Nil means that nobody is told.
	OnChange func(names []string)

	// OnOutage is called when the hub begins to suspect itself, and when it stops. It is called from the goroutine that calls
	// OnChange, before OnChange, and must not block. Nil: it is logged, and [Watcher.Outage] returns it.
	OnOutage func(OutageChange)

	// Clock is what silence is timed by. Nil means the real one.
	Clock clock.Clock
	// Log is for outages, and for the reflector's troubles with the API server. The zero Logger logs nothing.
	Log logr.Logger
}

// OutageChange is the beginning or the end of an [Outage].
type OutageChange struct {
	// Suspected is true at the beginning.
	Suspected bool
	// Affected is how many of the Tracked members are late or not ready.
	Affected, Tracked int
	// Withheld is how many members have taints and failover withheld.
	Withheld int
}

// Watcher watches all heartbeat Leases of the hub and runs a [Monitor] on what it sees. All its methods
// may be called concurrently, also before Start and from OnChange.
//
// It is a Runnable for a manager (mgr.Add) and a prometheus.Collector (metrics.Registry.Register, of
// controller-runtime). As a Runnable it needs leader election: only the hub that acts on verdicts has use
// for them, and it starts with a full grace for everybody.
type Watcher struct {
	leases   AllLeases
	memberOf func(namespace string) (string, bool)
	onChange func([]string)
	onOutage func(OutageChange)
	clock    clock.Clock
	log      logr.Logger
	nudge    chan struct{} // there is something to do for the goroutine of Start

	running sync.Mutex

	mu      sync.Mutex
	monitor *Monitor
	changed []string // yet to be told; may hold a name twice
	open    bool     // the API server has granted the watch
	synced  bool     // what had been written before it is known, too
	outage  bool     // as last logged
}

// NewWatcher returns a Watcher that is not running yet. It asks memberOf which member a namespace is
// of; Leases in namespaces of none are passed over. It is called for every heartbeat, under a lock, and
// must return at once.
func NewWatcher(leases AllLeases, memberOf func(namespace string) (member string, ok bool), opts WatcherOptions) *Watcher {
	if opts.OnChange == nil {
		opts.OnChange = func([]string) {}
	}
	if opts.OnOutage == nil {
		opts.OnOutage = func(OutageChange) {}
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	w := &Watcher{
		leases: leases, memberOf: memberOf, onChange: opts.OnChange, onOutage: opts.OnOutage, clock: opts.Clock, log: opts.Log,
		nudge: make(chan struct{}, 1), monitor: NewMonitor(opts.Policy),
	}
	w.monitor.Pause(w.clock.Now()) // nothing can be observed before the watch stands
	return w
}

// Start watches until the context ends, and then returns nil. While it runs, a second call returns an error.
//
// It tries for ever to reach the API server, within 5 s of the last try, and says nothing of anybody's
// silence while it does not.
func (w *Watcher) Start(ctx context.Context) error {
	if !w.running.TryLock() {
		return errors.New("heartbeat: the Watcher is running already")
	}
	defer w.running.Unlock()

	var reflector sync.WaitGroup
	reflector.Go(func() { w.reflect(ctx) })
	defer reflector.Wait()

	for {
		names, outage := w.expire()
		if outage != nil {
			w.onOutage(*outage)
		}
		if len(names) > 0 {
			w.onChange(names)
		}
		timer := w.clock.NewTimer(w.idle())
		select {
		case <-ctx.Done():
		case <-w.nudge:
		case <-timer.C():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// NeedLeaderElection returns true; see [Watcher].
func (w *Watcher) NeedLeaderElection() bool { return true }

// Track begins to judge a member, or changes its period; see [Monitor.Track].
func (w *Watcher) Track(member string, period time.Duration) {
	w.with(func(m *Monitor, now time.Time) []string { return m.Track(member, period, now) })
	w.wake() // it may be due before all others
}

// Untrack stops to judge a member; see [Monitor.Untrack].
func (w *Watcher) Untrack(member string) {
	w.with(func(m *Monitor, now time.Time) []string { return m.Untrack(member, now) })
}

// Report takes in whether a member's agent finds its cluster ready; see [Monitor.Report].
func (w *Watcher) Report(member string, ready bool) {
	w.with(func(m *Monitor, now time.Time) []string { return m.Report(member, ready, now) })
}

// Verdict returns what is known of a member; false if it is not tracked.
func (w *Watcher) Verdict(member string) (Verdict, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.monitor.Verdict(member)
}

// Outage returns the hub's suspicion of itself; false while it has none.
func (w *Watcher) Outage() (Outage, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.monitor.Outage()
}

// Stats returns the present counts.
func (w *Watcher) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.monitor.Stats()
}

// with lets do change the Monitor, and keeps the names that it returns for OnChange.
func (w *Watcher) with(do func(m *Monitor, now time.Time) []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := do(w.monitor, w.clock.Now())
	if len(changed) == 0 {
		return
	}
	w.changed = append(w.changed, changed...)
	if len(w.changed) > 2*len(w.monitor.members) { // a slow OnChange must not let it grow for ever
		w.changed = sorted(w.changed)
	}
	w.wake()
}

func (w *Watcher) wake() {
	select {
	case w.nudge <- struct{}{}:
	default: // Start has yet to come to the last one
	}
}

// expire brings the verdicts up to date, and returns the members whose verdict has changed, and the beginning or the end of an
// outage; nil: neither.
func (w *Watcher) expire() (names []string, change *OutageChange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	names = sorted(append(w.changed, w.monitor.Expire(w.clock.Now())...))
	w.changed = nil
	if outage, ok := w.monitor.Outage(); ok != w.outage {
		w.outage = ok
		change = &OutageChange{Suspected: ok, Affected: w.monitor.affected, Tracked: w.monitor.tracked, Withheld: w.monitor.withheld()}
		if ok {
			w.log.Info("Most members are silent or not ready, so the hub suspects itself and withholds taints and failover",
				"affected", outage.Affected, "late", outage.Late, "tracked", outage.Tracked)
		} else {
			w.log.Info("Enough members are observed again, so each affected member has a fresh grace period",
				"affected", w.monitor.Stats().Affected)
		}
	}
	return names, change
}

// idle returns how long to sleep; a little at least, because among 100,000 members one or the other is
// due all the time.
func (w *Watcher) idle() time.Duration {
	const atLeast, atMost = 50 * time.Millisecond, time.Hour
	w.mu.Lock()
	defer w.mu.Unlock()
	next, ok := w.monitor.Next()
	if !ok {
		return atMost // a nudge comes first
	}
	return min(max(next.Sub(w.clock.Now()), atLeast), atMost)
}
