package topologyspread

import (
	"cmp"
	"slices"
)

// crossing is for constraints whose domains do not nest, such as regions and providers. With three of them it is a hard
// problem to find out how many members there can be, so this does not try to: it begins with none and goes on, step by
// step, to what is better, and no step breaks a constraint that must not be broken.
type crossing struct {
	*spread
	sorted []int    // cells, those with the better members first
	next   []int    // by cell: how many of its best are chosen
	taken  [][]int  // by axis and part
	worth  worth    // of what is chosen
	now    standing // of what has been found so far
	looks  int
}

// standing is what a choice is worth, with by how much each constraint is broken.
type standing struct {
	worth
	excess [maxConstraints]int
}

// compare is positive if s is better than t.
func (s standing) compare(t standing) int {
	return cmp.Or(s.count-t.count, t.lacks-s.lacks, slices.Compare(t.excess[:], s.excess[:]), s.worth.compare(t.worth))
}

// maxLooks is how many choices are looked at to put two in, or one in place of another.
const maxLooks = 1 << 17

func newCrossing(s *spread) *crossing {
	c := &crossing{spread: s, next: make([]int, len(s.cells)), taken: s.none()}
	for i := range s.cells {
		if len(s.cells[i].best) > 0 {
			c.sorted = append(c.sorted, i)
		}
	}
	slices.SortFunc(c.sorted, func(i, j int) int { return s.compare(s.cells[i].best[0], s.cells[j].best[0]) })
	return c
}

func (c *crossing) solve() []member {
	for c.add() || c.addTwo() || c.swap() {
	}
	var picked []member
	for i, n := range c.next {
		for _, slot := range c.cells[i].best[:n] {
			picked = append(picked, member{slot, int32(i)})
		}
	}
	return picked
}

// add chooses the member that it is best to have besides.
func (c *crossing) add() bool {
	if c.now.count == c.wanted {
		return false
	}
	var ends [maxConstraints]ends
	for i := range c.axes {
		ends[i] = c.axes[i].ends(c.taken[i])
	}
	best, found := -1, c.now
next:
	for _, cell := range c.sorted {
		if c.next[cell] == len(c.cells[cell].best) {
			continue
		}
		after := standing{worth: c.worth.plus(c.worthOf(member{c.cells[cell].best[c.next[cell]], int32(cell)}))}
		for i := range c.axes {
			a, part := &c.axes[i], c.cells[cell].parts[i]
			e := ends[i]
			if part != unlabeled {
				e = e.plus(c.taken[i][part])
			}
			if after.excess[i] = e.excess(a.maxSkew); after.excess[i] > 0 && !a.anyway {
				continue next
			}
		}
		if after.compare(found) > 0 {
			best, found = cell, after
		}
	}
	if best < 0 {
		return false
	}
	c.move(+1, best)
	c.now = found
	return true
}

// addTwo chooses two that only go together, or in place of one.
func (c *crossing) addTwo() bool {
	if c.now.count == c.wanted {
		return false
	}
	for i, first := range c.sorted {
		if !c.can(+1, first) {
			continue
		}
		c.move(+1, first)
		for _, second := range c.sorted[i:] {
			if !c.can(+1, second) {
				continue
			}
			c.move(+1, second)
			if c.settle() {
				return true
			}
			for _, without := range c.sorted {
				if without == first || without == second || !c.can(-1, without) {
					continue
				}
				c.move(-1, without)
				if c.settle() {
					return true
				}
				c.move(+1, without)
			}
			c.move(-1, second)
		}
		c.move(-1, first)
	}
	return false
}

// swap chooses a better one in place of another.
func (c *crossing) swap() bool {
	for _, without := range c.sorted {
		if !c.can(-1, without) {
			continue
		}
		c.move(-1, without)
		for _, with := range c.sorted {
			if with == without || !c.can(+1, with) {
				continue
			}
			c.move(+1, with)
			if c.settle() {
				return true
			}
			c.move(-1, with)
		}
		c.move(+1, without)
	}
	return false
}

// settle stays with what is chosen by now, if it is better than what there was.
func (c *crossing) settle() bool {
	after, ok := c.look()
	if !ok || after.compare(c.now) <= 0 {
		return false
	}
	c.now = after
	return true
}

// can reports whether a cell can have one more, or one fewer.
func (c *crossing) can(change, cell int) bool {
	n := c.next[cell] + change
	return n >= 0 && n <= len(c.cells[cell].best) && c.looks < maxLooks
}

// move gives a cell one more or one fewer.
func (c *crossing) move(change, cell int) {
	if change > 0 {
		c.worth = c.worth.plus(c.worthOf(member{c.cells[cell].best[c.next[cell]], int32(cell)}))
	}
	c.next[cell] += change
	if change < 0 {
		c.worth = c.worth.minus(c.worthOf(member{c.cells[cell].best[c.next[cell]], int32(cell)}))
	}
	for i := range c.axes {
		c.taken[i][c.cells[cell].parts[i]] += change
	}
}

// look finds out how things stand; false: not as they may.
func (c *crossing) look() (standing, bool) {
	c.looks++
	s := standing{worth: c.worth}
	for i := range c.axes {
		a := &c.axes[i]
		if s.excess[i] = a.ends(c.taken[i]).excess(a.maxSkew); s.excess[i] > 0 && !a.anyway {
			return s, false
		}
	}
	return s, s.count <= c.wanted
}
