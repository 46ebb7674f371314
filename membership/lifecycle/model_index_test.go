package lifecycle

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"reflect"
	"testing"
)

// index numbers values from 0, in the order of their first occurrence. Misses of the processor's caches dominate the
// time of a walk. Therefore a slot is one word, which excludes almost all other values without reading them, and values
// never move, in contrast to those of a map or of a slice that grows.
type index[V comparable] struct {
	seed   maphash.Seed
	slots  []uint64 // upper half: the hash; lower half: the number plus 1; 0: the slot is free
	chunks [][]V
	count  int32
	loaded uint64 // written by load, so that the compiler does not remove its reads
}

const chunkBits = 12

func newIndex[V comparable]() *index[V] {
	return &index[V]{seed: maphash.MakeSeed(), slots: make([]uint64, 1<<10)}
}

// at returns the value with a number. It must not be changed.
func (x *index[V]) at(n int32) *V { return &x.chunks[n>>chunkBits][n&(1<<chunkBits-1)] }

// number returns the number of a value, and whether the value is a new one.
func (x *index[V]) number(v *V) (n int32, added bool) { return x.numberHashed(v, x.hash(v)) }

func (x *index[V]) hash(v *V) uint32 { return uint32(maphash.Comparable(x.seed, *v)) }

// load reads the slots of the values that are numbered next. The reads do not depend on each other, so that the
// processor waits for all of them at once.
func (x *index[V]) load(hashes []uint32) {
	mask := uint32(len(x.slots) - 1)
	for _, hash := range hashes {
		x.loaded ^= x.slots[hash&mask]
	}
}

func (x *index[V]) numberHashed(v *V, hash uint32) (n int32, added bool) {
	mask := uint32(len(x.slots) - 1)
	at := hash & mask
	for ; x.slots[at] != 0; at = (at + 1) & mask {
		if slot := x.slots[at]; uint32(slot>>32) == hash {
			if n := int32(uint32(slot)) - 1; *x.at(n) == *v {
				return n, false
			}
		}
	}
	n = x.count
	if n&(1<<chunkBits-1) == 0 {
		x.chunks = append(x.chunks, make([]V, 1<<chunkBits))
	}
	*x.at(n) = *v
	x.count++
	x.slots[at] = uint64(hash)<<32 | uint64(x.count)
	if int(x.count)*2 > len(x.slots) {
		x.grow()
	}
	return n, true
}

func (x *index[V]) grow() {
	slots := make([]uint64, 2*len(x.slots))
	mask := uint32(len(slots) - 1)
	for _, slot := range x.slots {
		if slot == 0 {
			continue
		}
		at := uint32(slot>>32) & mask
		for slots[at] != 0 {
			at = (at + 1) & mask
		}
		slots[at] = slot
	}
	x.slots = slots
}

// memo caches the results of a pure function by its packed arguments, and assigns equal numbers to equal results.
type memo[V any] struct {
	slots   []memoSlot // at least half of them are free
	known   int
	numbers map[string]uint16
	values  []V
}

type memoSlot struct {
	key uint64
	n   uint16 // 0: the slot is free
}

// slot returns the slot of a key, or the free slot where it belongs.
func (m *memo[V]) slot(key uint64) *memoSlot {
	at := int(key * 0x9e3779b97f4a7c15 >> 32)
	for ; ; at++ {
		if s := &m.slots[at&(len(m.slots)-1)]; s.n == 0 || s.key == key {
			return s
		}
	}
}

// get returns nil if the result is not known yet. A result never changes.
func (m *memo[V]) get(key uint64) (uint16, *V) {
	if m.known == 0 {
		return 0, nil
	}
	n := m.slot(key).n
	if n == 0 {
		return 0, nil
	}
	return n, &m.values[n]
}

func (m *memo[V]) put(key uint64, v V) (uint16, *V) {
	if m.known == 0 {
		m.numbers, m.values = map[string]uint16{}, make([]V, 1) // 0 is no step
	}
	if m.known*2 >= len(m.slots) {
		old := m.slots
		m.slots = make([]memoSlot, max(2*len(old), 1<<8))
		for _, s := range old {
			if s.n != 0 {
				*m.slot(s.key) = s
			}
		}
	}
	text := fmt.Sprintf("%+v", v)
	n, ok := m.numbers[text]
	if !ok {
		if n = uint16(len(m.values)); n == 0 {
			panic("too many steps for their numbers")
		}
		m.numbers[text], m.values = n, append(m.values, v)
	}
	*m.slot(key) = memoSlot{key, n}
	m.known++
	return n, &m.values[n]
}

// bit and the methods bits pack the arguments of a memo into its key. A bool has one bit, and a number four.
func bit(value bool) uint64 {
	if value {
		return 1
	}
	return 0
}

const (
	leaveBits      = 6
	membershipBits = 8
	requestBits    = 18
)

func (l leavePart) bits() uint64 {
	return bit(l.there) | bit(l.awaitsAgent)<<1 | bit(l.forced)<<2 | bit(l.ended)<<3 | bit(l.awaitsNamespace)<<4 |
		bit(l.late)<<5
}

func (m membershipPart) bits() uint64 {
	return bit(m.there) | bit(m.leave)<<1 | bit(m.rejoin)<<2 | bit(m.clean)<<3 | uint64(m.report)<<4
}

func (r requestPart) bits() uint64 {
	return bit(r.there) | bit(r.fresh)<<1 | uint64(r.requestedUID)<<2 | uint64(r.bound)<<6 | uint64(r.answer)<<10 |
		uint64(r.reason)<<14
}

// TestKeysOfMemos checks that different arguments of a memo have different keys. If two had the same key, a walk would
// use a wrong decision.
func TestKeysOfMemos(t *testing.T) {
	const number = 1<<4 - 1
	for _, n := range []int{
		len(answers) - 1, len(reasons) - 1, len(claims) - 1, len(uids) - 1, int(stateDenied), int(timedOut), int(Terminating),
		int(ReportedClean), int(JoinRequestIssued), int(HubSeen), int(MemberClean),
	} {
		if n > number {
			t.Errorf("%d does not fit into the bits of a number", n)
		}
	}
	if set := tombstoneOf(older, savedUID); set>>tombstoneBits != 0 {
		t.Errorf("%b does not fit into the bits of the tombstones", set)
	}
	for _, tc := range []struct {
		of    any
		width int
		bits  func(any) uint64
	}{
		{&leavePart{}, leaveBits, func(of any) uint64 { return of.(*leavePart).bits() }},
		{&membershipPart{}, membershipBits, func(of any) uint64 { return of.(*membershipPart).bits() }},
		{&requestPart{}, requestBits, func(of any) uint64 { return of.(*requestPart).bits() }},
	} {
		fields, used := reflect.ValueOf(tc.of).Elem(), uint64(0)
		for i := range fields.NumField() {
			// The fields are not exported, which does not matter to this way of setting them.
			field, want := reflect.NewAt(fields.Field(i).Type(), fields.Field(i).Addr().UnsafePointer()).Elem(), 1
			switch field.Kind() {
			case reflect.Bool:
				field.SetBool(true)
			default:
				field.SetUint(number)
				want = 4
			}
			all := tc.bits(tc.of)
			if added := all &^ used; all&used != used || bits.OnesCount64(added) != want {
				t.Errorf("%T: field %d does not have %d bits of its own", tc.of, i, want)
			}
			used = all
		}
		if used != 1<<tc.width-1 {
			t.Errorf("%T: unexpected bits %b", tc.of, used)
		}
	}
}
