package topologyspread

import (
	"math"
	"sort"
)

// levels finds the best choice for one or two families. A level of a constraint is the minimum number of members per
// domain. With a given level, each domain has a lower and an upper bound, and a tree or a flow computes the best choice
// within these bounds.
//
// The levels are found by branch and bound. For a range of levels, the lower bound is that of the lowest level and the
// upper bound that of the highest. The best choice within these bounds is at least as good as any choice with a level
// of the range. If it is not better than the best choice so far, the range is discarded. If it satisfies the
// constraints, it is the best choice of the range. Otherwise the range is split into two ranges that both exclude it.
type levels struct {
	*spread
	bounded
	best   choice
	trials []choice // by depth of the search
	enough bool     // the search ends at the first better choice
}

// bounded computes the best choice within the bounds of the domains. It reports whether there is one.
type bounded interface{ choose(into *choice) bool }

// bounds returns the minimum and the maximum number of members of a domain.
func (a *axis) bounds() (low, top int) { return a.low, a.high + a.skew }

// maxSteps is the maximum number of clusters, domains and cells that the search visits.
const maxSteps = 1 << 24

// spent reports whether maxSteps is reached or the context has ended.
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
	case len(first.parent) < len(second.parent): // a smaller second family needs fewer steps
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
	if len(l.axes) > 1 { // for a single axis, measure has computed the excess
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
	// The best choice without the ScheduleAnyway constraints is known now. For each of them in order, find the least skew
	// with which the same number of members is possible.
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

// search finds the best choice with the current skews of the axes, if it is better than a worth.
func (l *levels) search(than worth) {
	l.best.picked, l.best.worth = l.best.picked[:0], than
	// With the highest levels, the wanted number of members is mostly possible, which excludes most other levels.
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

// explore searches for a better choice with the current levels of the axes.
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

// room returns the maximum number of members of all domains and without the label, if the minimum per domain is level.
func (a *axis) room(level int) int {
	room := a.sizes[unlabeled]
	for _, size := range a.sizes[1:] {
		room += min(size, level+a.skew)
	}
	return room
}

// broken returns the axis with the greatest excess, and a level. Above this level, a domain has too few members; up to
// this level, a domain has too many.
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

// better reports whether choice a is better than b. If their worth is equal, the best member that is in only one of
// them decides.
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
