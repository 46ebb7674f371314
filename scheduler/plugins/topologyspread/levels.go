package topologyspread

import (
	"math"
	"sort"
)

// levels finds the best choice of one family or two. Suppose that there were a level for each constraint: how many
// members the domain with the fewest has. Then each domain has a least and a most, and a tree or a flow makes the best
// choice within such bounds.
//
// That leaves the levels to be found. For a range of them, let the least be that of the lowest and the most that of the
// highest. The best choice within these bounds is no worse than any with a level of the range. So if it is no better
// than what was found before, the range is done with; if it keeps the constraints, it is the best of the range; else
// the range is cut in two such that neither part admits it.
type levels struct {
	*spread
	bounded
	best   choice
	trials []choice // by how often the range was cut
	enough bool     // as soon as there is one that is better
}

// bounded makes the best choice within the bounds of the domains. It reports whether there is one.
type bounded interface{ choose(into *choice) bool }

// bounds are how many a domain must and may have.
func (a *axis) bounds() (low, top int) { return a.low, a.high + a.skew }

// maxSteps is how much is looked at before the search is cut short: clusters, domains and cells.
const maxSteps = 1 << 24

// spent reports whether there is no more time.
func (s *spread) spent() bool { return s.steps >= maxSteps || s.err() != nil }

// solve returns the best choice that it finds.
func (s *spread) solve() []member {
	first, second, possible := s.families()
	if !possible {
		return newCrossing(s, nil).solve()
	}
	l := &levels{spread: s}
	switch {
	case second.empty():
		l.bounded = newTree(s, first)
	case len(first.parent) < len(second.parent): // the fewer there are in the second, the less there is to do
		l.bounded = newFlow(s, second, first)
	default:
		l.bounded = newFlow(s, first, second)
	}
	picked := l.solve()
	if s.spent() {
		return newCrossing(s, picked).solve()
	}
	return picked
}

func (l *levels) solve() []member {
	least := make([]int, len(l.axes))
	broken := false
	if len(l.axes) > 1 { // one alone is known to be broken by how much
		for i := range l.axes {
			if a := &l.axes[i]; a.anyway {
				least[i], a.skew = a.skew, max(a.skew, l.wanted)
				broken = true
			}
		}
	}
	l.search(worth{})
	if !broken {
		return l.best.picked
	}
	// That is what there can be without the constraints that may be broken. Now find out, one after the other, how little
	// each of them has to be broken for it.
	possible := worth{count: l.best.worth.count, lacks: l.best.worth.lacks, total: math.MinInt64}
	l.enough = true
	for i := range l.axes {
		if a := &l.axes[i]; a.anyway {
			a.skew = least[i] + sort.Search(a.skew-least[i], func(more int) bool {
				a.skew = least[i] + more
				l.search(possible)
				return len(l.best.picked) > 0
			})
		}
	}
	l.enough = false
	l.search(possible)
	return l.best.picked
}

// search finds the best choice with the skews that the axes have now, if it is worth more.
func (l *levels) search(than worth) {
	l.best.picked, l.best.worth = l.best.picked[:0], than
	// With the highest levels there are mostly as many members as are wanted, and then few of the others are of use.
	for i := range l.axes {
		a := &l.axes[i]
		a.low, a.high = a.highest, a.highest
		if a.skew >= l.wanted { // excludes no cluster
			a.low, a.high = 0, 0
		}
	}
	l.explore(0)
	more := false
	for i := range l.axes {
		a := &l.axes[i]
		a.low = sort.Search(a.high, func(level int) bool { return a.room(level) >= l.best.worth.count })
		more = more || a.low < a.high
	}
	if more {
		l.explore(0)
	}
}

// explore looks for a better choice with the levels that the axes have now.
func (l *levels) explore(cuts int) {
	if l.spent() || l.enough && len(l.best.picked) > 0 {
		return
	}
	for i := range l.axes {
		if a := &l.axes[i]; a.room(a.high) < l.best.worth.count {
			return
		}
	}
	if len(l.trials) == cuts {
		l.trials = append(l.trials, choice{})
	}
	if !l.choose(&l.trials[cuts]) || !l.better(&l.trials[cuts], &l.best) {
		return
	}
	a, level := l.broken(l.trials[cuts].picked)
	if a == nil {
		l.best, l.trials[cuts] = l.trials[cuts], l.best
		return
	}
	low, high := a.low, a.high
	a.low = level + 1
	l.explore(cuts + 1)
	a.low, a.high = low, level
	l.explore(cuts + 1)
	a.high = high
}

// room is how many members all domains can have together, and those that are in none, if the fewest of a domain is
// level.
func (a *axis) room(level int) int {
	room := a.sizes[unlabeled]
	for _, size := range a.sizes[1:] {
		room += min(size, level+a.skew)
	}
	return room
}

// broken returns the axis that a choice breaks most, and a level: above it, some domain has too few; up to it, some has
// too many.
func (l *levels) broken(picked []member) (worst *axis, level int) {
	most := 0
	for i := range l.axes {
		a := &l.axes[i]
		if a.low == a.high {
			continue
		}
		taken := make([]int, len(a.sizes))
		for _, m := range picked {
			taken[l.cells[m.cell].parts[i]]++
		}
		e := a.ends(taken)
		if excess := e.excess(a.skew); excess > most {
			worst, level, most = a, e.fewest+excess/2, excess
		}
	}
	return worst, level
}

// better reports whether a is the better choice. Of two that are worth the same it is the one that has the best of the
// members that only one of them has.
func (l *levels) better(a, b *choice) bool {
	if c := a.worth.compare(b.worth); c != 0 {
		return c > 0
	}
	for i := range a.picked {
		if x, y := a.picked[i], b.picked[i]; x != y {
			return l.inOrder(x, y) < 0
		}
	}
	return false
}
