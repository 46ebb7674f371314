package topologyspread

import (
	"cmp"
	"math"
)

// choice is some members and what they are worth together.
type choice struct {
	picked []member
	worth  worth
}

// worth is what choices that keep the constraints equally well are compared by.
type worth struct {
	count int
	lacks int   // labels
	total int64 // of scores, see points
	bound int   // how many stay
}

// compare is positive if w is better than v.
func (w worth) compare(v worth) int {
	return cmp.Or(w.count-v.count, v.lacks-w.lacks, cmp.Compare(w.total, v.total), w.bound-v.bound)
}

// points are millionths of a score. Unlike fractions they add up to the same in any order.
func points(score float64) int64 { return int64(math.Round(score * million)) }

const million = 1e6

func (s *spread) worthOf(m member) worth {
	w := worth{1, s.cells[m.cell].lacks, points(s.candidates.Score(int(m.slot))), 0}
	if s.bound.Has(int(m.slot)) {
		w.bound = 1
	}
	return w
}

func (w worth) plus(v worth) worth {
	return worth{w.count + v.count, w.lacks + v.lacks, w.total + v.total, w.bound + v.bound}
}

func (w worth) minus(v worth) worth {
	return worth{w.count - v.count, w.lacks - v.lacks, w.total - v.total, w.bound - v.bound}
}
