package replicas

import (
	"testing"

	"pgregory.net/rapid"
)

// TestDivide_FewestMoves checks that StaticWeight moves the fewest replicas of all divisions by Webster's method.
func TestDivide_FewestMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Request{Replicas: rapid.Int32Range(1, 7).Draw(t, "replicas"), Strategy: StaticWeight}
		for _, name := range []string{"ash", "birch", "cedar", "elm"}[:rapid.IntRange(1, 4).Draw(t, "clusters")] {
			r.Clusters = append(r.Clusters, Target{Name: name, Weight: rapid.Int64Range(1, 3).Draw(t, "weight"),
				Capacity: rapid.Int32Range(2, 7).Draw(t, "capacity"), Current: rapid.Int32Range(0, 3).Draw(t, "current")})
		}
		result := divide(t, r)
		if result.Unplaced > 0 {
			return
		}
		got := make([]int32, len(r.Clusters))
		for i, s := range result.Shares {
			got[i] = s.Replicas
		}
		if !isWebster(r.Clusters, got) {
			t.Fatalf("%v is not a division by Webster's method", got)
		}
		forEachDivision(r.Clusters, r.Replicas, func(other []int32) {
			if isWebster(r.Clusters, other) && moves(r.Clusters, other) < moves(r.Clusters, got) {
				t.Fatalf("%v moves more replicas than %v", got, other)
			}
		})
	})
}

// isWebster reports whether a division satisfies the definition of Webster's method: the last replica of no party has a
// lower average than the next replica of another party would have (Balinski and Young, Fair Representation, appendix
// A).
func isWebster(clusters []Target, seats []int32) bool {
	for i, a := range clusters {
		for j, b := range clusters {
			if seats[i] > 0 && seats[j] < b.Capacity && a.Weight*int64(2*seats[j]+1) < b.Weight*int64(2*seats[i]-1) {
				return false
			}
		}
	}
	return true
}

func moves(clusters []Target, seats []int32) (n int32) {
	for i, c := range clusters {
		n += max(c.Current-seats[i], seats[i]-c.Current)
	}
	return n
}

func forEachDivision(clusters []Target, n int32, do func([]int32)) {
	seats := make([]int32, len(clusters))
	var from func(i int, n int32)
	from = func(i int, n int32) {
		if i == len(clusters) {
			if n == 0 {
				do(seats)
			}
			return
		}
		for seats[i] = range min(n, clusters[i].Capacity) + 1 {
			from(i+1, n-seats[i])
		}
	}
	from(0, n)
}

// TestDivide_FewestClusters checks against all sets of clusters that no set smaller than the one of Aggregated has the
// capacity and keeps the replicas that must be kept.
func TestDivide_FewestClusters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := someRequest(t, []Strategy{Aggregated})
		result := divide(t, r)
		used, existing := 0, int64(0)
		for _, s := range result.Shares {
			if s.Replicas > 0 {
				used++
			}
		}
		for _, c := range r.Clusters {
			existing += int64(min(c.Current, c.Capacity))
		}
		for set := range 1 << len(r.Clusters) {
			size, capacity, kept := 0, int64(0), int64(0)
			for i, c := range r.Clusters {
				if set&(1<<i) == 0 {
					continue
				}
				size++
				kept += int64(min(c.Current, c.Capacity))
				if r.Fresh || existing <= int64(r.Replicas) {
					capacity += int64(c.Capacity)
				} else {
					capacity += int64(min(c.Current, c.Capacity))
				}
			}
			keepsReplicas := r.Fresh || existing > int64(r.Replicas) || kept == existing
			if keepsReplicas && capacity >= int64(r.Replicas) && size < used {
				t.Fatalf("%d clusters are used, want %d (set %b)", used, size, set)
			}
		}
	})
}
