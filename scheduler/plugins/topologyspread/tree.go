package topologyspread

import (
	"cmp"
	"slices"
	"sort"
)

// tree is for constraints whose domains nest; one alone always does. Its nodes are the domains, below those that they are in,
// and at the root is all that is wanted.
//
// Suppose that the fewest of a domain were known for each constraint: its level. Then each domain has a least and a most,
// and sets that keep within such bounds, nested as they are, make a matroid: who takes the best first, and leaves out no more than
// what would make it impossible to keep the bounds, ends up with the most members, the greatest total, and of equals
// the one that is better member by member.
//
// What remains is to find the levels. The worth of the best choice is concave in each of them (for given levels it is the optimum
// of a linear program whose optimum is integral, and they are linear in its bounds), so one of them can be found by
// halving its range. The others are tried one by one.
type tree struct {
	*spread
	chain  []int   // axes, the coarsest first
	parent []int32 // by node; the root is node 0
	depth  []int32 // by node: its place in the chain
	direct []int   // by node: members that are in no node below it
	nodeOf []int32 // by cell: the finest node that it is in

	levels []int // by place in the chain
	floor  []int // below which none is of use
	low    []int // by node: its least and most
	top    []int
	sum    []int // by node: what is chosen or has to be, of the nodes below and the members of its own
	room   []int // by node: what can be chosen

	best, trial, above choice
	steps              int // members looked at
}

// newTree returns nil if the domains do not nest.
func newTree(s *spread) *tree {
	t := &tree{spread: s, levels: make([]int, len(s.axes)), floor: make([]int, len(s.axes)), nodeOf: make([]int32, len(s.cells))}
	nodes := 1
	for i := range s.axes {
		t.chain = append(t.chain, i)
		nodes += len(s.axes[i].sizes)
	}
	slices.SortStableFunc(t.chain, func(i, j int) int {
		a, b := &s.axes[i], &s.axes[j]
		return cmp.Or(a.domains-b.domains, a.sizes[unlabeled]-b.sizes[unlabeled])
	})
	t.parent, t.depth, t.direct = make([]int32, nodes), make([]int32, nodes), make([]int, nodes)
	memory := make([]int, 4*nodes)
	t.low, t.top, t.sum, t.room = memory[:nodes], memory[nodes:2*nodes], memory[2*nodes:3*nodes], memory[3*nodes:]
	for v := range t.parent {
		t.parent[v] = -1
	}
	first := int32(1) // node of an axis; those of no domain are not used
	for depth, i := range t.chain {
		a := &s.axes[i]
		for j := range s.cells {
			part := s.cells[j].parts[i]
			if part == unlabeled || s.cells[j].size == 0 {
				continue
			}
			node := first + part
			if t.parent[node] < 0 {
				t.parent[node], t.depth[node] = t.nodeOf[j], int32(depth)
			} else if t.parent[node] != t.nodeOf[j] {
				return nil
			}
			t.nodeOf[j] = node
		}
		first += int32(len(a.sizes))
	}
	for j := range s.cells {
		t.direct[t.nodeOf[j]] += len(s.cells[j].best)
	}
	return t
}

// solve returns the best choice.
func (t *tree) solve() []member {
	if len(t.axes) == 1 {
		t.search()
		return t.best.picked
	}
	// Find out what there can be without the constraints that may be broken, and then, one after the other, how little each of
	// them has to be broken for that.
	least := make([]int, len(t.axes))
	for i := range t.axes {
		if a := &t.axes[i]; a.anyway {
			least[i], a.skew = a.skew, max(a.skew, t.wanted)
		}
	}
	t.search()
	possible := t.best.worth
	for i := range t.axes {
		if a := &t.axes[i]; a.anyway {
			a.skew = least[i] + sort.Search(a.skew-least[i], func(more int) bool {
				a.skew = least[i] + more
				return t.reaches(possible)
			})
		}
	}
	t.search()
	return t.best.picked
}

// How much is looked at before a search is cut short: combinations of levels, and members in them. One constraint has far fewer.
const (
	maxTries = 1 << 14
	maxSteps = 1 << 22
)

// search finds the best choice with the skews that the axes have now.
func (t *tree) search() {
	most := t.most()
	t.best.picked, t.best.worth, t.steps = t.best.picked[:0], worth{}, 0
	tries := 0
	for more := t.begin(most); more && tries < maxTries && t.steps < maxSteps; more = t.next(1) {
		low, high := -1, -1
		for level := t.levels[0]; level >= t.floor[0]; level-- {
			tries++
			t.levels[0] = level
			if t.bound() == most {
				low, high = level, max(high, level)
			} else if high >= 0 {
				break
			}
		}
		if high >= 0 {
			t.halve(low, high)
		}
	}
	if len(t.best.picked) < most { // the tries were over before
		clear(t.levels)
		t.choose(&t.best)
	}
}

// most is how many members there can be.
func (t *tree) most() int {
	clear(t.levels) // which is always possible
	most := t.bound()
	tries := 0
	for more := most < t.wanted && t.begin(most+1); more && tries < maxTries; more = t.next(0) {
		tries++
		if n := t.bound(); n == t.wanted {
			return n
		} else if n > most {
			most = n
			if !t.raise(most + 1) {
				break
			}
		}
	}
	return most
}

// reaches reports whether there is a choice of as many members, of which no more lack a label.
func (t *tree) reaches(possible worth) bool {
	tries := 0
	t.steps = 0
	for more := t.begin(possible.count); more && tries < maxTries && t.steps < maxSteps; more = t.next(0) {
		tries++
		if t.bound() != possible.count {
			continue
		}
		if t.choose(&t.trial); t.trial.worth.lacks == possible.lacks {
			return true
		}
	}
	return false
}

// halve looks for the best of the levels of the coarsest constraint, all of which give the most members, and keeps the choice if it is
// better than the best so far.
func (t *tree) halve(low, high int) {
	for low < high {
		middle := low + (high-low)/2
		t.levels[0] = middle
		t.choose(&t.trial)
		t.levels[0] = middle + 1
		t.choose(&t.above)
		if t.better(&t.above, &t.trial) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	t.levels[0] = low
	t.choose(&t.trial)
	if t.better(&t.trial, &t.best) {
		t.best, t.trial = t.trial, t.best
	}
}

// begin sets all levels to the highest, for so many members. It reports whether there are any levels, as next does.
func (t *tree) begin(count int) bool {
	for place := range t.levels {
		t.levels[place] = t.highest(place)
	}
	return t.raise(count)
}

// next goes to the next combination of the levels from a place on; those before it begin anew.
func (t *tree) next(from int) bool {
	for place := range t.levels {
		if place >= from && t.levels[place] > t.floor[place] {
			t.levels[place]--
			return true
		}
		t.levels[place] = t.highest(place)
	}
	return false
}

// raise sets the floors to the lowest levels at which the domains of each constraint have room for so many members.
func (t *tree) raise(count int) bool {
	for place, i := range t.chain {
		a, levels := &t.axes[i], t.highest(place)+1
		t.floor[place] = sort.Search(levels, func(level int) bool { return a.room(level) >= count })
		if t.floor[place] == levels {
			return false
		}
	}
	return true
}

// room is how many members all domains can have together, and those that are in none, if the fewest of a domain is level.
func (a *axis) room(level int) int {
	room := a.sizes[unlabeled]
	for _, size := range a.sizes[1:] {
		room += min(size, level+a.skew)
	}
	return room
}

// highest is the level to begin with: any but 0 is of no use where the skew does not matter.
func (t *tree) highest(place int) int {
	if a := &t.axes[t.chain[place]]; a.skew < t.wanted {
		return a.level
	}
	return 0
}

// bound works out the bounds of all nodes by the levels. It returns how many members there can be, -1 if the bounds cannot be kept.
func (t *tree) bound() int {
	clear(t.sum)
	copy(t.room, t.direct)
	for v := len(t.parent) - 1; v > 0; v-- {
		if t.parent[v] < 0 {
			continue
		}
		level := t.levels[t.depth[v]]
		t.low[v], t.top[v] = level, level+t.axes[t.chain[t.depth[v]]].skew
		need, room := max(t.low[v], t.sum[v]), min(t.top[v], t.room[v])
		if need > room {
			return -1
		}
		t.sum[t.parent[v]] += need
		t.room[t.parent[v]] += room
	}
	t.top[0] = t.wanted
	if t.sum[0] > t.wanted {
		return -1
	}
	return min(t.room[0], t.wanted)
}

// choose makes the best choice that there is with the levels.
func (t *tree) choose(into *choice) {
	into.picked, into.worth = into.picked[:0], worth{}
	most := t.bound()
	t.steps += len(t.order)
	for _, m := range t.order {
		if len(into.picked) == most {
			break
		}
		if t.take(t.nodeOf[m.cell]) {
			into.picked = append(into.picked, m)
			into.worth = into.worth.plus(t.worthOf(m))
		}
	}
}

// take puts one more into a node, if the bounds can still be kept then.
func (t *tree) take(node int32) bool {
	// Who fills up what there has to be takes nothing from anybody further up.
	for v := node; v >= 0 && t.sum[v] >= t.low[v]; v = t.parent[v] {
		if t.sum[v] >= t.top[v] {
			return false
		}
	}
	for v := node; v >= 0; v = t.parent[v] {
		t.sum[v]++
		if t.sum[v] <= t.low[v] {
			break
		}
	}
	return true
}

// better reports whether a is the better choice. Of two that are worth the same it is the one that has the best of the members
// that only one of them has.
func (t *tree) better(a, b *choice) bool {
	if c := a.worth.compare(b.worth); c != 0 {
		return c > 0
	}
	for i := range a.picked {
		if x, y := a.picked[i], b.picked[i]; x != y {
			if p, q := t.cells[x.cell].lacks, t.cells[y.cell].lacks; p != q {
				return p < q
			}
			return t.candidates.Better(int(x.slot), int(y.slot))
		}
	}
	return false
}
