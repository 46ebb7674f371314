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

	"github.com/muster-sdk/muster/membership"
)

// onlyHeartbeats selects the Leases. An API server grants a list or a watch with it to a role that is
// limited to this one resourceName.
var onlyHeartbeats = fields.OneTermEqualSelector(metav1.ObjectNameField, membership.LeaseName).String()

// reflect lists and watches by client-go's reflector, which starts over whenever it has to.
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
		// A client that cannot stream what there is at first (WatchList) says so; it is listed then.
		cache.ToListWatcherWithWatchListSemantics(lw, w.leases),
		&coordinationv1.Lease{}, (*sink)(w),
		cache.ReflectorOptions{
			Name:   "heartbeat",
			Logger: &w.log,
			// One process asks on behalf of the fleet: it may do so often. And the reflector does not always
			// mind its context while it waits, which keeps Start from returning.
			Backoff: &wait.Backoff{Duration: 500 * time.Millisecond, Cap: 2500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10},
		})
	reflector.RunWithContext(logr.NewContext(ctx, w.log))
}

// opened notes that the API server has granted a watch, and returns it such that its end is noted too.
func (w *Watcher) opened(stream watch.Interface, opts metav1.ListOptions) watch.Interface {
	w.sees(func() {
		w.open = true
		if opts.SendInitialEvents != nil && *opts.SendInitialEvents {
			w.synced = false // until the sink gets what there was
		}
	})
	return &noted{Interface: stream, stopped: func() { w.sees(func() { w.open = false }) }}
}

// sees lets change alter what is known of the watch. While it does not stand, or what was written before
// it stood is not known yet, no heartbeat could be observed, so nobody's time may run out.
func (w *Watcher) sees(change func()) {
	w.with(func(m *Monitor, now time.Time) []string {
		change()
		if w.open && w.synced {
			return m.Resume(now)
		}
		m.Pause(now)
		return nil
	})
	w.wake() // there are deadlines again
}

// noted is a watch whose end is noted. The reflector stops every watch as soon as it has ended.
type noted struct {
	watch.Interface
	once    sync.Once
	stopped func()
}

func (n *noted) Stop() {
	n.Interface.Stop()
	n.once.Do(n.stopped)
}

// sink is the Watcher as the store of its reflector: it keeps nothing of a Lease but what a Monitor keeps.
type sink Watcher

// sighting is what matters of a Lease.
type sighting struct {
	namespace string
	renewed   time.Time
}

func sightingOf(obj any) sighting {
	switch o := obj.(type) {
	case sighting:
		return o
	case *coordinationv1.Lease:
		s := sighting{namespace: o.Namespace}
		if o.Spec.RenewTime != nil {
			s.renewed = o.Spec.RenewTime.Time
		}
		return s
	default: // the reflector passes on nothing else
		return sighting{}
	}
}

// Transformer keeps the reflector from piling up whole Leases while it streams what there is at first.
func (s *sink) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return sightingOf(obj), nil }
}

func (s *sink) Add(obj any) error { return s.Update(obj) }

func (s *sink) Update(obj any) error {
	seen := sightingOf(obj)
	if member, ok := s.memberOf(seen.namespace); ok {
		(*Watcher)(s).with(func(m *Monitor, now time.Time) []string { return m.Observe(member, seen.renewed, now) })
	}
	return nil
}

func (s *sink) Delete(obj any) error {
	if member, ok := s.memberOf(sightingOf(obj).namespace); ok {
		(*Watcher)(s).with(func(m *Monitor, _ time.Time) []string { m.Gone(member); return nil })
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
	w.with(func(m *Monitor, now time.Time) []string { return m.Relist(leases, now) })
	w.sees(func() { w.synced = true })
	return nil
}

// Resync is never asked for: nothing is kept to be synced with.
func (s *sink) Resync() error { return nil }
