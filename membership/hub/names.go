package hub

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/membership/v1alpha1"
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

// written knows which version of each MemberCluster this process wrote last, so that it does not decide on what a cache
// shows that has not seen it yet. The zero value is ready.
type written struct {
	mu      sync.Mutex
	version map[string]string
}

func (w *written) note(cluster *v1alpha1.MemberCluster) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.version == nil {
		w.version = map[string]string{}
	}
	w.version[cluster.Name] = cluster.ResourceVersion
}

// newer reports whether what was written is newer than what a cache shows.
func (w *written) newer(shown *v1alpha1.MemberCluster) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	order, err := resourceversion.CompareResourceVersion(w.version[shown.Name], shown.ResourceVersion)
	if err != nil || order <= 0 {
		delete(w.version, shown.Name)
		return false
	}
	return true
}

func (w *written) forget(member string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.version, member)
}
