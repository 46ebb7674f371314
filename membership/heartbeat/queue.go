package heartbeat

import (
	"math"
	"time"
)

// never is later than any time.
const never = time.Duration(math.MaxInt64)

// member is what a Monitor remembers of one. There are many: keep it small (TestMemberSize).
//
// Times are of two kinds. Those for people are durations since the Monitor's epoch. Those to judge by
// (anchor, steady, lost) are on the Monitor's watch, which stands still while it is paused.
type member struct {
	name    string
	renewed int64         // what the agent wrote, in microseconds, only ever compared with itself; 0: no Lease
	period  time.Duration // as tracked
	grace   time.Duration // by the policy
	since   time.Duration // epoch: when the state began
	heard   time.Duration // epoch: last heartbeat; negative: none
	anchor  time.Duration // watch: from when on silence is counted
	steady  time.Duration // watch: when the heartbeats of an Unsteady member, none of them late, began
	lost    time.Duration // watch: last loss that counted; negative: none
	held    time.Duration // watch: until when nothing is done about it after an outage; 0: no such time
	index   int32         // in the queue; -1: not there
	state   State
	flaps   uint8
	// affected has the reasons for which the member counts for an outage.
	affected uint8
	tracked  bool
}

func (m *member) late() bool { return m.affected&isLate != 0 }

// due returns when time alone will next change what is known of the member.
func (m *member) due() time.Duration {
	if m.held > 0 {
		return min(m.silent(), m.held)
	}
	return m.silent()
}

// silent returns when silence will next change what is known of the member.
func (m *member) silent() time.Duration {
	switch {
	case !m.late():
		return m.anchor + min(m.period+slack(m.period), m.grace)
	case m.state == Lost:
		return never
	default:
		return m.anchor + m.grace
	}
}

// queue is a heap of members by when to look at them, the earliest first.
//
// A heartbeat makes a member due later and leaves it where it is. That it was not due is found out when
// its turn comes, once in more than a period, so that a heartbeat costs no more than to note its time.
//
// It is not container/heap, because with 100,000 members most of the time goes into waiting for memory:
// the times lie side by side, and four children share a cache line.
type queue []slot

type slot struct {
	wake time.Duration
	*member
}

const children = 4

// set puts a member where it belongs by its time to wake, or takes it out if that is never.
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

// up moves the slot i towards the front as far as it has to go, and returns where it is then.
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

// down moves the slot i towards the back as far as it has to go.
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
