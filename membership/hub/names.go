package hub

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// names maps namespaces to members: the name of a namespace does not determine that of its member if the name was
// shortened. The zero value is ready for use.
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

// lateQueue adds members to the queue of a controller that is created later. Members that are added before the
// controller runs are dropped, because the controller reconciles every member when it starts.
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

// asked stores the last result of the gates for each member, so that not every reconcile asks the gates. The zero value
// is ready for use.
type asked struct {
	mu      sync.Mutex
	answers map[string]gateAnswer
}

type gateAnswer struct {
	said lifecycle.GatesSeen
	at   time.Time
	// Identify the question: another member of the name, or another spec, is another question.
	uid        types.UID
	generation int64
}

func (a *asked) note(cluster *v1alpha1.MemberCluster, said lifecycle.GatesSeen, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answers == nil {
		a.answers = map[string]gateAnswer{}
	}
	a.answers[cluster.Name] = gateAnswer{said: said, at: at, uid: cluster.UID, generation: cluster.Generation}
}

// said is the stored result and its age; nil: none, or the clock was set back.
func (a *asked) said(cluster *v1alpha1.MemberCluster, now time.Time) *lifecycle.GatesSeen {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, ok := a.answers[cluster.Name]
	if !ok || answer.uid != cluster.UID || answer.generation != cluster.Generation || now.Before(answer.at) {
		return nil
	}
	said := answer.said
	said.Age = max(now.Sub(answer.at), time.Nanosecond)
	return &said
}

func (a *asked) forget(member string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.answers, member)
}

// butStatus ignores changes of the status alone, which the controller itself writes. Otherwise each failure with a new
// message would be retried at once, without the rate limit.
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

// deletions records when the hub first observed that a MemberCluster is being deleted. It may be used concurrently.
type deletions struct {
	mu    sync.Mutex
	since map[string]deletionSeen // by the member's name
}

type deletionSeen struct {
	uid types.UID
	at  time.Time
}

// first returns when the deletion of a MemberCluster was first observed, which is now unless it was before.
func (d *deletions) first(cluster *v1alpha1.MemberCluster, now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if seen, known := d.since[cluster.Name]; known && seen.uid == cluster.UID {
		return seen.at
	}
	if d.since == nil {
		d.since = map[string]deletionSeen{}
	}
	d.since[cluster.Name] = deletionSeen{cluster.UID, now}
	return now
}

func (d *deletions) forget(member string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.since, member)
}
