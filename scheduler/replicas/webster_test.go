package replicas

import (
	"testing"

	"pgregory.net/rapid"
)

// TestJump checks that jump gives no cluster more replicas than single steps would, and that it leaves at most two
// replicas per cluster: one because the search ends early, and one because of the margin.
func TestJump(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := someRequest(t, []Strategy{StaticWeight, DynamicWeight})
		order, err := check(r)
		if err != nil {
			t.Fatal(err)
		}
		parties, n, room := enter(r, order), int64(r.Replicas), int64(0)
		if r.Strategy == DynamicWeight {
			change := keep(parties, r)
			setWeights(parties, change)
			n = change.more
		}
		for i := range parties {
			if p := &parties[i]; p.weight == 0 {
				p.limit = p.seats
			}
			room += int64(parties[i].room())
		}
		if room <= n {
			return
		}
		given, want := jump(parties, n), naive(r)
		for i, p := range parties {
			if p.seats > want.Shares[i].Replicas {
				t.Fatalf("%s has %d replicas, want at most %d", want.Shares[i].Name, p.seats, want.Shares[i].Replicas)
			}
		}
		if left := n - given; left < 0 || left > 2*int64(len(parties)) {
			t.Fatalf("%d of %d replicas are left for %d clusters", left, n, len(parties))
		}
	})
}

// TestJump_NewtonFails checks a case in which Newton's method alone fails. The large cluster makes the first rate a
// thousand times too high. At this rate the second cluster is full, so the slope does not show how far to go back.
func TestJump_NewtonFails(t *testing.T) {
	parties := []party{
		{weight: 1, limit: Unbounded},
		{weight: 1000, limit: 5000},
		{weight: 1, limit: Unbounded, seats: 1_000_000},
	}
	if left := 1000 - jump(parties, 1000); left < 0 || left > 6 {
		t.Errorf("%d replicas are left", left)
	}
}
