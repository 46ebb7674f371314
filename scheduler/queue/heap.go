package queue

import "cmp"

// heap is a heap of entries in ascending order of two numbers, and then of their keys. An entry is in at most one heap,
// and stores its index.
//
// The numbers are in the slots and not in the entries, and each node has four children. With 100,000 entries, most of
// the time is spent waiting for memory, and both reduce cache misses.
type heap[K cmp.Ordered] []slot[K]

type slot[K cmp.Ordered] struct {
	major, minor int64
	*entry[K]
}

const children = 4

func (s *slot[K]) before(other *slot[K]) bool {
	switch {
	case s.major != other.major:
		return s.major < other.major
	case s.minor != other.minor:
		return s.minor < other.minor
	default:
		return s.key < other.key
	}
}

// push adds an entry, which must not be in a heap.
func (h *heap[K]) push(e *entry[K], major, minor int64) {
	*h = append(*h, slot[K]{major, minor, e})
	h.up(len(*h) - 1)
}

// remove removes an entry, which must be in this heap.
func (h *heap[K]) remove(e *entry[K]) {
	i, last := int(e.index), len(*h)-1
	moved := (*h)[last]
	(*h)[last] = slot[K]{}
	*h = (*h)[:last]
	if i != last {
		h.put(i, moved)
		h.down(h.up(i))
	}
}

// up moves slot i towards the root as far as necessary, and returns its new index.
func (h heap[K]) up(i int) int {
	moved := h[i]
	for i > 0 {
		parent := (i - 1) / children
		if !moved.before(&h[parent]) {
			break
		}
		h.put(i, h[parent])
		i = parent
	}
	h.put(i, moved)
	return i
}

// down moves slot i away from the root as far as necessary.
func (h heap[K]) down(i int) {
	moved := h[i]
	for {
		first := i*children + 1
		if first >= len(h) {
			break
		}
		least := first
		for c := first + 1; c < min(first+children, len(h)); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(&moved) {
			break
		}
		h.put(i, h[least])
		i = least
	}
	h.put(i, moved)
}

func (h heap[K]) put(i int, s slot[K]) {
	h[i] = s
	s.index = int32(i)
}
