package replicas

import "cmp"

// queue is a heap of the parties whose limit is not reached. The first party gets the next seat.
type queue struct {
	parties []party
	heap    []int32
	turns   func(a, b *party) int
}

// queueOf returns a queue in the order of turns, which returns a negative number if a precedes b, and 0 for a tie. The
// lower rank breaks a tie, and then the order by name.
func queueOf(parties []party, turns func(a, b *party) int) queue {
	q := queue{parties, make([]int32, 0, len(parties)), turns}
	for i := range parties {
		if parties[i].room() > 0 {
			q.heap = append(q.heap, int32(i))
		}
	}
	for i := len(q.heap)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
	return q
}

func (q *queue) empty() bool { return len(q.heap) == 0 }

func (q *queue) first() *party { return &q.parties[q.heap[0]] }

// restoreHeap restores the heap after the first party has received seats. It removes the party if its limit is reached.
func (q *queue) restoreHeap() {
	if q.first().room() == 0 {
		last := len(q.heap) - 1
		q.heap[0] = q.heap[last]
		q.heap = q.heap[:last]
	}
	q.down(0)
}

func (q *queue) down(i int) {
	for {
		best := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q.heap); child++ {
			if q.less(q.heap[child], q.heap[best]) {
				best = child
			}
		}
		if best == i {
			return
		}
		q.heap[i], q.heap[best] = q.heap[best], q.heap[i]
		i = best
	}
}

func (q *queue) less(i, j int32) bool {
	a, b := &q.parties[i], &q.parties[j]
	if turn := q.turns(a, b); turn != 0 {
		return turn < 0
	}
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(i, j)) < 0
}
