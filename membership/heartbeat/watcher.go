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

// AllLeases is the part of a client that a [Watcher] uses, for all namespaces:
//
//	client, err := coordinationv1.NewForConfig(mgr.GetConfig())
//	watcher := heartbeat.NewWatcher(client.Leases(metav1.NamespaceAll), memberOf, heartbeat.WatcherOptions{})
type AllLeases interface {
	List(ctx context.Context, opts metav1.ListOptions) (*coordinationv1.LeaseList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// WatcherOptions are the options of a [Watcher]. The zero value of each field is its documented default.
type WatcherOptions struct {
	// Policy contains the rules for the evaluation of members.
	Policy Policy

	// OnChange receives the names of the members whose State, Suspended or [Watcher.Holders] has changed, or whose Lease
	// was deleted, sorted and without duplicates, so that they are reconciled. One goroutine calls it. It may block for a
	// while: heartbeats are still observed, and further names are collected for the next call. The Watcher cannot stop
	// before it returns. When it is called, a member may be untracked already, or may have changed back. Nil: no
	// notification.
	OnChange func(names []string)

	// OnOutage is called when an outage begins and when it ends. The goroutine that calls OnChange calls it before
	// OnChange, and it must not block. Nil: the outage is logged, and [Watcher.Outage] returns it.
	OnOutage func(OutageChange)

	// Clock measures the time without heartbeats. Nil means the system clock.
	Clock clock.Clock
	// Log is for outages, and for errors of the reflector. The zero Logger logs nothing.
	Log logr.Logger
}

// OutageChange is the beginning or the end of an [Outage].
type OutageChange struct {
	// Suspected is true at the beginning, and false at the end.
	Suspected bool
	// Affected is the number of the Tracked members that are late or not ready. Their taints and failover are withheld
	// from the beginning until the end of the grace period that they get when the outage ends.
	Affected, Tracked int
	// Push is true at the beginning of an outage of only the members with joinMode Push, which are Tracked then.
	Push bool
}

// Watcher watches all heartbeat Leases of the hub and runs a [Monitor] on them. Its methods may be called concurrently,
// also before Start and from OnChange.
//
// A Watcher is a Runnable for a manager (mgr.Add) and a prometheus.Collector (metrics.Registry.Register, of
// controller-runtime). As a Runnable it needs leader election: only the hub that acts on the states needs them, and a
// new leader starts with a full grace period for every member.
type Watcher struct {
	leases   AllLeases
	memberOf func(namespace string) (string, bool)
	options  WatcherOptions // with its defaults
	nudge    chan struct{}  // wakes the goroutine of Start

	running sync.Mutex

	mu      sync.Mutex
	monitor *Monitor
	holders holders
	changed []string // not reported yet; may contain duplicates
	stream  stream
	outage  bool // as last logged
}

// stream is the state of the watch.
type stream struct {
	open   bool // the API server has granted the watch
	synced bool // its initial state is known
}

// observed reports whether heartbeats can be observed.
func (s stream) observed() bool { return s.open && s.synced }

// NewWatcher returns a Watcher. It does not start it. MemberOf returns the member of a namespace; Leases in other
// namespaces are ignored. It is called for every heartbeat, under a lock, and must return immediately.
func NewWatcher(leases AllLeases, memberOf func(namespace string) (member string, ok bool),
	opts WatcherOptions) *Watcher {
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
		leases: leases, memberOf: memberOf, options: opts,
		nudge: make(chan struct{}, 1), monitor: NewMonitor(opts.Policy), holders: holders{},
	}
	w.monitor.Pause(w.options.Clock.Now()) // no heartbeat can be observed before the watch is established
	return w
}

// Start watches until the context ends, and then returns nil. While it runs, a second call returns an error.
//
// It retries to reach the API server without a limit, at most 5 s after the last attempt. No member is late or lost
// while the API server cannot be reached.
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
			w.options.OnOutage(*outage)
		}
		if len(names) > 0 {
			w.options.OnChange(names)
		}
		timer := w.options.Clock.NewTimer(w.idle())
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

// Track starts to evaluate a member, or changes its period; see [Monitor.Track].
func (w *Watcher) Track(member string, period time.Duration) {
	w.with(func(m *Monitor, now time.Time) []string { return m.Track(member, period, now) })
	w.wake() // the member may be due before all others
}

// Untrack stops the evaluation of a member; see [Monitor.Untrack].
func (w *Watcher) Untrack(member string) {
	w.with(func(m *Monitor, now time.Time) []string {
		delete(w.holders, member)
		return m.Untrack(member, now)
	})
}

// Report records whether a member's agent reports that its cluster is ready; see [Monitor.Report].
func (w *Watcher) Report(member string, ready bool) {
	w.with(func(m *Monitor, now time.Time) []string { return m.Report(member, ready, now) })
}

// SetPush records whether the hub connects to a member; see [Monitor.SetPush].
func (w *Watcher) SetPush(member string, push bool) {
	w.with(func(m *Monitor, now time.Time) []string { return m.SetPush(member, push, now) })
}

// Health returns the state of a member; false if it is not tracked.
func (w *Watcher) Health(member string) (Health, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.monitor.Health(member)
}

// Missing reports whether a tracked member has no Lease. Before the initial state of the watch is known, and while the
// watch is interrupted, the result is false. OnChange is called when a Lease is deleted.
func (w *Watcher) Missing(member string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stream.observed() && w.monitor.Missing(member)
}

// Holders returns the identities of the agents that renew the Lease of a member alternately, sorted; nil: one agent
// does. Several agents with one credential exist if a cluster was cloned. OnChange is called when this begins and when
// it ends.
func (w *Watcher) Holders(member string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holders.of(member)
}

// Outage returns the current outage; false if there is none.
func (w *Watcher) Outage() (Outage, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.monitor.Outage()
}

// Stats returns the current counters.
func (w *Watcher) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.monitor.Stats()
}

// with calls do with the Monitor, and collects the returned names for OnChange.
func (w *Watcher) with(do func(m *Monitor, now time.Time) []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := do(w.monitor, w.options.Clock.Now())
	if len(changed) == 0 {
		return
	}
	w.changed = append(w.changed, changed...)
	if len(w.changed) > 2*len(w.monitor.members) { // limits the memory if OnChange is slow
		w.changed = sorted(w.changed)
	}
	w.wake()
}

func (w *Watcher) wake() {
	select {
	case w.nudge <- struct{}{}:
	default: // a signal is pending
	}
}

// expire updates the states, and returns the members whose state has changed, and the beginning or the end of an
// outage; nil: there is neither.
func (w *Watcher) expire() (names []string, change *OutageChange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	names = sorted(append(w.changed, w.monitor.Expire(w.options.Clock.Now())...))
	w.changed = nil
	if outage, ok := w.monitor.Outage(); ok != w.outage {
		w.outage = ok
		change = &OutageChange{Suspected: ok, Affected: w.monitor.fleet.affected, Tracked: w.monitor.fleet.tracked}
		if ok {
			change.Affected, change.Tracked, change.Push = outage.Affected, outage.Tracked, outage.Push
			w.options.Log.Info("Most members are silent or not ready, taints and failover are withheld because the hub may be "+
				"the cause", "affected", outage.Affected, "late", outage.Late, "tracked", outage.Tracked)
		} else {
			w.options.Log.Info("Enough members are observed again, so each affected member has a fresh grace period",
				"affected", w.monitor.Stats().Affected)
		}
	}
	return names, change
}

// idle returns how long to sleep. The minimum limits the load, because among 100,000 members some are due at any time.
func (w *Watcher) idle() time.Duration {
	const atLeast, atMost = 50 * time.Millisecond, time.Hour
	w.mu.Lock()
	defer w.mu.Unlock()
	next, ok := w.monitor.Next()
	if !ok {
		return atMost // a signal comes first
	}
	return min(max(next.Sub(w.options.Clock.Now()), atLeast), atMost)
}
