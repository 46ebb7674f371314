package scheduler

import (
	"iter"
	"math/bits"
	"slices"
)

// Set is a set of clusters of one [Snapshot], with one bit per slot. The zero Set is empty and has no capacity; all
// other sets have the size of their snapshot. Copies share their bits.
//
// A plugin may change a set from which it must remove clusters. Sets that a snapshot returns are shared and must not be
// changed.
type Set struct{ words []uint64 }

const wordBits = 64

// NewSet returns an empty set with capacity for the slots below n.
func NewSet(n int) Set { return Set{make([]uint64, (n+wordBits-1)/wordBits)} }

// Has reports whether the slot is in the set.
func (s Set) Has(slot int) bool {
	i := slot / wordBits
	return i < len(s.words) && s.words[i]&(1<<(slot%wordBits)) != 0
}

// Add adds a slot.
func (s Set) Add(slot int) { s.words[slot/wordBits] |= 1 << (slot % wordBits) }

// Remove removes a slot.
func (s Set) Remove(slot int) { s.words[slot/wordBits] &^= 1 << (slot % wordBits) }

// Len returns the number of slots in the set.
func (s Set) Len() int {
	n := 0
	for _, word := range s.words {
		n += bits.OnesCount64(word)
	}
	return n
}

// Empty reports whether the set is empty.
func (s Set) Empty() bool {
	return !slices.ContainsFunc(s.words, func(word uint64) bool { return word != 0 })
}

// Clone returns a copy of the set that can be changed.
func (s Set) Clone() Set { return Set{slices.Clone(s.words)} }

// Clear removes all slots.
func (s Set) Clear() { clear(s.words) }

// Retain removes all slots that are not in the other set.
func (s Set) Retain(other Set) {
	n := min(len(s.words), len(other.words))
	for i := range n {
		s.words[i] &= other.words[i]
	}
	clear(s.words[n:])
}

// same reports whether two sets share their bits.
func same(a, b Set) bool {
	return len(a.words) == len(b.words) && len(a.words) > 0 && &a.words[0] == &b.words[0]
}

// within returns the slots of a shared set that are also in another set. It copies the shared set only if it must
// remove slots.
func within(shared, other Set) Set {
	for i, word := range shared.words {
		if i >= len(other.words) || word&^other.words[i] != 0 {
			set := shared.Clone()
			set.Retain(other)
			return set
		}
	}
	return shared
}

// Discard removes all slots that are in the other set.
func (s Set) Discard(other Set) {
	for i := range min(len(s.words), len(other.words)) {
		s.words[i] &^= other.words[i]
	}
}

// Insert adds all slots of the other set, which must be of the same snapshot.
func (s Set) Insert(other Set) {
	for i := range min(len(s.words), len(other.words)) {
		s.words[i] |= other.words[i]
	}
}

// All iterates over the slots in ascending order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s.words {
			for ; word != 0; word &= word - 1 {
				if !yield(i*wordBits + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
