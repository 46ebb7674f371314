package scheduler

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestSet checks that a set behaves like a sorted list of its slots.
func TestSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "slots")
		members := rapid.SliceOfDistinct(rapid.IntRange(0, n-1), rapid.ID[int])
		a, b := members.Draw(t, "a"), members.Draw(t, "b")
		of := func(slots []int) Set {
			s := NewSet(n)
			for _, slot := range slots {
				s.Add(slot)
			}
			return s
		}
		check := func(operation string, got Set, contains func(slot int) bool) {
			var want []int
			for slot := range n {
				if contains(slot) {
					want = append(want, slot)
				}
				if got.Has(slot) != contains(slot) {
					t.Fatalf("%s: slot %d: got %v", operation, slot, got.Has(slot))
				}
			}
			if diff := cmp.Diff(want, slices.Collect(got.All())); diff != "" || got.Len() != len(want) ||
				got.Empty() != (len(want) == 0) {
				t.Fatalf("%s: Len %d, Empty %v (-want +got)\n%s", operation, got.Len(), got.Empty(), diff)
			}
		}
		inA := func(slot int) bool { return slices.Contains(a, slot) }
		inB := func(slot int) bool { return slices.Contains(b, slot) }
		check("add", of(a), inA)
		s := of(a)
		s.Retain(of(b))
		check("retain", s, func(slot int) bool { return inA(slot) && inB(slot) })
		s = of(a)
		s.Discard(of(b))
		check("discard", s, func(slot int) bool { return inA(slot) && !inB(slot) })
		s = of(a)
		s.Insert(of(b))
		check("insert", s, func(slot int) bool { return inA(slot) || inB(slot) })
		s = of(a)
		clone := s.Clone()
		s.Clear()
		check("clear", s, func(int) bool { return false })
		check("clone", clone, inA)
		s = of(a)
		s.Retain(Set{}) // the set of a label value that no cluster has
		check("retain none", s, func(int) bool { return false })
		for _, slot := range a {
			clone.Remove(slot)
		}
		check("remove", clone, func(int) bool { return false })
		if (Set{}).Has(n) || !(Set{}).Empty() {
			t.Fatal("the zero value is not an empty set")
		}
	})
}
