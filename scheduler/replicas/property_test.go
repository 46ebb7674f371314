package replicas

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var (
	strategies = []Strategy{Duplicated, StaticWeight, DynamicWeight, Aggregated}
	divided    = strategies[1:]

	// Small numbers, for ties and full clusters; large ones, for overflow.
	someWeights = rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(0, 6), rapid.Int64Range(1, 1000),
		rapid.SampledFrom([]int64{math.MaxInt64, math.MaxInt64 - 1, 1 << 40}))
	someCapacities = rapid.OneOf(rapid.Int32Range(0, 8), rapid.Int32Range(0, 100),
		rapid.SampledFrom([]int32{Unbounded, Unbounded - 1}))
	someCurrents = rapid.OneOf(rapid.Just[int32](0), rapid.Int32Range(0, 8), rapid.Int32Range(0, 60))
	someReplicas = rapid.OneOf(rapid.Int32Range(0, 20), rapid.Int32Range(0, 300))
)

func someRequest(t *rapid.T, of []Strategy) Request {
	r := Request{
		Replicas: someReplicas.Draw(t, "replicas"),
		Strategy: rapid.SampledFrom(of).Draw(t, "strategy"),
		Fresh:    rapid.Bool().Draw(t, "fresh"),
		Key:      rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key"),
	}
	names := rapid.Permutation([]string{"ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "oak", "pine"}).Draw(t,
		"names")
	for _, name := range names[:rapid.IntRange(1, len(names)).Draw(t, "clusters")] {
		r.Clusters = append(r.Clusters, Target{
			Name:     name,
			Weight:   someWeights.Draw(t, "weight"),
			Capacity: someCapacities.Draw(t, "capacity"),
			Current:  someCurrents.Draw(t, "current"),
		})
	}
	r.Clusters[0].Weight = max(r.Clusters[0].Weight, 1)
	return r
}

func divide(t rapid.TB, r Request) Result {
	t.Helper()
	result, err := Divide(r)
	if err != nil {
		t.Fatalf("Divide(%+v): %v", r, err)
	}
	return result
}

func byClusters(result Result) map[string]int32 {
	all := map[string]int32{}
	for _, s := range result.Shares {
		all[s.Name] = s.Replicas
	}
	return all
}

// after returns the request after its result has been applied.
func after(r Request, result Result) Request {
	all := byClusters(result)
	r.Clusters = slices.Clone(r.Clusters)
	for i := range r.Clusters {
		r.Clusters[i].Current = all[r.Clusters[i].Name]
	}
	return r
}

func TestDivide_AgreesWithNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := someRequest(t, []Strategy{StaticWeight, DynamicWeight})
		if diff := cmp.Diff(naive(r), divide(t, r)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// TestDivide_ManyClustersAgreeWithNaive compares Divide with naive for so many clusters that jump searches for a rate.
func TestDivide_ManyClustersAgreeWithNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Request{Replicas: rapid.Int32Range(0, 3000).Draw(t, "replicas"), Strategy: StaticWeight}
		if rapid.Bool().Draw(t, "dynamic") {
			r.Strategy = DynamicWeight
		}
		spread := rapid.SampledFrom([]*rapid.Generator[int64]{rapid.Just[int64](1), rapid.Int64Range(1, 2),
			rapid.Int64Range(1, 1000), someWeights}).Draw(t, "spread")
		for i := range rapid.IntRange(1, 60).Draw(t, "clusters") {
			r.Clusters = append(r.Clusters, Target{Name: strconv.Itoa(1000 + i), Weight: spread.Draw(t, "weight"),
				Capacity: someCapacities.Draw(t, "capacity"), Current: someCurrents.Draw(t, "current")})
		}
		r.Clusters[0].Weight = max(r.Clusters[0].Weight, 1)
		if diff := cmp.Diff(naive(r), divide(t, r)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// TestDivide_SumsAndCapacities checks that placed and unplaced replicas add up, that no cluster exceeds its capacity,
// and that no replica is unplaced while a cluster has capacity.
func TestDivide_SumsAndCapacities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := someRequest(t, strategies)
		result := divide(t, r)
		all, wanted, sum := byClusters(result), int64(r.Replicas), result.Unplaced
		for _, c := range r.Clusters {
			got := all[c.Name]
			sum += int64(got)
			if got < 0 || got > c.Capacity {
				t.Fatalf("%s has %d replicas with a capacity of %d", c.Name, got, c.Capacity)
			}
			eligible := r.Strategy != StaticWeight || c.Weight > 0
			if result.Unplaced > 0 && got < min(c.Capacity, r.Replicas) && eligible {
				t.Fatalf("%s has capacity (%d of %d used), and %d replicas are unplaced", c.Name, got, c.Capacity, result.Unplaced)
			}
			if !eligible && got > 0 {
				t.Fatalf("%s has weight 0 and %d replicas", c.Name, got)
			}
		}
		if r.Strategy == Duplicated {
			wanted *= int64(len(r.Clusters))
		}
		if sum != wanted || len(result.Shares) != len(r.Clusters) {
			t.Fatalf("%d replicas, want %d; %d shares of %d clusters", sum, wanted, len(result.Shares), len(r.Clusters))
		}
	})
}

// TestDivide_HouseMonotonicity checks house monotonicity: no cluster loses replicas when the workload grows, and none
// gains replicas when it shrinks. The steps cross the size at which shrinking turns into growing.
func TestDivide_HouseMonotonicity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := someRequest(t, strategies)
		before := divide(t, r)
		for range rapid.IntRange(1, 20).Draw(t, "more") {
			r.Replicas++
			now := divide(t, r)
			for i, s := range now.Shares {
				if s.Replicas < before.Shares[i].Replicas {
					t.Fatalf("of %d replicas, %s has %d; of one replica fewer, %d", r.Replicas, s.Name, s.Replicas,
						before.Shares[i].Replicas)
				}
			}
			before = now
		}
	})
}

// TestDivide_MoreWeightOrCapacityGetsNoLess checks that a cluster does not get fewer replicas if only its weight or its
// capacity grows.
func TestDivide_MoreWeightOrCapacityGetsNoLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := someRequest(t, []Strategy{StaticWeight, DynamicWeight})
		c := &r.Clusters[0]
		if c.Capacity == Unbounded {
			c.Capacity--
		}
		before := byClusters(divide(t, r))[c.Name]
		if rapid.Bool().Draw(t, "weight") {
			c.Weight = rapid.Int64Min(c.Weight).Draw(t, "more weight")
		} else {
			// The weight of a cluster without a limit depends on the other clusters, which is another case.
			c.Capacity = rapid.Int32Range(c.Capacity, Unbounded-1).Draw(t, "more capacity")
		}
		existing := int64(0)
		for _, c := range r.Clusters {
			existing += int64(min(c.Current, c.Capacity))
		}
		if r.Strategy == DynamicWeight && !r.Fresh && existing > int64(r.Replicas) {
			return // the workload shrinks, which does not depend on the capacity
		}
		if now := byClusters(divide(t, r))[c.Name]; now < before {
			t.Fatalf("%s has %d replicas, and %d with less weight or capacity", c.Name, now, before)
		}
	})
}

func TestDivide_OrderOfClusters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := someRequest(t, strategies)
		want := divide(t, r)
		r.Clusters = rapid.Permutation(r.Clusters).Draw(t, "order")
		if diff := cmp.Diff(want, divide(t, r)); diff != "" {
			t.Fatalf("(-one order +another):\n%s", diff)
		}
	})
}

func TestDivide_IsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := someRequest(t, strategies)
		want := divide(t, r)
		if diff := cmp.Diff(want, divide(t, after(r, want))); diff != "" {
			t.Fatalf("(-first +second):\n%s", diff)
		}
	})
}

// TestDivide_MinimalMoves checks that clusters lose only replicas that exceed the workload or their capacity.
func TestDivide_MinimalMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := someRequest(t, []Strategy{DynamicWeight, Aggregated})
		r.Fresh = false
		all, removed, want, existing := byClusters(divide(t, r)), int64(0), int64(0), int64(0)
		for _, c := range r.Clusters {
			removed += int64(max(c.Current-all[c.Name], 0))
			want += int64(max(c.Current-c.Capacity, 0))
			existing += int64(min(c.Current, c.Capacity))
		}
		if want += max(existing-int64(r.Replicas), 0); removed != want {
			t.Fatalf("%d replicas were removed, want %d", removed, want)
		}
	})
}

// TestDivide_GrowthInSteps checks that growth in steps, as by an autoscaler, gives the same division as growth at once.
func TestDivide_GrowthInSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := someRequest(t, []Strategy{DynamicWeight, Aggregated})
		r.Fresh = false
		existing := int32(0)
		for _, c := range r.Clusters {
			existing += min(c.Current, c.Capacity)
		}
		r.Replicas = max(r.Replicas, existing)
		step := after(r, divide(t, r))
		r.Replicas += rapid.Int32Range(0, 40).Draw(t, "more")
		step.Replicas = r.Replicas
		if diff := cmp.Diff(divide(t, r), divide(t, step)); diff != "" {
			t.Fatalf("(-at once +in steps):\n%s", diff)
		}
	})
}

// TestDivide_KeysSpreadEvenly checks that workloads are spread evenly by their keys if all else is equal.
func TestDivide_KeysSpreadEvenly(t *testing.T) {
	clusters := []Target{}
	for i := range 5 {
		clusters = append(clusters, Target{Name: "member-" + strconv.Itoa(i), Weight: 1, Capacity: Unbounded})
	}
	const workloads = 5000
	for _, strategy := range divided {
		placed := map[string]int32{}
		for i := range workloads {
			r := Request{Replicas: 1, Strategy: strategy, Key: "workload-" + strconv.Itoa(i), Clusters: clusters}
			for name, n := range byClusters(divide(t, r)) {
				placed[name] += n
			}
		}
		even := map[string]int32{}
		for _, c := range clusters {
			even[c.Name] = workloads / int32(len(clusters))
		}
		// The standard deviation is 28.
		if diff := cmp.Diff(even, placed, cmp.Comparer(func(a, b int32) bool { return max(a-b, b-a) < 150 })); diff != "" {
			t.Errorf("%s (-even +got):\n%s", strategy, diff)
		}
	}
}
