package queue

import "time"

// lock locks the Queue for a call, activates the keys whose time has come, and hands active keys to waiting calls of
// Pop.
func (q *Queue[K, E]) lock() {
	q.mu.Lock()
	q.timing.update()
	for len(q.waiting) > 0 && time.Duration(q.waiting[0].major) <= q.timing.now {
		e := q.waiting[0].entry
		q.removeFromHeap(e)
		q.activate(e)
	}
	q.serve()
}

// unlock hands active keys to waiting calls of Pop and unlocks the Queue.
func (q *Queue[K, E]) unlock() {
	q.serve()
	q.mu.Unlock()
}

// removeFromHeap removes an entry from its heap and lists. An entry in flight is in none.
func (q *Queue[K, E]) removeFromHeap(e *entry[K]) {
	switch e.state {
	case active:
		q.active.remove(e)
	case backoff:
		q.waiting.remove(e)
	case unschedulable:
		q.waiting.remove(e)
		q.parked.remove(e)
	case inFlight:
	}
}

// activate makes an entry active. The entry must not be in a heap.
func (q *Queue[K, E]) activate(e *entry[K]) {
	e.state = active
	q.active.push(e, -int64(e.priority), int64(e.since))
}

// retry makes an entry wait for the rest of its backoff. The entry must not be in a heap.
func (q *Queue[K, E]) retry(e *entry[K]) {
	if e.retry <= q.timing.now {
		q.activate(e)
		return
	}
	e.state = backoff
	q.waiting.push(e, int64(e.retry), 0)
}

// park makes an entry unschedulable. The entry must not be in a heap.
func (q *Queue[K, E]) park(e *entry[K], rejectedBy []string) {
	e.state = unschedulable
	q.parked.add(e, rejectedBy)
	q.waiting.push(e, int64(max(after(q.timing.now, q.options.MaxUnschedulable), e.retry)), 0)
}

// startFlight moves the first active entry to in flight.
func (q *Queue[K, E]) startFlight() Item[K] {
	e := q.active[0].entry
	q.removeFromHeap(e)
	e.state = inFlight
	e.flight = q.log.begin()
	q.flying++
	return Item[K]{Key: e.key, Priority: e.priority, Failures: int(e.failures)}
}

// decide releases the events that are stored for a key in flight. It is called before Add, Remove or the end of the
// flight takes effect, and does nothing if Add or Remove has already released them.
func (q *Queue[K, E]) decide(e *entry[K]) {
	if !e.pending.decided() {
		q.log.end(e.flight)
	}
}

// endFlight ends a flight. Overtaken means that an event during the flight may help the key.
func (q *Queue[K, E]) endFlight(e *entry[K], outcome Outcome, overtaken bool) {
	q.flying--
	q.decide(e)
	calls := e.pending
	e.pending = pending{}
	e.since = q.timing.now
	switch {
	case q.down || calls.remove || outcome.resultKind == scheduled && !calls.add:
		delete(q.entries, e.key)
	case calls.add:
		e.failures = 0
		q.activate(e)
	default:
		if outcome.succeeded {
			e.failures = 0
		} else {
			e.failures++
		}
		e.retry = after(q.timing.now, q.options.backoff(max(e.failures, 1)))
		if outcome.resultKind == rejected && !overtaken {
			q.park(e, outcome.rejectedBy)
		} else {
			q.retry(e)
		}
	}
}
