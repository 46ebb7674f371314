package topologyspread

import (
	"cmp"
	"slices"
)

// crossing is a local search for three or more families, and for a search that exceeded its limit. It starts with a
// choice and improves it step by step. No step violates a DoNotSchedule constraint.
type crossing struct {
	*spread
	sorted      []int    // cells in descending order of their best members
	next        []int    // by cell: number of chosen members, the best first
	taken       [][]int  // by axis and part: number of chosen members
	worth       worth    // of the current choice
	kept        []int    // by cell: the value of next in the best choice so far
	now         position // of the best choice so far
	evaluations int
}

// position is the worth of a choice and the excess of each constraint.
type position struct {
	worth
	excess [maxConstraints]int
}

// compare returns a positive number if s is better than t, and a negative one if t is better.
func (s position) compare(t position) int {
	return cmp.Or(s.count-t.count, t.lacks-s.lacks, slices.Compare(t.excess[:], s.excess[:]), s.worth.compare(t.worth))
}

// maxEvaluations is the maximum number of exchanges.
const maxEvaluations = 1 << 17

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
	c.now, _ = c.evaluate()
	return c
}

// solve tries exchanges of few members before exchanges of more members, and starts again with few after an
// improvement.
func (c *crossing) solve() []member {
	c.addMembers()
	for changes := 2; changes <= len(c.order) && !c.limitReached(); changes++ {
		if c.improve(changes) {
			c.addMembers()
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

// addMembers adds members one by one while possible.
func (c *crossing) addMembers() {
	for c.add() {
	}
}

// improve tries exchanges that add and remove this number of members in total.
func (c *crossing) improve(changes int) bool {
	for out := range changes/2 + 1 {
		if in := changes - out; c.now.count+in-out <= c.wanted && c.exchange(0, in, out) {
			return true
		}
	}
	return false
}

// add adds the best additional member. It reports whether there is one.
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
	return c.acceptIfBetter()
}

// exchange adds in members from the cells at index from and later, and then removes out members. It reports whether the
// result is better. Otherwise it restores the choice.
func (c *crossing) exchange(from, in, out int) bool {
	c.evaluations++
	if in+out == 0 {
		return c.acceptIfBetter()
	}
	change := +1
	if in == 0 {
		change = -1
	}
	for i := from; i < len(c.sorted) && !c.limitReached(); i++ {
		cell := c.sorted[i]
		if !c.canMove(change, cell) {
			continue
		}
		c.move(change, cell)
		var better bool
		switch in {
		case 0:
			better = c.exchange(i, 0, out-1)
		case 1:
			better = c.exchange(0, 0, out) // members may be removed from any cell
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

// limitReached reports whether the limit of exchanges is reached or the context has ended.
func (c *crossing) limitReached() bool { return c.evaluations >= maxEvaluations || c.err() != nil }

// canMove reports whether a cell can get one more member, or can lose one and has not got one in this exchange.
func (c *crossing) canMove(change, cell int) bool {
	if change > 0 {
		return c.next[cell] < len(c.cells[cell].best)
	}
	return c.next[cell] > 0 && c.next[cell] <= c.kept[cell]
}

// move adds a member to a cell or removes one.
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

// acceptIfBetter accepts the current choice if it is better than the best one so far.
func (c *crossing) acceptIfBetter() bool {
	after, possible := c.evaluate()
	if !possible {
		return false
	}
	if by := after.compare(c.now); by < 0 || by == 0 && !c.hasBestMember() {
		return false
	}
	c.now = after
	copy(c.kept, c.next)
	return true
}

// hasBestMember reports whether the best member that is in only one of the two choices is in the current one.
func (c *crossing) hasBestMember() bool {
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

// evaluate returns the position of the current choice, and whether the choice is valid.
func (c *crossing) evaluate() (position, bool) {
	s := position{worth: c.worth}
	for i := range c.axes {
		a := &c.axes[i]
		if s.excess[i] = a.ends(c.taken[i]).excess(a.maxSkew); s.excess[i] > 0 && !a.anyway {
			return s, false
		}
	}
	return s, s.count <= c.wanted
}
