package placement

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/internal/requeue"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Readiness reports whether the workloads of a placement are ready on a cluster. Its methods are called often and
// concurrently, so they should not make requests. Unless it is also a [ReadinessNotifier], it is called every two
// seconds while a placement waits for it, and not otherwise.
type Readiness interface {
	// Ready is called for healthy clusters of a placement, also directly after the start of the controller. If it returns
	// false, the placement can leave the cluster, so Ready must not return false because the state is not known yet.
	Ready(placement types.NamespacedName, cluster string) bool
}

// ReadyFunc is a function that implements [Readiness].
type ReadyFunc func(placement types.NamespacedName, cluster string) bool

// Ready calls the function.
func (f ReadyFunc) Ready(placement types.NamespacedName, cluster string) bool {
	return f(placement, cluster)
}

// ReadinessNotifier is a [Readiness] that reports changes, so that it is not polled.
type ReadinessNotifier interface {
	Readiness
	// Notify calls changed with each placement for which the result of Ready may have changed, until stop is called. Ready
	// must return the new result by then. The function changed can be called concurrently, returns immediately, and costs
	// little for a placement that does not wait.
	//
	// Notify returns when Ready has observed the existing state. The controller decides nothing before. An error,
	// including the end of ctx, ends the controller.
	Notify(ctx context.Context, changed func(placement types.NamespacedName)) (stop func(), err error)
}

// always is the default Readiness: every cluster is ready.
type always struct{}

func (always) Ready(types.NamespacedName, string) bool { return true }
func (always) Notify(context.Context, func(types.NamespacedName)) (func(), error) {
	return func() {}, nil
}

// readinessPollInterval is the interval in which a [Readiness] that does not report changes is called.
const readinessPollInterval = 2 * time.Second

// notify enqueues placements that wait for a change of readiness. Without a [ReadinessNotifier] it only records that
// readiness must be polled.
func (d *decisionController) notify(ctx context.Context) (stop func(), _ error) {
	notifier, notifies := d.Ready.(ReadinessNotifier)
	if d.running.polls = !notifies; d.running.polls {
		return func() {}, nil
	}
	stop, err := notifier.Notify(ctx, func(placement types.NamespacedName) {
		d.placements.mu.Lock()
		p := d.placements.states[placement.String()]
		awaits := p != nil && p.events.awaits
		d.placements.mu.Unlock()
		if awaits {
			d.queue.Add(placement.String(), 0)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("watch readiness: %w", err)
	}
	return stop, nil
}

// available reports whether a cluster of the placement is healthy and its workloads are ready.
func (d *decisionController) available(a *attempt, name string) bool {
	if ready, known := a.ready[name]; known {
		return ready
	}
	if len(a.ready) == 0 { // changes from now on enqueue the placement
		d.placements.mu.Lock()
		a.p.events.awaits = true
		d.placements.mu.Unlock()
	}
	cluster := a.inFleet(name)
	ready := cluster != nil && cluster.Joined && cluster.Healthy &&
		d.Ready.Ready(types.NamespacedName{Namespace: a.placement.Namespace, Name: a.placement.Name}, name)
	a.ready[name] = ready
	return ready
}

// await records that a step waits for clusters to become ready, and when to check again.
func (d *decisionController) await(a *attempt, s *step) {
	s.awaits = true
	on := namesOf(a.p.last.slices)
	for _, p := range s.all {
		switch {
		case !p.cluster.Healthy || p.reason != v1alpha1.ReasonScheduled:
		case !on[p.cluster.Name]:
			s.soon = true // the cluster may be ready as soon as it is published
		case d.running.polls && !d.available(a, p.cluster.Name):
			s.again = requeue.Earlier(s.again, a.request.Now.Add(readinessPollInterval))
		}
	}
}
