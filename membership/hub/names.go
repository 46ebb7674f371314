package hub

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/internal/assume"
)

// memory is the state of all members that is kept between reconciles. All of it can be rebuilt from the API. The zero
// value is ready for use.
type memory struct {
	names   names
	phases  phases
	orphans orphans
	written assume.Versions
}

// forget removes the state of a member that no longer exists.
func (m *memory) forget(member, namespace string) {
	m.names.forget(namespace)
	m.phases.forget(member)
	m.orphans.set(member, nil)
	m.written.Forget(types.NamespacedName{Name: member})
}

// names maps namespaces to members: the name of a namespace does not determine the name of its member if it was
// shortened. The zero value is ready for use.
type names struct {
	mu sync.RWMutex
	of map[string]string
}

func (n *names) set(namespace, member string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[string]string{}
	}
	n.of[namespace] = member
}

func (n *names) forget(namespace string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.of, namespace)
}

func (n *names) member(namespace string) (string, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	member, ok := n.of[namespace]
	return member, ok
}

// lateQueue adds members to the queue of a controller that is created later. Members that are added before the
// controller starts are dropped, because the controller reconciles every member when it starts.
type lateQueue struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Start implements source.Source.
func (q *lateQueue) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = queue
	return nil
}

func (q *lateQueue) add(members []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue == nil {
		return
	}
	for _, member := range members {
		q.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: member}})
	}
}

// addKey adds an object to the queue.
func (q *lateQueue) addKey(key types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue != nil {
		q.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

// butStatus ignores changes of the status alone, which the controller itself writes. Otherwise each failure with a new
// message would cause an immediate reconcile, without the rate limit.
var butStatus = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld, e.ObjectNew
	return before.GetResourceVersion() == after.GetResourceVersion() || // resync
		before.GetUID() != after.GetUID() ||
		before.GetGeneration() != after.GetGeneration() ||
		!before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) ||
		!slices.Equal(before.GetFinalizers(), after.GetFinalizers()) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}}
