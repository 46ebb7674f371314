package queue

import "time"

// lock begins a call: what has become active by now is, and those who waited in Pop for it have it.
func (q *Queue[K, E]) lock() {
	q.mu.Lock()
	q.timing.update()
	for len(q.waiting) > 0 && time.Duration(q.waiting[0].major) <= q.timing.now {
		e := q.waiting[0].entry
		q.takeOut(e)
		q.activate(e)
	}
	q.serve()
}

// unlock ends a call: the waiting calls of Pop have received the active keys.
func (q *Queue[K, E]) unlock() {
	q.serve()
	q.mu.Unlock()
}

// takeOut takes an entry that is not in flight out of where it is.
func (q *Queue[K, E]) takeOut(e *entry[K]) {
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

// activate makes an entry active that is nowhere.
func (q *Queue[K, E]) activate(e *entry[K]) {
	e.state = active
	q.active.push(e, -int64(e.priority), int64(e.since))
}

// retry lets an entry that is nowhere wait for the rest of its backoff.
func (q *Queue[K, E]) retry(e *entry[K]) {
	if e.retry <= q.timing.now {
		q.activate(e)
		return
	}
	e.state = backoff
	q.waiting.push(e, int64(e.retry), 0)
}

// park lets an entry that is nowhere wait for an event.
func (q *Queue[K, E]) park(e *entry[K], rejectedBy []string) {
	e.state = unschedulable
	q.parked.add(e, rejectedBy)
	q.waiting.push(e, int64(max(after(q.timing.now, q.options.MaxUnschedulable), e.retry)), 0)
}

// launch takes the first of the active in flight.
func (q *Queue[K, E]) launch() Item[K] {
	e := q.active[0].entry
	q.takeOut(e)
	e.state = inFlight
	e.flight = q.log.begin()
	q.flying++
	return Item[K]{Key: e.key, Priority: e.priority, Failures: int(e.failures)}
}

// decide takes in that events no longer matter to a key in flight.
func (q *Queue[K, E]) decide(e *entry[K]) {
	if !e.pending.decided() {
		q.log.end(e.flight)
	}
}

// land ends a flight. It is overtaken if an event came meanwhile that may help the key.
func (q *Queue[K, E]) land(e *entry[K], outcome Outcome, overtaken bool) {
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
