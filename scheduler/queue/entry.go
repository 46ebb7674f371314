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
	pending    pending // while it is in flight
}

type state uint8

const (
	active state = iota
	backoff
	unschedulable
	inFlight
)

// pending are the calls for a key in flight that take effect at the end of its flight.
type pending struct {
	add    bool // Add was called
	remove bool // Remove was called, and Add was not called afterwards
	done   bool // Done was called; hints are being asked
}

// decided reports whether the calls decide what becomes of the key, whatever its outcome and the events.
func (p pending) decided() bool { return p.add || p.remove }
