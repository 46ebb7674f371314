package topologyspread

import (
	"cmp"
	"slices"
)

// crossing is for constraints that make three families or more, and for a search that was cut short. It begins with a
// choice and goes on, step by step, to what is better, and no step breaks a constraint that must not be broken.
type crossing struct {
	*spread
	sorted []int    // cells, those with the better members first
	next   []int    // by cell: how many of its best are chosen
	taken  [][]int  // by axis and part
	worth  worth    // of what is chosen
	kept   []int    // by cell: what next was in the best choice so far
	now    position // of that
	looks  int
}

// position is what a choice is worth, with by how much each constraint is broken.
type position struct {
	worth
	excess [maxConstraints]int
}

// compare is positive if s is better than t.
func (s position) compare(t position) int {
	return cmp.Or(s.count-t.count, t.lacks-s.lacks, slices.Compare(t.excess[:], s.excess[:]), s.worth.compare(t.worth))
}

// maxLooks is how many exchanges are begun.
const maxLooks = 1 << 17

func newCrossing(s *spread, picked []member) *crossing {
	c := &crossing{spread: s, next: make([]int, len(s.cells)), kept: make([]int, len(s.cells)), taken: s.none()}
	for i := range s.cells {
		if len(s.cells[i].best) > 0 {
			c.sorted = append(c.sorted, i)
		}
	}
	slices.SortFunc(c.sorted, func(i, j int) int { return s.compare(s.cells[i].best[0], s.cells[j].best[0]) })
	for _, m := range picked {
		c.move(+1, int(m.cell))
	}
	copy(c.kept, c.next)
	c.now, _ = c.look()
	return c
}

// solve exchanges few members rather than many, and goes back to few when that was for the better.
func (c *crossing) solve() []member {
	c.fill()
	for changes := 2; changes <= len(c.order) && !c.over(); changes++ {
		if c.improve(changes) {
			c.fill()
			changes = 1
		}
	}
	var picked []member
	for i, n := range c.next {
		for _, slot := range c.cells[i].best[:n] {
			picked = append(picked, member{slot, int32(i)})
		}
	}
	return picked
}

// fill chooses what can be chosen besides, one by one.
func (c *crossing) fill() {
	for c.add() {
	}
}

// improve looks for something better at a distance of so many members.
func (c *crossing) improve(changes int) bool {
	for out := range changes/2 + 1 {
		if in := changes - out; c.now.count+in-out <= c.wanted && c.exchange(0, in, out) {
			return true
		}
	}
	return false
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
		after := position{worth: c.worth.plus(c.worthOf(member{c.cells[cell].best[c.next[cell]], int32(cell)}))}
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
	return c.settle()
}

// exchange chooses so many more in the cells from a place on, then takes so many out. It reports whether that is for
// the better, else all is as before.
func (c *crossing) exchange(from, in, out int) bool {
	c.looks++
	if in+out == 0 {
		return c.settle()
	}
	change := +1
	if in == 0 {
		change = -1
	}
	for i := from; i < len(c.sorted) && !c.over(); i++ {
		cell := c.sorted[i]
		if !c.can(change, cell) {
			continue
		}
		c.move(change, cell)
		var better bool
		switch in {
		case 0:
			better = c.exchange(i, 0, out-1)
		case 1:
			better = c.exchange(0, 0, out) // those that are taken out can be from any place
		default:
			better = c.exchange(i, in-1, out)
		}
		if better {
			return true
		}
		c.move(-change, cell)
	}
	return false
}

// over reports whether there is no more time.
func (c *crossing) over() bool { return c.looks >= maxLooks || c.err() != nil }

// can reports whether a cell can have one more, or one fewer and has not been given one more.
func (c *crossing) can(change, cell int) bool {
	if change > 0 {
		return c.next[cell] < len(c.cells[cell].best)
	}
	return c.next[cell] > 0 && c.next[cell] <= c.kept[cell]
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

// settle stays with what is chosen by now, if it is better than what there was.
func (c *crossing) settle() bool {
	after, possible := c.look()
	if !possible {
		return false
	}
	if by := after.compare(c.now); by < 0 || by == 0 && !c.ahead() {
		return false
	}
	c.now = after
	copy(c.kept, c.next)
	return true
}

// ahead reports whether what is chosen by now has the best of the members that are not both in it and in what there
// was.
func (c *crossing) ahead() bool {
	best, ahead := member{slot: -1}, false
	for i, n := range c.next {
		if n == c.kept[i] {
			continue
		}
		m := member{c.cells[i].best[min(n, c.kept[i])], int32(i)}
		if best.slot < 0 || c.inOrder(m, best) < 0 {
			best, ahead = m, n > c.kept[i]
		}
	}
	return ahead
}

// look finds out how things stand; false: not as they may.
func (c *crossing) look() (position, bool) {
	s := position{worth: c.worth}
	for i := range c.axes {
		a := &c.axes[i]
		if s.excess[i] = a.ends(c.taken[i]).excess(a.maxSkew); s.excess[i] > 0 && !a.anyway {
			return s, false
		}
	}
	return s, s.count <= c.wanted
}
