package topologyspread

// tree computes the choice for one family. The sets within nested bounds form a matroid, so a greedy algorithm is
// optimal: it takes the best members first, and skips only those with which the bounds could not be satisfied. The
// result has the most members, the greatest total, and among equal totals the better members one by one.
type tree struct {
	*spread
	family
	direct []int // by node: members that are in no child node
	low    []int // by node: lower and upper bound
	top    []int
	sum    []int // by node: members chosen or required, in its child nodes and of its own
	room   []int // by node: maximum number of members
}

func newTree(s *spread, f family) *tree {
	nodes := len(f.parent)
	memory := make([]int, 5*nodes)
	t := &tree{
		spread: s, family: f, low: memory[:nodes], top: memory[nodes : 2*nodes],
		sum: memory[2*nodes : 3*nodes], room: memory[3*nodes : 4*nodes], direct: memory[4*nodes:],
	}
	for j := range s.cells {
		t.direct[f.nodeOf[j]] += len(s.cells[j].best)
	}
	return t
}

// count returns the maximum number of members, or -1 if the bounds cannot be satisfied.
func (t *tree) count() int {
	t.steps += len(t.parent)
	clear(t.sum)
	copy(t.room, t.direct)
	for v := len(t.parent) - 1; v > 0; v-- {
		if t.parent[v] < 0 {
			continue
		}
		t.low[v], t.top[v] = t.axes[t.axis[v]].bounds()
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

func (t *tree) choose(into *choice) bool {
	into.picked, into.worth = into.picked[:0], worth{}
	most := t.count()
	t.steps += len(t.order)
	for _, m := range t.order {
		if len(into.picked) >= most {
			break
		}
		if t.take(t.nodeOf[m.cell]) {
			into.picked = append(into.picked, m)
			into.worth = into.worth.plus(t.worthOf(m))
		}
	}
	return most >= 0
}

// take adds a member to a node if the bounds can still be satisfied. It reports whether it did.
func (t *tree) take(node int32) bool {
	// A member that fills a lower bound uses no capacity of the nodes above.
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
