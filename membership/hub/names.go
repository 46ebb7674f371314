package hub

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// names knows which member a namespace is of: the name of one does not tell that of the other where it was
// too long. The zero value is ready.
type names struct {
	mu sync.RWMutex
	of map[string]string
}

func (n *names) know(namespace, member string) {
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

// lateQueue adds members to the queue of a controller that is made after whoever adds to it. What is added before
// the controller runs need not be kept: it looks at every member when it starts.
type lateQueue struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Start makes a lateQueue a source of the controller.
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
