package topologyspread

import (
	"cmp"
	"slices"

	"github.com/muster-sdk/muster/scheduler"
)

// extension adds clusters to those that stay, one by one. A constraint applies to each cluster that is added: with
// DoNotSchedule its domain must not exceed the one with the fewest by more than maxSkew afterwards. The clusters that
// stay may break a constraint.
type extension struct {
	*spread
	taken [][]int   // by axis and part: the clusters that stay and those that were added
	free  [][]int32 // by cell: slots that can be added, the best first
	order []int     // cells with free slots
}

func newExtension(s *spread, kept scheduler.Set) *extension {
	e := &extension{spread: s, taken: s.none(), free: make([][]int32, len(s.cells))}
	for slot := range s.candidates.Left().All() {
		at := int(s.cellOf(slot))
		if kept.Has(slot) {
			for i := range s.axes {
				e.taken[i][s.axes[i].part(slot)]++
			}
			continue
		}
		e.free[at] = append(e.free[at], int32(slot))
	}
	for at, free := range e.free {
		if len(free) > 0 {
			slices.SortFunc(free, s.compare)
			e.order = append(e.order, at)
		}
	}
	return e
}

// cellOf returns the cell of a member.
func (s *spread) cellOf(slot int) int32 {
	if s.at != nil {
		return s.at[slot]
	}
	return int32(s.axes[0].part(slot))
}

// add returns the additional members: as many as possible, up to n.
func (e *extension) add(n int) []member {
	var added []member
	for range n {
		if e.err() != nil {
			break
		}
		cell := e.next()
		if cell < 0 {
			break
		}
		for i := range e.axes {
			e.taken[i][e.cells[cell].parts[i]]++
		}
		added = append(added, member{e.free[cell][0], int32(cell)})
		e.free[cell] = e.free[cell][1:]
	}
	return added
}

// next returns the cell with the best member to add: the one with the fewest missing labels, then the one with the
// least excess, and then the one with the highest score. It returns -1 if there is none.
func (e *extension) next() int {
	var ends [maxConstraints]ends
	for i := range e.axes {
		ends[i] = e.axes[i].ends(e.taken[i])
	}
	best, least := -1, [maxConstraints]int{}
	for _, cell := range e.order {
		if len(e.free[cell]) == 0 {
			continue
		}
		excess, possible := e.excess(cell, ends[:])
		if !possible {
			continue
		}
		if best >= 0 {
			by := cmp.Or(e.cells[cell].lacks-e.cells[best].lacks, slices.Compare(excess[:], least[:]),
				e.compare(e.free[cell][0], e.free[best][0]))
			if by >= 0 {
				continue
			}
		}
		best, least = cell, excess
	}
	return best
}

// excess returns by how much each domain of a cell would exceed maxSkew with one more member. It returns false if a
// constraint with DoNotSchedule forbids the member.
func (e *extension) excess(cell int, ends []ends) (excess [maxConstraints]int, possible bool) {
	for i := range e.axes {
		a, part := &e.axes[i], e.cells[cell].parts[i]
		if part == unlabeled {
			continue
		}
		n := e.taken[i][part]
		excess[i] = max(0, n+1-ends[i].plus(n).fewest-a.maxSkew)
		if excess[i] > 0 && !a.anyway {
			return excess, false
		}
	}
	return excess, true
}
