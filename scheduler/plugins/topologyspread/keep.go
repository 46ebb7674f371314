package topologyspread

import (
	"math"

	"github.com/muster-sdk/muster/scheduler"
)

// keep drops all members that are not in a choice.
func (s *spread) keep(picked []member) {
	taken := s.none()
	for _, m := range picked {
		for i := range s.axes {
			taken[i][s.cells[m.cell].parts[i]]++
		}
	}
	s.keepWith(scheduler.Set{}, picked, taken)
}

// keepWith drops all members except those of a choice and those that stay. Taken is the number of these by axis and
// part.
func (s *spread) keepWith(stay scheduler.Set, picked []member, taken [][]int) {
	chosen := s.candidates.Left().Clone()
	chosen.Clear()
	chosen.Insert(stay)
	for _, m := range picked {
		chosen.Add(int(m.slot))
	}
	s.candidates.Keep(chosen, func(slot int) string { return s.reason(slot, taken) })
}

// none returns zero counts by axis and part.
func (s *spread) none() [][]int {
	taken := make([][]int, len(s.axes))
	for i := range s.axes {
		taken[i] = make([]int, len(s.axes[i].sizes))
	}
	return taken
}

// reason returns why a member was not chosen. It names the first constraint that permits no further member of the part,
// or else the first constraint.
func (s *spread) reason(slot int, taken [][]int) string {
	by := -1
	for i := range s.axes {
		a, part := &s.axes[i], s.axes[i].part(slot)
		if part == unlabeled {
			return a.noLabel
		}
		if by < 0 && taken[i][part] >= a.ends(taken[i]).fewest+a.skew {
			by = i
		}
	}
	by = max(by, 0)
	a := &s.axes[by]
	return "is in " + a.noun + " " + a.groups.Name(a.groups.Of(slot)) + ", which has its share"
}

// ends are the maximum and the minimum number per domain, and the number of domains with the minimum.
type ends struct{ most, fewest, last int }

func (a *axis) ends(taken []int) ends {
	e := ends{fewest: math.MaxInt}
	for i, size := range a.sizes[1:] {
		if size == 0 {
			continue
		}
		n := taken[i+1]
		if n < e.fewest {
			e.fewest, e.last = n, 0
		}
		if n == e.fewest {
			e.last++
		}
		e.most = max(e.most, n)
	}
	if a.domains < a.minDomains || a.domains == 0 {
		e.fewest, e.last = 0, math.MaxInt
	}
	return e
}

// plus returns the ends after a domain with n members has got one more.
func (e ends) plus(n int) ends {
	e.most = max(e.most, n+1)
	if n == e.fewest && e.last == 1 {
		e.fewest++
	}
	return e
}

// excess returns by how much the skew exceeds maxSkew.
func (e ends) excess(maxSkew int) int { return max(0, e.most-e.fewest-maxSkew) }
