package queue

import (
	"cmp"
	"slices"
)

// list holds the keys that one plugin rejected, in the order of their tickets, which is that of their coming.
//
// A walk through it goes on from a ticket, so it needs no copy, and what comes and goes between two steps does not
// disturb it. What goes leaves its place empty; it is found by binary search. When most places are empty, they are
// closed up.
type list[K cmp.Ordered] struct {
	places []place[K]
	empty  int
}

type place[K cmp.Ordered] struct {
	ticket    uint64
	*entry[K] // nil: empty
}

// add puts an entry in, whose ticket is larger than those of all before it.
func (l *list[K]) add(e *entry[K]) { l.places = append(l.places, place[K]{e.ticket, e}) }

// remove takes an entry out that is in it.
func (l *list[K]) remove(e *entry[K]) {
	l.places[l.find(e.ticket)].entry = nil
	l.empty++
	if 2*l.empty > len(l.places) {
		l.places = slices.DeleteFunc(l.places, func(p place[K]) bool { return p.entry == nil })
		l.empty = 0
	}
}

// next appends to found, as far as it has room, those with a ticket from first up to below end.
func (l *list[K]) next(found []place[K], first, end uint64) []place[K] {
	for _, p := range l.places[l.find(first):] {
		if p.ticket >= end || len(found) == cap(found) {
			break
		}
		if p.entry != nil {
			found = append(found, p)
		}
	}
	return found
}

// find returns where the ticket is, or would be.
func (l *list[K]) find(ticket uint64) int {
	i, _ := slices.BinarySearchFunc(l.places, ticket, func(p place[K], t uint64) int { return cmp.Compare(p.ticket, t) })
	return i
}
