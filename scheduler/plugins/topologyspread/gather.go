package topologyspread

import (
	"cmp"
	"math"
	"slices"

	"github.com/muster-sdk/muster/scheduler"
)

// spread is the state of one decision.
type spread struct {
	candidates *scheduler.Candidates
	snapshot   *scheduler.Snapshot
	bound      scheduler.Set
	wanted     int
	axes       []axis
	members    int // number of clusters that may be chosen
	cells      []cell
	at         []int32  // by slot: the cell of a member; nil if there is one axis, whose parts are the cells
	order      []member // the best members of each cell, sorted by inOrder
	steps      int      // steps of the search so far, see maxSteps
	err        func() error
}

// axis is a constraint and the parts into which it divides the members.
type axis struct {
	constraint
	groups  *scheduler.Groups
	sizes   []int // by part: number of members
	domains int   // number of parts that are domains
	skew    int   // the permitted skew: maxSkew, or the least possible skew above it
	highest int   // the maximum number that every domain can have
	low     int   // lower bound of the minimum per domain
	high    int   // upper bound of the minimum per domain
}

// A part contains the members with one value of the label. Its number is that of the group plus 1. Part 0 contains the
// members without the label. Parts without members are no domains.
const unlabeled = 0

func (a *axis) part(slot int) int { return a.groups.Of(slot) - scheduler.None }

// cell contains the members that are in the same part of each axis. For the constraints they are equivalent, so the
// best of them are chosen.
type cell struct {
	parts [maxConstraints]int32
	size  int
	lacks int     // number of missing labels
	best  []int32 // slots, the best first
}

// member is a cluster and its cell.
type member struct{ slot, cell int32 }

// gather computes the domains, and drops the clusters that lack the label of a DoNotSchedule constraint.
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
		s.computeAxisCells(left)
	} else {
		s.computeCells(left)
	}
	s.measure()
	return s
}

// labeled returns the set of the clusters that have a label.
func labeled(snapshot *scheduler.Snapshot, key string) scheduler.Set {
	return snapshot.Where("label:"+key, func(c *scheduler.Cluster) bool {
		_, has := c.Labels[key]
		return has
	})
}

// computeAxisCells computes the cells of a single axis. The cells are its parts.
func (s *spread) computeAxisCells(left scheduler.Set) {
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

// computeCells computes the cells of several axes.
func (s *spread) computeCells(left scheduler.Set) {
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

// measure computes the sizes of the parts and the limits of each axis.
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
		if a.anyway && len(s.axes) == 1 { // with several axes, the least possible skew depends on the others
			a.skew = max(a.skew, a.top(all)-a.highest)
		}
	}
}

// top returns the least limit per domain with which all domains together can have a number of members.
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

// rank computes the best members of each cell, up to the number that can be chosen, and sorts all of them.
func (s *spread) rank() {
	limits := make([]int, len(s.cells))
	room, total := 0, 0
	for i := range s.cells {
		c := &s.cells[i]
		limits[i] = min(c.size, s.wanted)
		for j := range s.axes {
			// With several axes, the excess of ScheduleAnyway constraints is not known yet.
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
	// A list is sorted and truncated to its limit when its length reaches twice the limit. Afterwards most members are
	// excluded by one comparison with its last element, or two if scores are equal.
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

// inOrder compares members: those with fewer missing labels come first, and then the better ones.
func (s *spread) inOrder(a, b member) int {
	if x, y := s.cells[a.cell].lacks, s.cells[b.cell].lacks; x != y {
		return x - y
	}
	return s.compare(a.slot, b.slot)
}

// compare compares members like [scheduler.Candidates], but with scores rounded to millionths, as in the sum of the
// scores.
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
