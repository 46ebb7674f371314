package heartbeat

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/muster-sdk/muster/membership"
)

// onlyHeartbeats selects the Leases. With this selector, an API server permits a list or a watch to a role that is
// limited to this resourceName.
var onlyHeartbeats = fields.OneTermEqualSelector(metav1.ObjectNameField, membership.LeaseName).String()

// reflect lists and watches with client-go's reflector, which restarts as required.
func (w *Watcher) reflect(ctx context.Context) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = onlyHeartbeats
			return w.leases.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = onlyHeartbeats
			stream, err := w.leases.Watch(ctx, opts)
			if err != nil {
				return nil, err
			}
			return w.opened(stream, opts), nil
		},
	}
	reflector := cache.NewReflectorWithOptions(
		// The reflector falls back to a list if the client does not support WatchList.
		cache.ToListWatcherWithWatchListSemantics(lw, w.leases),
		&coordinationv1.Lease{}, (*sink)(w),
		cache.ReflectorOptions{
			Name:   "heartbeat",
			Logger: &w.options.Log,
			// One process connects on behalf of the fleet, so frequent attempts are acceptable. Also, the reflector does not
			// always observe its context during a backoff, which would delay the return of Start.
			Backoff: &wait.Backoff{Duration: 500 * time.Millisecond, Cap: 2500 * time.Millisecond, Factor: 2, Jitter: 1,
				Steps: 10},
		})
	reflector.RunWithContext(logr.NewContext(ctx, w.options.Log))
}

// opened records that the API server has granted a watch. The returned watch records its end.
func (w *Watcher) opened(stream watch.Interface, opts metav1.ListOptions) watch.Interface {
	w.sees(func() {
		w.stream.open = true
		if opts.SendInitialEvents != nil && *opts.SendInitialEvents {
			w.stream.synced = false // until the sink receives the initial state
		}
	})
	return &noted{Interface: stream, stopped: func() { w.sees(func() { w.stream.open = false }) }}
}

// sees changes the state of the watch. While the watch is not established, or its initial state is not known yet, no
// heartbeat can be observed, and therefore no member may expire.
func (w *Watcher) sees(change func()) {
	w.with(func(m *Monitor, now time.Time) []string {
		change()
		if w.stream.observed() {
			return m.Resume(now)
		}
		m.Pause(now)
		return nil
	})
	w.wake() // there are deadlines now
}

// noted is a watch that calls stopped at its end. The reflector stops every watch as soon as it has ended.
type noted struct {
	watch.Interface
	once    sync.Once
	stopped func()
}

func (n *noted) Stop() {
	n.Interface.Stop()
	n.once.Do(n.stopped)
}

// sink is the Watcher as the store of its reflector. It stores only the part of a Lease that a Monitor needs.
type sink Watcher

// sighting is the relevant part of a Lease.
type sighting struct {
	namespace string
	renewed   time.Time
	holder    string        // identity of the agent
	acquired  bool          // with this heartbeat the agent took the Lease over
	grace     time.Duration // of the member, as its agent knows it
}

func sightingOf(obj any) sighting {
	switch o := obj.(type) {
	case sighting:
		return o
	case *coordinationv1.Lease:
		s := sighting{namespace: o.Namespace}
		if o.Spec.RenewTime != nil {
			s.renewed = o.Spec.RenewTime.Time
			s.acquired = o.Spec.AcquireTime != nil && o.Spec.AcquireTime.Time.Equal(s.renewed)
		}
		s.holder = ptr.Deref(o.Spec.HolderIdentity, "")
		s.grace = time.Duration(ptr.Deref(o.Spec.LeaseDurationSeconds, 0)) * time.Second
		return s
	default: // the reflector passes no other type
		return sighting{}
	}
}

// Transformer reduces Leases before the reflector collects them for the initial state.
func (s *sink) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return sightingOf(obj), nil }
}

func (s *sink) Add(obj any) error { return s.Update(obj) }

func (s *sink) Update(obj any) error {
	seen := sightingOf(obj)
	if member, ok := s.memberOf(seen.namespace); ok {
		w := (*Watcher)(s)
		w.with(func(m *Monitor, now time.Time) []string {
			changed := m.Observe(member, seen.renewed, now)
			if w.holders.observe(member, seen, now) {
				changed = append(changed, member)
			}
			return changed
		})
	}
	return nil
}

func (s *sink) Delete(obj any) error {
	if member, ok := s.memberOf(sightingOf(obj).namespace); ok {
		w := (*Watcher)(s)
		w.with(func(m *Monitor, _ time.Time) []string {
			m.Gone(member)
			delete(w.holders, member)
			if m.Missing(member) {
				return []string{member}
			}
			return nil
		})
	}
	return nil
}

func (s *sink) Replace(list []any, _ string) error {
	leases := make(map[string]time.Time, len(list))
	for _, obj := range list {
		seen := sightingOf(obj)
		if member, ok := s.memberOf(seen.namespace); ok {
			leases[member] = seen.renewed
		}
	}
	w := (*Watcher)(s)
	w.with(func(m *Monitor, now time.Time) []string {
		var deleted []string // while the watch was down
		for member, e := range m.members {
			if _, there := leases[member]; !there && e.tracked && e.renewed != 0 {
				deleted = append(deleted, member)
			}
		}
		return append(deleted, m.Relist(leases, now)...)
	})
	w.sees(func() { w.stream.synced = true })
	return nil
}

// Resync is never called: there is no resync period.
func (s *sink) Resync() error { return nil }
