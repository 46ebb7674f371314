package queue

import (
	"context"
	"slices"
	"time"
)

// wait waits until the Queue hands a key to this call of Pop. It is called with the lock held, and returns without the
// lock.
//
// A key that becomes active is handed to the call that has waited longest. All waiting calls share the timer for keys
// that become active after a delay: the call that receives the tick takes the lock and hands out the keys.
func (q *Queue[K, E]) wait(ctx context.Context) (Item[K], error) {
	tick := q.timing.ticks()
	w := make(chan Item[K], 1)
	q.waiters = append(q.waiters, w)
	q.unlock()
	for {
		select {
		case item, ok := <-w:
			return itemOrClosed(item, ok)
		case <-tick:
			q.lock()
			q.timing.alarm = never
			q.unlock()
		case <-ctx.Done():
			if q.removeWaiter(w) {
				return Item[K]{}, ctx.Err()
			}
			item, ok := <-w // the key was handed over in the meantime
			return itemOrClosed(item, ok)
		}
	}
}

func itemOrClosed[T any](item T, ok bool) (T, error) {
	if !ok {
		return item, ErrShutDown
	}
	return item, nil
}

// removeWaiter removes a waiting call, and reports whether the call was still waiting.
func (q *Queue[K, E]) removeWaiter(w chan Item[K]) bool {
	q.lock()
	defer q.unlock()
	i := slices.Index(q.waiters, w)
	if i < 0 {
		return false
	}
	q.waiters = slices.Delete(q.waiters, i, i+1)
	return true
}

// serve hands active keys to waiting calls and sets the timer for the next key that becomes active after a delay.
func (q *Queue[K, E]) serve() {
	if n := min(len(q.waiters), len(q.active)); n > 0 {
		for _, w := range q.waiters[:n] {
			w <- q.startFlight()
		}
		q.waiters = slices.Delete(q.waiters, 0, n)
	}

	alarm := never
	if len(q.waiters) > 0 && len(q.waiting) > 0 {
		alarm = time.Duration(q.waiting[0].major)
	}
	q.timing.setAlarm(alarm)
}
