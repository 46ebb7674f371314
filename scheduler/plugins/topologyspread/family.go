package topologyspread

import (
	"cmp"
	"slices"
)

// family is a set of constraints with nested domains. A single constraint is always a family. The nodes form a tree of
// the domains. The root, node 0, is the choice as a whole.
type family struct {
	parent []int32 // by node; -1: the root, and unused nodes
	axis   []int32 // by node
	nodeOf []int32 // by cell: the innermost node that contains it
}

// empty reports whether the family has no constraint.
func (f *family) empty() bool { return len(f.parent) == 1 }

// families divides the constraints into two families, of which the second may be empty. It reports whether this is
// possible.
func (s *spread) families() (first, second family, possible bool) {
	chain := make([]int, len(s.axes)) // the coarsest first
	for i := range chain {
		chain[i] = i
	}
	slices.SortStableFunc(chain, func(i, j int) int {
		a, b := &s.axes[i], &s.axes[j]
		return cmp.Or(a.domains-b.domains, a.sizes[unlabeled]-b.sizes[unlabeled])
	})
	for others := range 1 << (len(chain) - 1) {
		var of [2][]int
		for place, i := range chain {
			side := others << 1 >> place & 1
			of[side] = append(of[side], i)
		}
		if first, possible = s.nestedFamily(of[0]); !possible {
			continue
		}
		if second, possible = s.nestedFamily(of[1]); possible {
			return first, second, true
		}
	}
	return first, second, false
}

// nestedFamily returns the family of the axes. It reports whether their domains nest.
func (s *spread) nestedFamily(axes []int) (family, bool) {
	nodes := 1
	for _, i := range axes {
		nodes += len(s.axes[i].sizes)
	}
	memory := make([]int32, 2*nodes+len(s.cells))
	f := family{parent: memory[:nodes], axis: memory[nodes : 2*nodes], nodeOf: memory[2*nodes:]}
	for v := range f.parent {
		f.parent[v] = -1
	}
	first := int32(1) // first node of the axis; parts that are no domains have unused nodes
	for _, i := range axes {
		for j := range s.cells {
			part := s.cells[j].parts[i]
			if part == unlabeled || s.cells[j].size == 0 {
				continue
			}
			node := first + part
			if f.parent[node] < 0 {
				f.parent[node], f.axis[node] = f.nodeOf[j], int32(i)
			} else if f.parent[node] != f.nodeOf[j] {
				return family{}, false
			}
			f.nodeOf[j] = node
		}
		first += int32(len(s.axes[i].sizes))
	}
	return f, true
}
