package queue

import (
	"cmp"
	"time"
)

// entry is the state of a key. It is small, because a Queue may have many keys.
type entry[K cmp.Ordered] struct {
	key        K
	rejectedBy []string      // if it is unschedulable: the plugins
	since      time.Duration // when it was first added, or last returned by Done
	retry      time.Duration // when its backoff ends
	ticket     uint64        // its number among the unschedulable; 0: not unschedulable
	flight     uint64        // if it is in flight: the first event that its snapshot may lack
	priority   int32
	failures   int32 // consecutive unsuccessful attempts
	index      int32 // in its heap
	state      state
	pending    pending // if it is in flight
}

type state uint8

const (
	active state = iota
	backoff
	unschedulable
	inFlight
)

// pending are the calls for a key in flight. They take effect when the flight ends.
type pending struct {
	add    bool // Add was called
	remove bool // Remove was called, and Add was not called afterwards
	done   bool // Done was called; hints are running
}

// decided reports whether Add or Remove determine the next state of the key, independently of its outcome and of
// events.
func (p pending) decided() bool { return p.add || p.remove }
