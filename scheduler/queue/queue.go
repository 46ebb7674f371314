package queue

import (
	"cmp"
	"context"
	"errors"
	"sync"
)

// ErrShutDown is returned by [Queue.Pop] after the Queue was shut down.
var ErrShutDown = errors.New("the scheduling queue is shut down")

// Queue contains keys of type K that wait to be scheduled. Events of type E activate them. Create a Queue with [New].
// All methods may be called concurrently, also by hints.
type Queue[K cmp.Ordered, E any] struct {
	options Options[K, E]

	mu      sync.Mutex
	timing  timing
	entries map[K]*entry[K]
	active  heap[K] // by priority and time
	waiting heap[K] // backoff and unschedulable, by activation time
	parked  parked[K]
	flying  int // number of keys in flight
	log     log[E]
	waiters []chan Item[K] // the calls of Pop, in order of arrival; empty while a key is active
	down    bool
}

// New returns an empty Queue.
func New[K cmp.Ordered, E any](options Options[K, E]) *Queue[K, E] {
	options = options.withDefaults()
	return &Queue[K, E]{
		options: options, timing: newTiming(options.Clock),
		entries: map[K]*entry[K]{}, parked: parked[K]{lists: map[string]*list[K]{}}, log: log[E]{limit: remembered},
	}
}

// Add adds a key, or reports that it has changed. The key becomes active immediately, and its failures are reset. If
// the key is in flight, this happens after Done. The priority replaces the previous one. A waiting key keeps its
// position among the keys of the same priority.
func (q *Queue[K, E]) Add(key K, priority int32) {
	q.lock()
	defer q.unlock()
	if q.down {
		return
	}
	e := q.entries[key]
	switch {
	case e == nil:
		e = &entry[K]{key: key, since: q.timing.now}
		q.entries[key] = e
	case e.state == inFlight:
		q.decide(e)
		e.priority, e.pending.add, e.pending.remove = priority, true, false
		return
	default:
		q.removeFromHeap(e)
	}
	e.priority, e.failures = priority, 0
	q.activate(e)
}

// Remove removes a key. If the key is in flight, it is removed after Done, independently of the outcome.
func (q *Queue[K, E]) Remove(key K) {
	q.lock()
	defer q.unlock()
	e := q.entries[key]
	switch {
	case e == nil:
	case e.state == inFlight:
		q.decide(e)
		e.pending.add, e.pending.remove = false, true
	default:
		q.removeFromHeap(e)
		delete(q.entries, key)
	}
}

// Item is a key to be scheduled.
type Item[K cmp.Ordered] struct {
	Key      K
	Priority int32
	// Failures is the number of consecutive unsuccessful attempts before this one.
	Failures int
}

// Pop returns the next key. The key is in flight until [Queue.Done] is called. Pop blocks until a key is active. It
// returns [ErrShutDown] when the Queue is shut down, and ctx.Err() when the context ends.
func (q *Queue[K, E]) Pop(ctx context.Context) (Item[K], error) {
	if err := ctx.Err(); err != nil {
		return Item[K]{}, err
	}
	q.lock()
	if q.down {
		q.unlock()
		return Item[K]{}, ErrShutDown
	}
	if len(q.active) > 0 {
		item := q.startFlight()
		q.unlock()
		return item, nil
	}
	return q.wait(ctx) // wait releases the lock
}

// Done ends the flight of a key with the outcome of the attempt. If events occurred during the flight, it calls hints.
// Done does nothing for a key that is not in flight.
func (q *Queue[K, E]) Done(key K, outcome Outcome) {
	q.lock()
	defer q.unlock()
	e := q.entries[key]
	if e == nil || e.state != inFlight || e.pending.done {
		return
	}
	e.pending.done = true
	overtaken := true // the value if a hint ends the goroutine: the key must not stay in flight
	defer func() { q.endFlight(e, outcome, overtaken) }()
	overtaken = outcome.resultKind == rejected && q.overtaken(e, outcome.rejectedBy)
}

// Event reports an event. Unschedulable keys that the event may help become active, or wait for the rest of their
// backoff. Keys in flight that it may help do so after Done. Event returns after all hints have returned.
func (q *Queue[K, E]) Event(event E) {
	plugins, end := q.note(event)
	for _, plugin := range plugins {
		if helps := q.ask(plugin, event); helps != nil {
			q.activateRejected(plugin, end, helps)
		}
	}
}

// ShutDown makes every Pop return [ErrShutDown] immediately, even if the Queue contains keys. Afterwards, Add and Event
// do nothing, and Done only ends the flight. ShutDown may be called more than once.
func (q *Queue[K, E]) ShutDown() {
	q.lock()
	defer q.unlock()
	q.down = true
	for _, w := range q.waiters {
		close(w)
	}
	q.waiters = nil
}

// Stats are the numbers of keys by state.
type Stats struct{ Active, Backoff, Unschedulable, InFlight int }

// Stats returns the current number of keys in each state.
func (q *Queue[K, E]) Stats() Stats {
	q.lock()
	defer q.unlock()
	return Stats{
		Active: len(q.active), Backoff: len(q.waiting) - q.parked.count, Unschedulable: q.parked.count, InFlight: q.flying,
	}
}
