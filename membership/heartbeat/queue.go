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
// (anchor, steady, lost, wake) are on the Monitor's watch, which stands still while it is paused.
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
	wake    time.Duration // watch: when to look at it, never later than due
	index   int32         // in the queue; -1: not there
	state   State
	flaps   uint8
	late    bool
	tracked bool
}

// due returns when silence will next change what is known of the member.
func (m *member) due() time.Duration {
	switch {
	case !m.late:
		return m.anchor + min(m.period+slack(m.period), m.grace)
	case m.state == Lost:
		return never
	default:
		return m.anchor + m.grace
	}
}

// queue is a heap (container/heap) of members by when to look at them.
//
// A heartbeat makes a member due later and leaves it where it is. That it was not due is found out when
// its turn comes, once in more than a period, so that a heartbeat costs no more than to note its time.
type queue []*member

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].wake < q[j].wake }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = int32(i), int32(j)
}

func (q *queue) Push(x any) {
	m := x.(*member)
	m.index = int32(len(*q))
	*q = append(*q, m)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	m := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	m.index = -1
	return m
}
