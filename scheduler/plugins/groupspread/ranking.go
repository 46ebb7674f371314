package groupspread

import (
	"cmp"
	"math"
	"slices"

	"github.com/muster-sdk/muster/scheduler"
)

// ranking contains the groups of a constraint that has more groups than may be chosen.
type ranking struct {
	*selection
	least, most int // number of groups to choose
	groups      []group
	skip        []bool // by group, starting with None: already chosen
}

// group contains the clusters of a group that could be chosen.
type group struct {
	number int
	size   int
	best   []int32 // slots, the best first; with PickN
	worths []worth // PickN: of the n+1 best clusters, at index n; PickAll: of all clusters
	head   int     // slot of the best cluster
}

// worth is the value of a set of clusters.
type worth struct {
	total int64 // sum of the scores, see points
	bound int   // number of bound clusters
}

func (w worth) plus(v worth) worth { return worth{w.total + v.total, w.bound + v.bound} }

func (w worth) compare(v worth) int {
	return cmp.Or(cmp.Compare(w.total, v.total), cmp.Compare(w.bound, v.bound))
}

// points converts a score to millionths. The sum of integers does not depend on the order, unlike that of fractions.
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

// start creates a group for each size above 0. It returns the index of each group, by its number starting with None.
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

// passes reports whether the ranking ignores a group.
func (r *ranking) passes(group int) bool {
	return group == scheduler.None || r.skip[group-scheduler.None]
}

// sum computes the worth of each group from all of its clusters, for PickAll.
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

// gather computes the worth of each group from its best clusters, for PickN.
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
	// A list is sorted and truncated to its limit when its length reaches twice the limit. Afterwards most clusters are
	// excluded by a comparison with its last element.
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
			g.head = int(g.best[limit-1]) // temporarily the last of the best
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

// sort sorts the groups by descending rank.
func (r *ranking) sort() {
	slices.SortFunc(r.groups, func(a, b group) int {
		x, y := a.worths[len(a.worths)-1], b.worths[len(b.worths)-1]
		return cmp.Or(cmp.Compare(y.total, x.total), b.size-a.size, y.bound-x.bound, r.compare(int32(a.head), int32(b.head)))
	})
}

// maxSteps limits the search for the maximum total.
const maxSteps = 1 << 22

// choose returns the numbers of the chosen groups.
func (r *ranking) choose(wanted int) map[int]bool {
	chosen := map[int]bool{}
	if wanted >= 0 {
		all := r.possible(wanted)
		if len(r.groups)*r.most*all*all <= maxSteps {
			r.maximizeTotal(all, chosen)
		} else {
			r.highest(all, chosen)
		}
	}
	for i := range r.groups { // the highest-ranking groups fill the remaining places
		if len(chosen) < r.most {
			chosen[r.groups[i].number] = true
		}
	}
	return chosen
}

// possible returns the maximum number of clusters that can be chosen.
func (r *ranking) possible(wanted int) int {
	sizes := r.sizes()
	return min(wanted, sum(sizes[:min(r.most, len(sizes))]))
}

// sizes returns the sizes of all groups in descending order.
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

// highest chooses the highest-ranking groups with which the given number of clusters can be reached.
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

// maximizeTotal chooses the groups with the maximum total for the given number of clusters. It uses dynamic
// programming: the number of clusters of a group determines a smaller problem for the following groups.
func (r *ranking) maximizeTotal(all int, chosen map[int]bool) {
	most := min(r.most, len(r.groups), all)
	// best is indexed by the number of groups and clusters still to choose: the maximum worth by the groups processed so
	// far. A negative bound means that the combination is impossible.
	width := all + 1
	best := make([]worth, (most+1)*width)
	for i := range best {
		best[i].bound = -1
	}
	best[0] = worth{}
	takes := make([]int32, len(r.groups)*len(best)) // by group, then as in best: how many clusters it takes
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
