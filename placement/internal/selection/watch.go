package selection

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/internal/sharedwatch"
)

// users are the owners of a shared resource, such as the objects of a watch.
type users = sharedwatch.Users[types.NamespacedName]

// watch is the watch of a target. It is the store of the target's objects, and observes the requests of the reflector.
// The lock of its Watcher protects the fields that change.
type watch struct {
	*Watcher
	users  users
	target Target
	labels labels.Selector
	began  time.Time
	done   chan struct{} // closed after the first list, or after the first failed request
	stop   context.CancelFunc

	entries map[string]*entry   // by name; nil: the objects were not listed yet
	sorted  []*entry            // the entries by name; nil: they must be sorted
	lists   sharedwatch.Request // the request that returned the next list
	failure failure
}

// failure is the state of the failing requests of a watch.
type failure struct {
	problem problem
	since   time.Time           // zero: no request fails
	request sharedwatch.Request // the last failing request; a watch counts as later than a list
}

var _ sharedwatch.Observer = &watch{}

// Users implements [sharedwatch.Shared].
func (t *watch) Users() users { return t.users }

// Close implements [sharedwatch.Shared].
func (t *watch) Close() { t.stop() }

// wantWatches registers an owner for the targets of selectors, and returns their watches.
func (w *Watcher) wantWatches(owner types.NamespacedName, parsed []parsedSelector) []*watch {
	var keys []Target
	selectors := map[Target]labels.Selector{}
	for i := range parsed {
		if a := &parsed[i]; a.problem.none() && !slices.Contains(keys, a.target) {
			keys = append(keys, a.target)
			selectors[a.target] = a.labels
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.watches.Want(owner, keys, func(target Target) *watch {
		ctx, stop := context.WithCancel(w.life)
		t := &watch{
			Watcher: w, users: users{}, target: target, labels: selectors[target], began: w.options.Clock.Now(),
			done: make(chan struct{}), stop: stop, failure: failure{problem: notListed(target)},
		}
		of := sharedwatch.Target{GroupVersionResource: target.GroupVersionResource, Namespace: target.Namespace,
			Name: target.Name, LabelSelector: target.LabelSelector}
		w.ended.Go(func() {
			sharedwatch.Run(ctx, target.String(), sharedwatch.Objects(w.client, of), t, t)
		})
		return t
	})
	return w.watches.Wanted(owner)
}

// Lists implements [sharedwatch.Observer].
func (t *watch) Lists(request sharedwatch.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lists = request
}

// Watches implements [sharedwatch.Observer].
func (t *watch) Watches() {
	t.change(t.users, func() bool { return t.recovered(sharedwatch.Watch) })
}

// Failed implements [sharedwatch.Observer].
func (t *watch) Failed(request sharedwatch.Request, err error) {
	t.change(t.users, func() bool {
		now := t.options.Clock.Now()
		if t.failure.since.IsZero() {
			t.failure.since = now
		}
		t.failure.request = max(t.failure.request, request)
		first := t.markRequested()
		problem := watchProblem(t.target, t.entries != nil, now.Sub(t.failure.since), err)
		if problem.none() || problem.reason == t.failure.problem.reason && !first {
			return false
		}
		if problem.reason == ReasonUnknownKind {
			t.retryMissingKinds()
		}
		t.failure.problem = problem
		t.options.Log.Info("Failed to watch the objects of a selector, retrying", "target", t.target.String(), "reason",
			problem.reason, "error", err.Error())
		return true
	})
}

// recovered records that a request has succeeded, and reports whether that ended a problem. The caller holds the lock.
func (t *watch) recovered(request sharedwatch.Request) bool {
	t.markRequested()
	if request < t.failure.request {
		return false
	}
	had := t.failure.problem
	t.failure = failure{}
	if !had.none() && had != notListed(t.target) {
		t.options.Log.Info("Watch of the objects of a selector recovered", "target", t.target.String())
	}
	return !had.none()
}

// markRequested ends the wait for the first request, and reports whether it is the first one. The caller holds the
// lock.
func (t *watch) markRequested() bool {
	select {
	case <-t.done:
		return false
	default:
		close(t.done)
		return true
	}
}
