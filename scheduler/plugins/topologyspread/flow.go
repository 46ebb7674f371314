package topologyspread

import (
	"math"
	"slices"
)

// flow computes the choice for two families. Each member is a unit of flow. It goes from the root of the first family
// down to its innermost domain there, through its cell to its innermost domain in the second family, up to the root of
// the second family, and back to the first root. The bounds of a domain limit its flow, and the number of members
// limits the flow through a cell, the best members first. An optimal integral flow is as good as an optimal fractional
// one, so the best choice consists of the members that the flow of maximum worth takes through the cells.
//
// Without the bounds of the second family, this is the choice of a tree. Then the bounds of the domains of the second
// family are added one by one. If a domain has too few members it gets one more, and if it has too many it loses one,
// along the best cycle. The cycle may remove members on reversed arcs. The result is the best flow with one more or one
// fewer there.
type flow struct {
	*spread
	arcs   []arc   // the cells, the domains of the first and of the second family, and the arc between the roots
	second int     // index of the first arc of the second family
	tree   *tree   // of the first family
	above  []int32 // by node: the arc of its domain; -1: a root
	out    [][]way // by node
	best   []worth // by node: the worth of the best path to it
	due    []bool  // by node: its outgoing arcs must be processed
	queue  []int32 // the nodes that are due
	seen   []bool  // by node: no path leads further from it
}

// arc is a domain, a cell, or the connection between the roots.
type arc struct {
	from, to       int32
	flow, low, top int
	axis           int32   // for a domain
	worths         []worth // for a cell: of its members
}

// way is a step from a node to another one that adds a unit to an arc or removes one.
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
	up := func(v int32) int32 { return nodes - 1 - v } // the root is the last node
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

// load sets the flow of the members, with the bounds of the first family only.
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

// bind adds the bounds of an arc and keeps the flow optimal. It reports whether this is possible.
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

// unreachable is a count that is less than that of any reachable node.
const unreachable = math.MinInt32 / 2

// measure computes the worth of the best path from the start to each node.
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

// gain returns the worth of one more or one fewer unit. It returns false if the bounds do not permit the change.
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

// push sends one unit along a best path. It reports whether there is one.
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

// onBest reports whether a step is possible and part of a best path.
func (f *flow) onBest(from int32, w way) bool {
	g, possible := f.arcs[w.arc].gain(w.change)
	return possible && g.plus(f.best[from]) == f.best[w.to]
}

// choose computes the best flow, and then selects the members in their order. A member is selected if it is in the
// flow, or in another flow of the same worth that contains all members selected before. Such flows differ by cycles of
// arcs on best paths. The bounds of the cell fix each selection.
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
