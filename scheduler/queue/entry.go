package queue

import (
	"cmp"
	"time"
)

// entry is what a Queue knows of a key. There may be many.
type entry[K cmp.Ordered] struct {
	key        K
	rejectedBy []string      // while it is unschedulable
	since      time.Duration // when it was added first, or given back last
	retry      time.Duration // when its backoff ends
	ticket     uint64        // of its stay among the unschedulable; 0: it is not there
	flight     uint64        // while it is in flight: the first event that its snapshot may lack
	priority   int32
	failures   int32 // attempts in a row that did not succeed
	index      int32 // in a heap
	state      state

	// While it is in flight:
	again   bool // added meanwhile
	gone    bool // removed meanwhile, and not added again
	landing bool // given back; hints are being asked
}

type state uint8

const (
	active state = iota
	backoff
	unschedulable
	inFlight
)

// decided reports whether it is settled what becomes of a key in flight, whatever its outcome and the events.
func (e *entry[K]) decided() bool { return e.again || e.gone }
