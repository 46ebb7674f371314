package queue

// remembered is the maximum number of events that a Queue stores for keys in flight.
const remembered = 1024

// log stores events while a key is in flight whose snapshot may lack them. It stores each event once, and at most limit
// events. The events are numbered.
type log[E any] struct {
	limit  int
	events []noted[E]
	first  uint64 // the number of events[0]
	fresh  int    // flights that began after the last event
}

type noted[E any] struct {
	event   E
	flights int // that began after the previous event and have not ended
}

// begin records the start of a flight, and returns the number of the first event that its snapshot may lack.
func (l *log[E]) begin() uint64 {
	l.fresh++
	return l.next()
}

// end records the end of a flight.
func (l *log[E]) end(flight uint64) {
	switch {
	case flight < l.first: // its events were dropped already
	case flight == l.next():
		l.fresh--
	default:
		l.events[flight-l.first].flights--
		l.trim()
	}
}

// note appends an event. It keeps the event only if there is a flight, and drops the oldest event above the limit.
func (l *log[E]) note(event E) {
	l.events = append(l.events, noted[E]{event, l.fresh})
	l.fresh = 0
	if len(l.events) > l.limit {
		l.forget(1)
	}
	l.trim()
}

// since returns the events that a flight may lack. It returns false if some of them were dropped.
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

// trim drops the events that no flight needs.
func (l *log[E]) trim() {
	n := 0
	for n < len(l.events) && l.events[n].flights == 0 {
		n++
	}
	l.forget(n)
}

func (l *log[E]) forget(n int) {
	clear(l.events[:n]) // for the garbage collector: an event may reference large objects
	l.events = l.events[n:]
	l.first += uint64(n)
}
