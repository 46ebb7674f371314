package queue

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ErrShutDown is what [Queue.Pop] returns once the Queue is shut down.
var ErrShutDown = errors.New("the scheduling queue is shut down")

// Queue holds keys of type K that wait to be scheduled, and moves them by events of type E. Make one with [New]. All
// methods may be called by many at once, also from hints.
type Queue[K cmp.Ordered, E any] struct {
	options Options[K, E]
	epoch   time.Time

	mu      sync.Mutex
	now     time.Duration // when mu was locked
	entries map[K]*entry[K]
	active  heap[K] // by priority and time
	waiting heap[K] // backoff and unschedulable, by when they become active
	lists   map[string]*list[K]
	ticket  uint64 // the last that was given out
	parked  int    // unschedulable
	flying  int    // in flight
	log     log[E]

	waiters []chan Item[K] // those in Pop, the first first; never while a key is active
	timer   clock.Timer    // nil: no call has waited yet
	alarm   time.Duration  // when the timer fires; never: it is stopped
	down    bool
}

// New returns an empty Queue.
func New[K cmp.Ordered, E any](options Options[K, E]) *Queue[K, E] {
	options = options.withDefaults()
	return &Queue[K, E]{
		options: options, epoch: options.Clock.Now(),
		entries: map[K]*entry[K]{}, lists: map[string]*list[K]{}, log: log[E]{limit: remembered}, alarm: never,
	}
}

// Add takes in that a key is new, or is not what it was: it becomes active at once, wherever it is, and its failures so
// far no longer count. If it is in flight, all this happens when it is given back. The priority replaces the
// former one, higher or lower. A key that waits already keeps its place among those of the same priority.
func (q *Queue[K, E]) Add(key K, priority int32) {
	q.lock()
	defer q.unlock()
	if q.down {
		return
	}
	e := q.entries[key]
	switch {
	case e == nil:
		e = &entry[K]{key: key, since: q.now}
		q.entries[key] = e
	case e.state == inFlight:
		q.decide(e)
		e.priority, e.again, e.gone = priority, true, false
		return
	default:
		q.takeOut(e)
	}
	e.priority, e.failures = priority, 0
	q.activate(e)
}

// Remove forgets a key. If it is in flight, it is forgotten when it is given back, whatever the outcome.
func (q *Queue[K, E]) Remove(key K) {
	q.lock()
	defer q.unlock()
	e := q.entries[key]
	switch {
	case e == nil:
	case e.state == inFlight:
		q.decide(e)
		e.again, e.gone = false, true
	default:
		q.takeOut(e)
		delete(q.entries, key)
	}
}

// Item is a key to decide on.
type Item[K cmp.Ordered] struct {
	Key      K
	Priority int32
	// Failures is how many attempts in a row did not succeed before this one.
	Failures int
}

// Pop returns the next key, which is in flight from then on until [Queue.Done]. It waits for one to become active if it
// has to. It returns [ErrShutDown] as soon as the Queue is shut down, or ctx.Err() as soon as that is not nil.
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
		item := q.launch()
		q.unlock()
		return item, nil
	}
	return q.wait(ctx) // which unlocks
}

// Done gives back a key that was popped: see [Outcome] for what becomes of it. It asks hints if events came meanwhile.
// A key that is not in flight is left alone.
func (q *Queue[K, E]) Done(key K, outcome Outcome) {
	q.lock()
	defer q.unlock()
	e := q.entries[key]
	if e == nil || e.state != inFlight || e.landing {
		return
	}
	e.landing = true
	overtaken := true // also if a hint ends the goroutine: the key must not stay in flight for that
	defer func() { q.land(e, outcome, overtaken) }()
	overtaken = outcome.resultKind == rejected && q.overtaken(e, outcome.rejectedBy)
}

// Event takes in that something has happened, and moves on the unschedulable keys that it may help: they become active,
// or wait for the rest of their backoff. Those in flight are moved on when they are given back. When it returns, all
// hints have been asked.
func (q *Queue[K, E]) Event(event E) {
	plugins, end := q.note(event)
	for _, plugin := range plugins {
		if helps := q.ask(plugin, event); helps != nil {
			q.moveOn(plugin, end, helps)
		}
	}
}

// ShutDown makes every Pop return [ErrShutDown] at once, whatever is in the Queue; Add and Event do nothing from then
// on, and Done only ends the flight. It may be called more than once.
func (q *Queue[K, E]) ShutDown() {
	q.lock()
	defer q.unlock()
	q.down = true
	for _, w := range q.waiters {
		close(w)
	}
	q.waiters = nil
}

// Stats are how many keys are where.
type Stats struct{ Active, Backoff, Unschedulable, InFlight int }

// Stats returns the present counts.
func (q *Queue[K, E]) Stats() Stats {
	q.lock()
	defer q.unlock()
	return Stats{
		Active: len(q.active), Backoff: len(q.waiting) - q.parked, Unschedulable: q.parked, InFlight: q.flying,
	}
}
