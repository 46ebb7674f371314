package queue

import (
	"maps"
	"slices"
)

// batch is the number of keys that are moved while the lock is held once.
const batch = 256

// note logs an event for the keys in flight. It returns the plugins whose hints must be called, and the exclusive upper
// bound of the tickets of the keys that are unschedulable now. A key that becomes unschedulable later was in flight, or
// was popped after the event.
func (q *Queue[K, E]) note(event E) (plugins []string, end uint64) {
	q.lock()
	defer q.unlock()
	if q.down {
		return nil, 0
	}
	q.log.note(event)
	return slices.Sorted(maps.Keys(q.parked.lists)), q.parked.ticket + 1
}

// activateRejected activates the keys with a ticket below end that a plugin rejected and that an event helps. It works
// in batches. Hints are called without the lock, and other callers wait for at most one batch.
func (q *Queue[K, E]) activateRejected(plugin string, end uint64, helps func(K) bool) {
	var first uint64
	some := make([]place[K], 0, batch)
	for {
		q.lock()
		for _, p := range some {
			if p.entry.ticket == p.ticket { // it was not moved in the meantime
				q.removeFromHeap(p.entry)
				q.retry(p.entry)
			}
		}
		some = some[:0]
		if l := q.parked.lists[plugin]; l != nil && !q.down {
			some = l.next(some, first, end)
		}
		q.unlock()
		if len(some) == 0 {
			return
		}
		first = some[len(some)-1].ticket + 1
		some = slices.DeleteFunc(some, func(p place[K]) bool { return !q.callHint(plugin, helps, p.key) })
	}
}

// overtaken reports whether an event since the key was popped may help the key. It is called with the lock held and
// releases the lock while it calls hints. Further events may occur meanwhile, so it repeats the check. If the total
// number of events exceeds the limit of the log, or the log has dropped an event, it returns true.
func (q *Queue[K, E]) overtaken(e *entry[K], rejectedBy []string) bool {
	for asked := 0; ; {
		if q.down || e.pending.decided() {
			return false
		}
		events, known := q.log.since(e.flight)
		asked += len(events)
		switch {
		case !known || asked > q.log.limit:
			return true
		case len(events) == 0:
			return false
		}
		q.log.end(e.flight)
		e.flight = q.log.begin()
		if q.anyEventHelps(events, e.key, rejectedBy) {
			return true
		}
	}
}

// anyEventHelps calls hints for a key without the lock. The lock is held again when it returns or panics.
func (q *Queue[K, E]) anyEventHelps(events []E, key K, rejectedBy []string) bool {
	q.unlock()
	defer q.lock()
	for _, event := range events {
		for _, plugin := range rejectedBy {
			if helps := q.ask(plugin, event); helps != nil && q.callHint(plugin, helps, key) {
				return true
			}
		}
	}
	return false
}

// ask calls the hint of a plugin for an event. It returns nil if the event helps none of the plugin's keys.
func (q *Queue[K, E]) ask(plugin string, event E) (helps func(K) bool) {
	if q.options.Hint == nil || plugin == "" {
		return all[K]
	}
	defer func() {
		if reason := recover(); reason != nil {
			helps = all[K]
			q.options.OnPanic(plugin, reason)
		}
	}()
	return q.options.Hint(plugin, event)
}

func (q *Queue[K, E]) callHint(plugin string, helps func(K) bool, key K) (yes bool) {
	defer func() {
		if reason := recover(); reason != nil {
			yes = true
			q.options.OnPanic(plugin, reason)
		}
	}()
	return helps(key)
}

func all[K any](K) bool { return true }
