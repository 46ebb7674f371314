package replicas

import (
	"math/big"
	"slices"
	"strings"
)

// naive is a simple implementation of the weighted strategies, as a reference for Divide. It assigns one replica after
// the other and uses fractions.
func naive(r Request) Result {
	clusters := slices.SortedFunc(slices.Values(r.Clusters), func(a, b Target) int {
		return strings.Compare(a.Name, b.Name)
	})
	shares := make([]Share, len(clusters))
	limit := make([]int32, len(clusters))
	existing, roomiest := int64(0), int32(1)
	for i, c := range clusters {
		shares[i].Name, limit[i] = c.Name, c.Capacity
		existing += int64(min(c.Current, c.Capacity))
		if c.Capacity != Unbounded {
			roomiest = max(roomiest, c.Capacity)
		}
	}
	left := int64(r.Replicas)
	steady := r.Strategy == DynamicWeight && !r.Fresh
	for i, c := range clusters {
		switch {
		case steady && existing > int64(r.Replicas):
			limit[i] = min(c.Current, c.Capacity)
		case steady:
			shares[i].Replicas = min(c.Current, c.Capacity)
		}
		left -= int64(shares[i].Replicas)
	}
	average := func(i int) *big.Rat {
		weight := clusters[i].Weight
		switch {
		case r.Strategy == StaticWeight:
		case limit[i] == Unbounded:
			weight = int64(roomiest)
		default:
			weight = int64(limit[i])
		}
		return big.NewRat(weight, 2*int64(shares[i].Replicas)+1)
	}
	for ; left > 0; left-- {
		best := -1
		for i := range clusters {
			if shares[i].Replicas == limit[i] || average(i).Sign() == 0 {
				continue
			}
			if best < 0 {
				best = i
				continue
			}
			has, bestHas := clusters[i].Current > shares[i].Replicas, clusters[best].Current > shares[best].Replicas
			order := average(i).Cmp(average(best))
			fewer := shares[i].Replicas - shares[best].Replicas
			if order > 0 || order == 0 && has && !bestHas || order == 0 && has == bestHas && fewer < 0 ||
				order == 0 && has == bestHas && fewer == 0 && r.Key != "" &&
					hash(r.Key, clusters[i].Name) < hash(r.Key, clusters[best].Name) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		shares[best].Replicas++
	}
	return Result{Shares: shares, Unplaced: left}
}
