package queue

import (
	"cmp"
	"slices"
)

// list contains the keys that one plugin rejected, in ascending order of their tickets.
//
// An iteration continues from a ticket, so it needs no copy, and keys may be added or removed between two steps. The
// place of a removed key is found by binary search and left empty. The list is compacted when more than half of the
// places are empty.
type list[K cmp.Ordered] struct {
	places []place[K]
	empty  int
}

type place[K cmp.Ordered] struct {
	ticket    uint64
	*entry[K] // nil: empty
}

// add appends an entry, whose ticket must be larger than those of all entries in the list.
func (l *list[K]) add(e *entry[K]) { l.places = append(l.places, place[K]{e.ticket, e}) }

// remove removes an entry, which must be in the list.
func (l *list[K]) remove(e *entry[K]) {
	l.places[l.find(e.ticket)].entry = nil
	l.empty++
	if 2*l.empty > len(l.places) {
		l.places = slices.DeleteFunc(l.places, func(p place[K]) bool { return p.entry == nil })
		l.empty = 0
	}
}

// next appends the entries with first <= ticket < end to found, up to its capacity.
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

// find returns the index of a ticket, or the index at which it would be inserted.
func (l *list[K]) find(ticket uint64) int {
	i, _ := slices.BinarySearchFunc(l.places, ticket, func(p place[K], t uint64) int { return cmp.Compare(p.ticket, t) })
	return i
}
