package groupspread

import (
	"cmp"
	"math"
	"slices"

	"github.com/muster-sdk/muster/scheduler"
)

// ranking is the groups of a constraint that has more than it may choose from.
type ranking struct {
	*selection
	least, most int // groups to choose from
	groups      []group
	skip        []bool // by group, from None on: is chosen already
}

// group is the clusters of a group that could be chosen.
type group struct {
	number int
	size   int
	best   []int32 // slots, the best first; with PickN
	worths []worth // of the best so many; with PickAll of all
	head   int     // the best
}

// worth is what some clusters are worth together.
type worth struct {
	total int64 // of scores, see points
	bound int   // how many stay
}

func (w worth) plus(v worth) worth { return worth{w.total + v.total, w.bound + v.bound} }

func (w worth) compare(v worth) int {
	return cmp.Or(cmp.Compare(w.total, v.total), cmp.Compare(w.bound, v.bound))
}

// points are millionths of a score. Unlike fractions they add up to the same in any order.
func points(score float64) int64 { return int64(math.Round(score * 1e6)) }

func (s *selection) worthOf(slot int) worth {
	w := worth{points(s.candidates.Score(slot)), 0}
	if s.bound.Has(slot) {
		w.bound = 1
	}
	return w
}

func (s *selection) compare(a, b int32) int {
	if s.candidates.Better(int(a), int(b)) {
		return -1
	}
	return 1
}

// start makes a group of each size that is not 0, and returns the place of each group, by its number from None on.
func (r *ranking) start(sizes []int) []int {
	places := make([]int, len(sizes))
	for number, size := range sizes {
		places[number] = len(r.groups)
		if size > 0 && number > 0 {
			r.groups = append(r.groups, group{number: number + scheduler.None, size: size, head: -1})
		}
	}
	return places
}

// passes reports whether the ranking is not about a group.
func (r *ranking) passes(group int) bool {
	return group == scheduler.None || r.skip[group-scheduler.None]
}

// sum makes the groups of all clusters.
func (r *ranking) sum(groups *scheduler.Groups, sizes []int) {
	sizes[0] = 0
	places := r.start(sizes)
	for i := range r.groups {
		r.groups[i].worths = make([]worth, 1)
	}
	for slot := range r.candidates.Left().All() {
		if r.passes(groups.Of(slot)) {
			continue
		}
		g := &r.groups[places[groups.Of(slot)-scheduler.None]]
		g.worths[0] = g.worths[0].plus(r.worthOf(slot))
		if g.head < 0 || r.candidates.Better(slot, g.head) {
			g.head = slot
		}
	}
	r.sort()
}

// gather makes the groups of the clusters that could be chosen when so many are wanted.
func (r *ranking) gather(groups *scheduler.Groups, sizes []int, wanted int) {
	sizes[0] = 0
	places := r.start(sizes)
	limit := wanted - r.least + 1
	room := 0
	for i := range r.groups {
		room += min(r.groups[i].size, 2*limit)
	}
	memory := make([]int32, room)
	for i := range r.groups {
		g := &r.groups[i]
		n := min(g.size, 2*limit)
		g.best, memory = memory[:0:n], memory[n:]
	}
	// A list is cut back to its limit each time that it is twice as long. From then on most clusters are no match for its
	// last.
	for slot := range r.candidates.Left().All() {
		if r.passes(groups.Of(slot)) {
			continue
		}
		g := &r.groups[places[groups.Of(slot)-scheduler.None]]
		if g.head >= 0 && !r.candidates.Better(slot, g.head) {
			continue
		}
		g.best = append(g.best, int32(slot))
		if len(g.best) == 2*limit {
			slices.SortFunc(g.best, r.compare)
			g.best = g.best[:limit]
			g.head = int(g.best[limit-1]) // the last, for now
		}
	}
	for i := range r.groups {
		g := &r.groups[i]
		g.size = min(g.size, limit)
		slices.SortFunc(g.best, r.compare)
		g.best = g.best[:g.size]
		g.head = int(g.best[0])
		g.worths = make([]worth, g.size)
		var sum worth
		for n, slot := range g.best {
			sum = sum.plus(r.worthOf(int(slot)))
			g.worths[n] = sum
		}
	}
	r.sort()
}

// sort puts the groups that rank higher first.
func (r *ranking) sort() {
	slices.SortFunc(r.groups, func(a, b group) int {
		x, y := a.worths[len(a.worths)-1], b.worths[len(b.worths)-1]
		return cmp.Or(cmp.Compare(y.total, x.total), b.size-a.size, y.bound-x.bound, r.compare(int32(a.head), int32(b.head)))
	})
}

// maxSteps bounds the search for the greatest total.
const maxSteps = 1 << 22

// choose returns the groups to choose from.
func (r *ranking) choose(wanted int) map[int]bool {
	chosen := map[int]bool{}
	if wanted >= 0 {
		all := r.possible(wanted)
		if len(r.groups)*r.most*all*all <= maxSteps {
			r.greatest(all, chosen)
		} else {
			r.highest(all, chosen)
		}
	}
	for i := range r.groups { // what is still open goes to the groups that rank highest
		if len(chosen) < r.most {
			chosen[r.groups[i].number] = true
		}
	}
	return chosen
}

// possible is how many clusters can be chosen.
func (r *ranking) possible(wanted int) int {
	sizes := r.sizes()
	return min(wanted, sum(sizes[:min(r.most, len(sizes))]))
}

// sizes are the sizes of all groups, the greatest first.
func (r *ranking) sizes() []int {
	sizes := make([]int, len(r.groups))
	for i := range r.groups {
		sizes[i] = r.groups[i].size
	}
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	return sizes
}

func sum(of []int) int {
	all := 0
	for _, n := range of {
		all += n
	}
	return all
}

// highest chooses the groups that rank highest among those with which there can be so many clusters.
func (r *ranking) highest(all int, chosen map[int]bool) {
	rest, have := r.sizes(), 0
	for i := range r.groups {
		g := &r.groups[i]
		if len(chosen) == r.most {
			return
		}
		at := slices.Index(rest, g.size)
		rest = slices.Delete(rest, at, at+1)
		if more := min(len(rest), r.most-len(chosen)-1); have+g.size+sum(rest[:more]) >= all {
			chosen[g.number] = true
			have += g.size
		}
	}
}

// greatest chooses the groups with the greatest total for so many clusters: what a group has of the clusters is worth
// so much, and the rest is a question of the same kind for the groups after it.
func (r *ranking) greatest(all int, chosen map[int]bool) {
	most := min(r.most, len(r.groups), all)
	// By how many groups and clusters there are yet to be: what the groups so far make of it at best; bound < 0: they
	// cannot.
	width := all + 1
	best := make([]worth, (most+1)*width)
	for i := range best {
		best[i].bound = -1
	}
	best[0] = worth{}
	takes := make([]int32, len(r.groups)*len(best)) // by group, and as above: how many it takes
	for i := len(r.groups) - 1; i >= 0; i-- {
		g := &r.groups[i]
		take := takes[i*len(best):][:len(best)]
		for groups := most; groups > 0; groups-- {
			for clusters := 1; clusters <= all; clusters++ {
				at := groups*width + clusters
				for n := 1; n <= min(g.size, clusters); n++ {
					before := best[at-width-n]
					if before.bound < 0 {
						continue
					}
					if w := before.plus(g.worths[n-1]); best[at].bound < 0 || w.compare(best[at]) >= 0 {
						best[at], take[at] = w, int32(n)
					}
				}
			}
		}
	}
	groups := r.least
	for n := r.least; n <= most; n++ {
		if at := n*width + all; best[at].bound >= 0 &&
			(best[groups*width+all].bound < 0 || best[at].compare(best[groups*width+all]) > 0) {
			groups = n
		}
	}
	for i, at := 0, groups*width+all; i < len(r.groups); i++ {
		if n := int(takes[i*len(best)+at]); n > 0 {
			chosen[r.groups[i].number] = true
			at -= width + n
		}
	}
}
