package topologyspread

import (
	"cmp"
	"math"
)

// choice is a set of members and its worth.
type choice struct {
	picked []member
	worth  worth
}

// worth compares choices that satisfy the constraints equally well.
type worth struct {
	count int
	lacks int   // missing labels
	total int64 // sum of the scores, see points
	bound int   // number of bound clusters
}

// compare returns a positive number if w is better than v, and a negative one if v is better.
func (w worth) compare(v worth) int {
	return cmp.Or(w.count-v.count, v.lacks-w.lacks, cmp.Compare(w.total, v.total), w.bound-v.bound)
}

// points converts a score to millionths. The sum of integers does not depend on the order, unlike that of fractions.
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
