package topologyspread

import (
	"math"
	"slices"
)

// flow is the choice of two families. Each member flows from the root of the first down to the finest of its domains
// there, across to the finest of its domains in the second, up to the root of that, and back to the first. A domain
// lets through as many as its bounds say, and a cell as many as it has members, the best first. A flow of whole members
// is as good as one of fractions, so the best choice is what the flow of the greatest worth takes through the cells.
//
// Without the bounds of the second family that is the choice of a tree. Then its domains are bound one by one. One that
// has too few gets one more, or loses one if it has too many, by the best way around, which may take members out as it
// goes backward: that is the best flow with one more there, or one fewer.
type flow struct {
	*spread
	arcs   []arc   // the cells, the domains of the first family, those of the second, and that from root to root
	second int     // arcs from here on
	tree   *tree   // of the first family
	above  []int32 // by node: the arc of its domain; -1: a root
	out    [][]way // by node
	best   []worth // by node: what the best way to it is worth
	due    []bool  // by node: what can be reached from it is to be looked at
	queue  []int32 // of those
	seen   []bool  // by node: there is no way on from it
}

// arc is a domain or a cell.
type arc struct {
	from, to       int32
	flow, low, top int
	axis           int32   // of a domain
	worths         []worth // of the members of a cell
}

// way leads from a node to another, on an arc that gets one more or one fewer.
type way struct {
	arc, to int32
	change  int
}

func newFlow(s *spread, first, second family) *flow {
	nodes := int32(len(first.parent) + len(second.parent))
	f := &flow{
		spread: s, tree: newTree(s, first), arcs: make([]arc, 0, len(s.cells)+int(nodes)),
		above: slices.Repeat([]int32{-1}, int(nodes)),
		out:   make([][]way, nodes), best: make([]worth, nodes), due: make([]bool, nodes), seen: make([]bool, nodes),
	}
	up := func(v int32) int32 { return nodes - 1 - v } // the root last
	for i := range s.cells {
		a := arc{from: first.nodeOf[i], to: up(second.nodeOf[i])}
		for _, slot := range s.cells[i].best {
			a.worths = append(a.worths, s.worthOf(member{slot, int32(i)}))
		}
		f.add(a)
	}
	for v, parent := range first.parent {
		if parent >= 0 {
			f.above[v] = f.add(arc{from: parent, to: int32(v), axis: first.axis[v]})
		}
	}
	f.second = len(f.arcs)
	for v, parent := range second.parent {
		if parent >= 0 {
			f.above[up(int32(v))] = f.add(arc{from: up(int32(v)), to: up(parent), axis: second.axis[v]})
		}
	}
	f.add(arc{from: nodes - 1})
	return f
}

func (f *flow) add(a arc) int32 {
	i := int32(len(f.arcs))
	f.arcs = append(f.arcs, a)
	f.out[a.from] = append(f.out[a.from], way{i, a.to, +1})
	f.out[a.to] = append(f.out[a.to], way{i, a.from, -1})
	return i
}

// load makes a flow of members, with the bounds of the first family and none of the second.
func (f *flow) load(picked []member) {
	for i := range f.arcs {
		a := &f.arcs[i]
		switch a.flow, a.low, a.top = 0, 0, math.MaxInt; {
		case i < len(f.cells):
			a.top = len(a.worths)
		case i < f.second:
			a.low, a.top = f.axes[a.axis].bounds()
		}
	}
	all := &f.arcs[len(f.arcs)-1]
	all.flow, all.top = len(picked), f.wanted
	for _, m := range picked {
		a := &f.arcs[m.cell]
		a.flow++
		for _, v := range [...]int32{a.from, a.to} {
			for f.above[v] >= 0 {
				domain := &f.arcs[f.above[v]]
				domain.flow++
				v = domain.from + domain.to - v
			}
		}
	}
}

// bind keeps a flow the best with bounds for one arc more. It reports whether that is possible.
func (f *flow) bind(a *arc) bool {
	a.low, a.top = f.axes[a.axis].bounds()
	change, n, from, to := +1, a.low-a.flow, a.to, a.from
	if a.flow > a.top {
		change, n, from, to = -1, a.flow-a.top, a.from, a.to
	}
	for n > 0 {
		f.measure(from)
		if f.spent() || f.best[to].count <= unreachable/2 {
			return false
		}
		clear(f.seen)
		for n > 0 && f.push(from, to) {
			a.flow += change
			n--
		}
	}
	return true
}

// unreachable is so few members that what cannot be reached comes after all that can.
const unreachable = math.MinInt32 / 2

// measure finds out what the best ways from a node are worth.
func (f *flow) measure(start int32) {
	f.queue = append(f.queue[:0], start)
	for v := range f.best {
		f.best[v], f.due[v] = worth{count: unreachable}, true
		if v != int(start) {
			f.queue = append(f.queue, int32(v))
		}
	}
	f.best[start] = worth{}
	for i := 0; i < len(f.queue) && f.steps < maxSteps; i++ {
		from := f.queue[i]
		f.due[from] = false
		f.steps += len(f.out[from])
		for _, w := range f.out[from] {
			g, possible := f.arcs[w.arc].gain(w.change)
			if !possible {
				continue
			}
			if g = g.plus(f.best[from]); g.compare(f.best[w.to]) > 0 {
				f.best[w.to] = g
				if !f.due[w.to] {
					f.due[w.to] = true
					f.queue = append(f.queue, w.to)
				}
			}
		}
	}
}

// gain is what one more or one fewer is worth; false: it is not possible.
func (a *arc) gain(change int) (g worth, possible bool) {
	switch {
	case change > 0 && a.flow >= a.top || change < 0 && a.flow <= a.low:
		return g, false
	case a.worths == nil:
		return g, true
	case change > 0:
		return a.worths[a.flow], true
	default:
		return g.minus(a.worths[a.flow-1]), true
	}
}

// push sends one more along a best way, if there is one.
func (f *flow) push(from, to int32) bool {
	if from == to {
		return true
	}
	f.seen[from] = true
	f.steps += len(f.out[from])
	for _, w := range f.out[from] {
		if !f.seen[w.to] && f.onBest(from, w) && f.push(w.to, to) {
			f.arcs[w.arc].flow += w.change
			f.seen[from] = false
			return true
		}
	}
	return false
}

// onBest reports whether a way is possible, and part of a best one.
func (f *flow) onBest(from int32, w way) bool {
	g, possible := f.arcs[w.arc].gain(w.change)
	return possible && g.plus(f.best[from]) == f.best[w.to]
}

// choose makes the best flow, and then takes one member after the other in their order: those that are in the flow, or
// in another that is worth as much and has all that were taken before. Such flows differ by circles of arcs on which
// the best ways go. What is decided is fixed by the bounds of the cell.
func (f *flow) choose(into *choice) bool {
	if !f.tree.choose(into) {
		return false
	}
	f.load(into.picked)
	for i := f.second; i < len(f.arcs)-1; i++ {
		if !f.bind(&f.arcs[i]) {
			return false
		}
	}
	f.measure(0)
	into.picked, into.worth = into.picked[:0], worth{}
	for _, m := range f.order {
		a := &f.arcs[m.cell]
		if a.flow == a.low && a.low < a.top {
			clear(f.seen)
			if !f.spent() && f.onBest(a.from, way{m.cell, a.to, +1}) && f.push(a.to, a.from) {
				a.flow++
			} else {
				a.top = a.flow
			}
		}
		if a.low < a.flow {
			a.low++
			into.picked = append(into.picked, m)
			into.worth = into.worth.plus(f.worthOf(m))
		}
	}
	return true
}
