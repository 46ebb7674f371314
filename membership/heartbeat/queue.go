package heartbeat

import (
	"math"
	"time"
)

// never is later than every other time.
const never = time.Duration(math.MaxInt64)

// member is the state of one member in a Monitor. Its size is limited by TestMemberSize, because fleets may be large.
//
// The times outside of watch are for output: they are durations since the Monitor's epoch.
type member struct {
	name    string
	renewed int64         // renewTime in microseconds, only compared with itself; 0: no Lease; or unrenewed
	period  time.Duration // as tracked
	grace   time.Duration // from the policy
	since   time.Duration // when the state began
	heard   time.Duration // last heartbeat; negative: none
	watch   watchTimes
	index   int32 // in the queue; -1: not there
	state   State
	flaps   uint8
	flags   uint8 // for the outage guard
	tracked bool
}

// watchTimes are the times of a member for decisions. They are relative to a clock that stops while the Monitor is
// paused.
type watchTimes struct {
	anchor        time.Duration // start of the silence
	steady        time.Duration // when the steady heartbeats of an Unsteady member began
	lost          time.Duration // last loss that counts for flaps; negative: none
	withheldUntil time.Duration // end of the grace period after an outage; 0: none
}

// unrenewed is the value of renewed for a Lease that no agent has renewed yet.
const unrenewed = -1

func (m *member) late() bool { return m.flags&isLate != 0 }

// due returns the next time at which the state of the member changes without an event.
func (m *member) due() time.Duration {
	if m.watch.withheldUntil > 0 {
		return min(m.silent(), m.watch.withheldUntil)
	}
	return m.silent()
}

// silent returns the next time at which missing heartbeats change the state of the member.
func (m *member) silent() time.Duration {
	switch {
	case !m.late():
		return m.watch.anchor + min(m.period+slack(m.period), m.grace)
	case m.state == Lost:
		return never
	default:
		return m.watch.anchor + m.grace
	}
}

// queue is a heap of members by the time when they must be checked, the earliest first.
//
// A heartbeat makes a member due later and does not move it in the heap. The queue corrects the position when the
// member is first, at most once per period, so that a heartbeat only stores its time.
//
// container/heap is not used, because with 100,000 members most of the time is spent on cache misses: here the times
// are adjacent in memory, and four children share a cache line.
type queue []slot

type slot struct {
	wake time.Duration
	*member
}

const children = 4

// set inserts or moves a member according to its time to wake, or removes it if that is never.
func (q *queue) set(m *member, wake time.Duration) {
	i := int(m.index)
	switch {
	case wake != never && i < 0:
		i = len(*q)
		*q = append(*q, slot{wake, m})
	case wake != never:
		(*q)[i].wake = wake
	case i < 0:
		return
	default:
		last := len(*q) - 1
		(*q)[i] = (*q)[last]
		(*q)[last] = slot{}
		*q = (*q)[:last]
		m.index = -1
		if i == last {
			return
		}
	}
	q.down(q.up(i))
}

// up moves the slot i towards the front to its place, and returns its new index.
func (q queue) up(i int) int {
	moved := q[i]
	for i > 0 {
		parent := (i - 1) / children
		if q[parent].wake <= moved.wake {
			break
		}
		q.put(i, q[parent])
		i = parent
	}
	q.put(i, moved)
	return i
}

// down moves the slot i towards the back to its place.
func (q queue) down(i int) {
	moved := q[i]
	for {
		first := i*children + 1
		if first >= len(q) {
			break
		}
		least := first
		for c := first + 1; c < min(first+children, len(q)); c++ {
			if q[c].wake < q[least].wake {
				least = c
			}
		}
		if moved.wake <= q[least].wake {
			break
		}
		q.put(i, q[least])
		i = least
	}
	q.put(i, moved)
}

func (q queue) put(i int, s slot) {
	q[i] = s
	s.index = int32(i)
}
