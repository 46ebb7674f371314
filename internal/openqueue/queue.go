// Package openqueue provides a queue of a controller to which any code can add requests, for changes that no watch
// reports.
package openqueue

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Queue is the queue of a controller to which any code can add. Its methods may be called concurrently.
type Queue[T comparable] struct {
	mu    sync.Mutex
	begun workqueue.TypedRateLimitingInterface[T]
	early []func() // calls of Add before the controller started
}

// Source creates the queue when the controller starts.
func (q *Queue[T]) Source() source.TypedSource[T] {
	return source.TypedFunc[T](func(_ context.Context, begun workqueue.TypedRateLimitingInterface[T]) error {
		q.mu.Lock()
		q.begun = begun
		early := q.early
		q.early = nil
		q.mu.Unlock()
		for _, add := range early {
			add()
		}
		return nil
	})
}

// Add adds an item. An item that is already in the queue stays there once, with the earlier time and the higher
// priority.
func (q *Queue[T]) Add(item T, priority int, after time.Duration) {
	q.mu.Lock()
	begun := q.begun
	if begun == nil {
		q.early = append(q.early, func() { q.Add(item, priority, after) })
	}
	q.mu.Unlock()
	switch prioritized, is := begun.(priorityqueue.PriorityQueue[T]); {
	case begun == nil:
	case is:
		prioritized.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, item)
	default:
		begun.AddAfter(item, after)
	}
}
