package queue

// remembered is how many events a Queue remembers for keys in flight.
const remembered = 1024

// log remembers events for as long as a key is in flight that may not know of them: each once, and no more than
// its limit. The events are numbered.
type log[E any] struct {
	limit  int
	events []noted[E]
	first  uint64 // the number of the first in events
	fresh  int    // flights that began after the last
}

type noted[E any] struct {
	event   E
	flights int // that began just before it, and are not over
}

// begin takes in that a flight begins, and returns the number of the first event that it will not know of.
func (l *log[E]) begin() uint64 {
	l.fresh++
	return l.next()
}

// end takes in that a flight is over.
func (l *log[E]) end(flight uint64) {
	switch {
	case flight < l.first: // what it waited for is forgotten already
	case flight == l.next():
		l.fresh--
	default:
		l.events[flight-l.first].flights--
		l.trim()
	}
}

// note takes in an event, which is not kept if there is no flight. The oldest is forgotten if there are too many.
func (l *log[E]) note(event E) {
	l.events = append(l.events, noted[E]{event, l.fresh})
	l.fresh = 0
	if len(l.events) > l.limit {
		l.forget(1)
	}
	l.trim()
}

// since returns the events that a flight does not know of; false if they are no longer known.
func (l *log[E]) since(flight uint64) ([]E, bool) {
	if flight < l.first {
		return nil, false
	}
	var events []E
	for _, n := range l.events[flight-l.first:] {
		events = append(events, n.event)
	}
	return events, true
}

// next returns the number of the next event.
func (l *log[E]) next() uint64 { return l.first + uint64(len(l.events)) }

// trim forgets the events that every flight knows of.
func (l *log[E]) trim() {
	n := 0
	for n < len(l.events) && l.events[n].flights == 0 {
		n++
	}
	l.forget(n)
}

func (l *log[E]) forget(n int) {
	clear(l.events[:n]) // for the garbage collector: an event may hold much
	l.events = l.events[n:]
	l.first += uint64(n)
}
