package decision

import (
	"cmp"
	"slices"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Slice is the content of one PlacementDecision.
type Slice struct {
	// Index identifies the slice among those of its placement. It is never negative.
	Index int
	// Decisions has at most [v1alpha1.MaxDecisions] entries.
	Decisions []v1alpha1.ClusterDecision
}

// Lay distributes the chosen clusters over slices, given the existing slices in any order. chosen is in the order in
// which new clusters are placed, and contains no cluster twice. Lay returns all desired slices, sorted by index.
// Existing slices that are not among them must be deleted. Lay does not change its arguments.
func Lay(before []Slice, chosen []v1alpha1.ClusterDecision) []Slice {
	wanted := make(map[string]v1alpha1.ClusterDecision, len(chosen))
	for _, decision := range chosen {
		wanted[decision.ClusterName] = decision
	}
	laid := make([]Slice, 0, len(before)+1)
	for _, slice := range slices.SortedFunc(slices.Values(before), byIndex) {
		kept := Slice{Index: slice.Index}
		for _, decision := range slice.Decisions {
			now, stays := wanted[decision.ClusterName]
			if !stays || len(kept.Decisions) == v1alpha1.MaxDecisions {
				continue
			}
			// A cluster can be in two slices because of two writers or a manual copy. It stays in the first one.
			delete(wanted, decision.ClusterName)
			kept.Decisions = append(kept.Decisions, now)
		}
		laid = append(laid, kept)
	}
	room := 0
	for _, decision := range chosen {
		if _, isNew := wanted[decision.ClusterName]; !isNew {
			continue
		}
		for room < len(laid) && len(laid[room].Decisions) == v1alpha1.MaxDecisions {
			room++
		}
		if room == len(laid) {
			laid = append(laid, Slice{Index: firstFree(laid)})
			slices.SortFunc(laid, byIndex)
			room = slices.IndexFunc(laid, func(s Slice) bool { return len(s.Decisions) < v1alpha1.MaxDecisions })
		}
		laid[room].Decisions = append(laid[room].Decisions, decision)
	}
	return slices.DeleteFunc(laid, func(s Slice) bool { return len(s.Decisions) == 0 })
}

func byIndex(a, b Slice) int { return cmp.Compare(a.Index, b.Index) }

// firstFree returns the lowest index that no slice has.
func firstFree(sorted []Slice) int {
	for i, slice := range sorted {
		if slice.Index != i {
			return i
		}
	}
	return len(sorted)
}
