package queue

import (
	"context"
	"slices"
	"time"
)

// wait is the part of Pop for when nothing is active. It is called under the lock and returns without.
//
// A key that becomes active is handed to the first who waits. The timer for those that become active by themselves is
// shared by all waiting calls: the call that receives the tick takes the lock, and serves the first one.
func (q *Queue[K, E]) wait(ctx context.Context) (Item[K], error) {
	tick := q.timing.ticks()
	w := make(chan Item[K], 1)
	q.waiters = append(q.waiters, w)
	q.unlock()
	for {
		select {
		case item, ok := <-w:
			return handed(item, ok)
		case <-tick:
			q.lock()
			q.timing.alarm = never
			q.unlock()
		case <-ctx.Done():
			if q.leave(w) {
				return Item[K]{}, ctx.Err()
			}
			item, ok := <-w // it was served in the meantime
			return handed(item, ok)
		}
	}
}

func handed[T any](item T, ok bool) (T, error) {
	if !ok {
		return item, ErrShutDown
	}
	return item, nil
}

// leave takes out one who waits, and reports whether he still did.
func (q *Queue[K, E]) leave(w chan Item[K]) bool {
	q.lock()
	defer q.unlock()
	i := slices.Index(q.waiters, w)
	if i < 0 {
		return false
	}
	q.waiters = slices.Delete(q.waiters, i, i+1)
	return true
}

// serve hands out what is active to those who wait, and sets the timer for what will be.
func (q *Queue[K, E]) serve() {
	if n := min(len(q.waiters), len(q.active)); n > 0 {
		for _, w := range q.waiters[:n] {
			w <- q.launch()
		}
		q.waiters = slices.Delete(q.waiters, 0, n)
	}

	alarm := never
	if len(q.waiters) > 0 && len(q.waiting) > 0 {
		alarm = time.Duration(q.waiting[0].major)
	}
	q.timing.setAlarm(alarm)
}
