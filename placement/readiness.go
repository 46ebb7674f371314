package placement

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Readiness tells whether what a placement has put on a cluster does its work. It is asked often and by many at once, so it should not ask
// others. One that does not tell of changes, too ([ReadinessNotifier]), is asked every two seconds while a placement waits for it,
// and not otherwise.
type Readiness interface {
	// Ready is asked about clusters that the placement is on, and that are healthy. It is asked as soon as the controller has started, and
	// a no is no reason to wait: a cluster that is not ready may be left. So it must not say no because it does not know yet.
	Ready(placement types.NamespacedName, cluster string) bool
}

// ReadyFunc is a [Readiness] that is a function.
type ReadyFunc func(placement types.NamespacedName, cluster string) bool

// Ready calls the function.
func (f ReadyFunc) Ready(placement types.NamespacedName, cluster string) bool {
	return f(placement, cluster)
}

// ReadinessNotifier is a [Readiness] that reports changes, so that it is not polled.
type ReadinessNotifier interface {
	Readiness
	// Notify has a function called with each placement that Ready may say something else of than before, from now on and until stop
	// is called. Ready says it before. The function may be called by many at once, returns at once, and costs next to nothing for a
	// placement that waits for nothing.
	//
	// It returns once Ready knows what there is: nothing is decided before. An error, also that ctx has ended, ends the controller.
	Notify(ctx context.Context, changed func(placement types.NamespacedName)) (stop func(), err error)
}

// always is the Readiness if no other one is set. It never changes.
type always struct{}

func (always) Ready(types.NamespacedName, string) bool { return true }
func (always) Notify(context.Context, func(types.NamespacedName)) (func(), error) {
	return func() {}, nil
}

// lookAgainWhileWaiting is how often a [Readiness] is asked that does not tell of changes.
const readinessPollInterval = 2 * time.Second

// notify has those placements decided again that wait for a change of readiness. Without a [ReadinessNotifier] it does nothing.
func (d *decisionController) notify(ctx context.Context) (stop func(), _ error) {
	notifier, tells := d.Ready.(ReadinessNotifier)
	if d.polls = !tells; d.polls {
		return func() {}, nil
	}
	stop, err := notifier.Notify(ctx, func(placement types.NamespacedName) {
		d.mu.Lock()
		p := d.states[placement.String()]
		awaits := p != nil && p.awaits
		d.mu.Unlock()
		if awaits {
			d.queue.Add(placement.String(), 0)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("be told of readiness: %w", err)
	}
	return stop, nil
}

// available reports whether a cluster that the placement is on is healthy and does its work.
func (d *decisionController) available(a *attempt, name string) bool {
	if ready, known := a.ready[name]; known {
		return ready
	}
	if len(a.ready) == 0 { // from now on a change is not to be missed
		d.mu.Lock()
		a.p.awaits = true
		d.mu.Unlock()
	}
	cluster := a.inFleet(name)
	ready := cluster != nil && cluster.Joined && cluster.Healthy &&
		d.Ready.Ready(types.NamespacedName{Namespace: a.placement.Namespace, Name: a.placement.Name}, name)
	a.ready[name] = ready
	return ready
}

// await notes that a step waits for clusters to become ready, and when to look whether they are.
func (d *decisionController) await(a *attempt, s *step) {
	s.awaits = true
	on := namesOf(a.p.slices)
	for _, p := range s.all {
		switch {
		case !p.cluster.Healthy || p.reason != v1alpha1.ReasonScheduled:
		case !on[p.cluster.Name]:
			s.soon = true // it may be ready as soon as it is published
		case d.polls && !d.available(a, p.cluster.Name):
			s.again = earliest(s.again, a.request.Now.Add(readinessPollInterval))
		}
	}
}
