package groupspread

import (
	"slices"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// minimum is a constraint that needs clusters of more groups.
type minimum struct {
	constraint *v1alpha1.GroupSpreadConstraint
	groups     *scheduler.Groups
	served     []bool // by group
	missing    int
}

// recordChosen records that a cluster was chosen.
func (m *minimum) recordChosen(slot int) {
	if group := m.groups.Of(slot); group != scheduler.None && !m.served[group] {
		m.served[group] = true
		m.missing--
	}
}

// pick chooses clusters from the chosen groups so that all minGroups are satisfied, and drops the others. If the best
// clusters already satisfy them, it drops nothing and leaves the choice to the framework.
func (s *selection) pick(constraints []v1alpha1.GroupSpreadConstraint) *scheduler.Status {
	left, wanted := s.candidates.Left(), s.candidates.Wanted()
	if len(s.missing(constraints, s.candidates.Best(left, wanted))) == 0 {
		return nil
	}
	var staying []int32
	chosen := scheduler.NewSet(s.snapshot.Slots())
	for slot := range s.kept.All() {
		staying = append(staying, int32(slot))
		chosen.Add(slot)
	}
	minima := s.missing(constraints, staying)
	contenders := s.nextCandidates(minima)
	for n := len(staying); n < wanted; n++ {
		best := s.next(minima, contenders)
		if best < 0 {
			rest := left.Clone()
			rest.Discard(chosen)
			for _, slot := range s.candidates.Best(rest, wanted-n) {
				chosen.Add(int(slot))
			}
			break
		}
		chosen.Add(best)
		for i := range minima {
			minima[i].recordChosen(best)
		}
	}
	for i := range minima {
		if m := &minima[i]; m.missing > 0 {
			c := m.constraint
			return scheduler.Rejectf(
				"finds only %d of the %d required groups of label %s, given the other constraints",
				int(c.MinGroups)-m.missing, c.MinGroups, c.Label)
		}
	}
	first := &constraints[slices.IndexFunc(constraints, func(c v1alpha1.GroupSpreadConstraint) bool {
		return c.MinGroups > 0
	})]
	groups := s.snapshot.Label(first.Label)
	for slot := range left.All() {
		if !chosen.Has(slot) {
			s.candidates.Drop(slot, func() string {
				return "is in " + noun(first.Label) + " " + groups.Name(groups.Of(slot)) + ", which has its share"
			})
		}
	}
	return nil
}

// missing returns the constraints that need clusters of more groups in addition to the chosen clusters.
func (s *selection) missing(constraints []v1alpha1.GroupSpreadConstraint, chosen []int32) []minimum {
	var out []minimum
	for i := range constraints {
		c := &constraints[i]
		groups := s.snapshot.Label(c.Label)
		m := minimum{constraint: c, groups: groups, served: make([]bool, groups.Len()), missing: int(c.MinGroups)}
		for _, slot := range chosen {
			m.recordChosen(int(slot))
		}
		if m.missing > 0 {
			out = append(out, m)
		}
	}
	return out
}

// nextCandidates returns the clusters that may be chosen next. For a single minimum this is the best cluster of each
// group.
func (s *selection) nextCandidates(minima []minimum) scheduler.Set {
	left := s.candidates.Left().Clone()
	left.Discard(s.kept)
	if len(minima) > 1 {
		return left
	}
	best := make([]int, len(minima[0].served)) // by group: its slot, from 1
	for slot := range left.All() {
		if at := &best[minima[0].groups.Of(slot)]; *at == 0 || s.candidates.Better(slot, *at-1) {
			*at = slot + 1
		}
	}
	out := scheduler.NewSet(s.snapshot.Slots())
	for _, at := range best {
		if at > 0 {
			out.Add(at - 1)
		}
	}
	return out
}

// next returns the best of the clusters that serve the most constraints. It returns -1 if no cluster serves any.
func (s *selection) next(minima []minimum, contenders scheduler.Set) int {
	best, most := -1, 0
	for slot := range contenders.All() {
		serves := 0
		for i := range minima {
			if m := &minima[i]; m.missing > 0 && !m.served[m.groups.Of(slot)] {
				serves++
			}
		}
		if serves > most || serves > 0 && serves == most && s.candidates.Better(slot, best) {
			best, most = slot, serves
		}
	}
	return best
}
