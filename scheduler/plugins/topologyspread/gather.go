package topologyspread

import (
	"cmp"
	"math"
	"slices"

	"github.com/muster-sdk/muster/scheduler"
)

// spread is one decision under way.
type spread struct {
	candidates *scheduler.Candidates
	snapshot   *scheduler.Snapshot
	bound      scheduler.Set
	wanted     int
	axes       []axis
	members    int // clusters that may be chosen
	cells      []cell
	at         []int32  // by slot: the cell of a member, if there are several axes; else that is its part
	order      []member // those that come into question, in the order in which they do
	steps      int      // of the search for the best choice
	err        func() error
}

// axis is a constraint with what it divides the members into.
type axis struct {
	constraint
	groups  *scheduler.Groups
	sizes   []int // by part: members
	domains int   // how many parts are domains
	skew    int   // what is kept: maxSkew, or as little more as there has to be
	highest int   // the most that every domain can have
	low     int   // what the domain with the fewest has at least
	high    int   // and at most
}

// A part is the members with one value of the label. It has the number of their group, from 1; part 0 is those without
// the label. Parts without members are no domains.
const unlabeled = 0

func (a *axis) part(slot int) int { return a.groups.Of(slot) - scheduler.None }

// cell is the members that are in the same part of each axis. One is as good as another for the constraints, so the
// best are chosen.
type cell struct {
	parts [maxConstraints]int32
	size  int
	lacks int     // labels
	best  []int32 // slots, the best first
}

// member is a cluster and its cell.
type member struct{ slot, cell int32 }

// gather finds out which domains there are, and drops the clusters that cannot be chosen for want of a label.
func gather(state *scheduler.CycleState, candidates *scheduler.Candidates, constraints []constraint) *spread {
	s := &spread{
		candidates: candidates, snapshot: state.Snapshot(), bound: state.Placed(), wanted: candidates.Wanted(),
		axes: make([]axis, len(constraints)),
	}
	left := candidates.Left()
	for i, c := range constraints {
		groups := s.snapshot.Label(c.key)
		s.axes[i] = axis{constraint: c, groups: groups, sizes: make([]int, groups.Len()+1)}
		if !c.anyway {
			lacking := left.Clone()
			lacking.Discard(labeled(s.snapshot, c.key))
			lacking.Discard(candidates.Kept())
			for slot := range lacking.All() {
				candidates.Drop(slot, func() string { return c.noLabel })
			}
		}
	}
	s.members = left.Len()
	if len(s.axes) == 1 {
		s.cutOnce(left)
	} else {
		s.cut(left)
	}
	s.measure()
	return s
}

// labeled is the set of the clusters that have a label.
func labeled(snapshot *scheduler.Snapshot, key string) scheduler.Set {
	return snapshot.Where("label:"+key, func(c *scheduler.Cluster) bool {
		_, has := c.Labels[key]
		return has
	})
}

// cutOnce makes the cells of a single axis, which are its parts.
func (s *spread) cutOnce(left scheduler.Set) {
	a := &s.axes[0]
	s.cells = make([]cell, len(a.sizes))
	cells, groups := s.cells, a.groups
	for slot := range left.All() {
		cells[groups.Of(slot)-scheduler.None].size++
	}
	for i := range s.cells {
		s.cells[i].parts[0] = int32(i)
	}
}

// cut makes the cells of several axes.
func (s *spread) cut(left scheduler.Set) {
	s.at = make([]int32, s.snapshot.Slots())
	known := map[[maxConstraints]int32]int32{}
	for slot := range left.All() {
		var parts [maxConstraints]int32
		for i := range s.axes {
			parts[i] = int32(s.axes[i].part(slot))
		}
		at, found := known[parts]
		if !found {
			at = int32(len(s.cells))
			known[parts] = at
			s.cells = append(s.cells, cell{parts: parts})
		}
		s.cells[at].size++
		s.at[slot] = at
	}
}

// measure sums up what there is of each part, and how far it goes.
func (s *spread) measure() {
	for i := range s.axes {
		a := &s.axes[i]
		for j := range s.cells {
			c := &s.cells[j]
			a.sizes[c.parts[i]] += c.size
			if c.parts[i] == unlabeled {
				c.lacks++
			}
		}
		least := math.MaxInt
		for _, size := range a.sizes[1:] {
			if size > 0 {
				a.domains++
				least = min(least, size)
			}
		}
		all := min(s.wanted, s.members-a.sizes[unlabeled])
		if a.domains > 0 && a.domains >= a.minDomains {
			a.highest = min(least, all/a.domains)
		}
		a.skew = a.maxSkew
		if a.anyway && len(s.axes) == 1 { // of several each depends on the others
			a.skew = max(a.skew, a.top(all)-a.highest)
		}
	}
}

// top is the least that a domain must be allowed to have so that all together have so many.
func (a *axis) top(all int) int {
	sizes := slices.Sorted(slices.Values(a.sizes[1:]))
	for i, size := range sizes {
		rest := len(sizes) - i
		if size*rest >= all {
			return (all + rest - 1) / rest
		}
		all -= size
	}
	return 0
}

// rank finds the best of each cell, as many as can be chosen at most, and brings them all into order.
func (s *spread) rank() {
	limits := make([]int, len(s.cells))
	room, total := 0, 0
	for i := range s.cells {
		c := &s.cells[i]
		limits[i] = min(c.size, s.wanted)
		for j := range s.axes {
			// How far several have to give way is not known yet.
			if a := &s.axes[j]; c.parts[j] != unlabeled && (len(s.axes) == 1 || !a.anyway) {
				limits[i] = min(limits[i], a.highest+a.skew)
			}
		}
		room += min(c.size, 2*limits[i])
		total += limits[i]
	}
	memory := make([]int32, room)
	for i := range s.cells {
		n := min(s.cells[i].size, 2*limits[i])
		s.cells[i].best, memory = memory[:0:n], memory[n:]
	}
	// A list is cut back to its limit each time that it is twice as long. From then on most members are no match for its
	// last: it takes one comparison to see that, or two where many are as good as each other.
	type bar struct {
		slot, rank int
		score      float64
	}
	bars := make([]bar, len(s.cells))
	for i := range bars {
		bars[i].score = -1
		if limits[i] == 0 {
			bars[i].score = math.Inf(1)
		}
	}
	candidates, snapshot, bound, cells := s.candidates, s.snapshot, s.bound, s.cells
	groups, cellAt, isEmpty := s.axes[0].groups, s.at, bound.Empty()
	for slot := range candidates.Left().All() {
		at := groups.Of(slot) - scheduler.None
		if cellAt != nil {
			at = int(cellAt[slot])
		}
		bar, score := &bars[at], candidates.Score(slot)
		if score < bar.score-1/million || score == bar.score && snapshot.Rank(slot) > bar.rank &&
			(isEmpty || !bound.Has(slot)) {
			continue
		}
		if bar.score >= 0 && s.compare(int32(slot), int32(bar.slot)) > 0 {
			continue
		}
		limit, c := limits[at], &cells[at]
		c.best = append(c.best, int32(slot))
		if len(c.best) == 2*limit {
			slices.SortFunc(c.best, s.compare)
			c.best = c.best[:limit]
			bar.slot = int(c.best[limit-1])
			bar.rank, bar.score = snapshot.Rank(bar.slot), candidates.Score(bar.slot)
		}
	}
	s.order = make([]member, 0, total)
	for i := range s.cells {
		c := &s.cells[i]
		slices.SortFunc(c.best, s.compare)
		c.best = c.best[:limits[i]]
		for _, slot := range c.best {
			s.order = append(s.order, member{slot, int32(i)})
		}
	}
	slices.SortFunc(s.order, s.inOrder)
}

// inOrder compares members: those that have the labels come before those that lack one, and the better before the
// worse.
func (s *spread) inOrder(a, b member) int {
	if x, y := s.cells[a.cell].lacks, s.cells[b.cell].lacks; x != y {
		return x - y
	}
	return s.compare(a.slot, b.slot)
}

// compare puts the better first, as [scheduler.Candidates] does, but by scores to the millionth: as they count for the
// total.
func (s *spread) compare(a, b int32) int {
	x, y := int(a), int(b)
	if p, q := s.candidates.Score(x), s.candidates.Score(y); p != q && points(p) != points(q) {
		return cmp.Compare(q, p)
	}
	if p := s.bound.Has(x); p != s.bound.Has(y) {
		if p {
			return -1
		}
		return 1
	}
	return cmp.Compare(s.snapshot.Rank(x), s.snapshot.Rank(y))
}
