package replicas

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// check returns the order of the clusters by name, or nil if they are already in this order. For an invalid request it
// returns the error of the first invalid field.
func check(r Request) (order []int32, err error) {
	strategies := []Strategy{Duplicated, StaticWeight, DynamicWeight, Aggregated}
	if !slices.Contains(strategies, r.Strategy) {
		return nil, field.NotSupported(field.NewPath("strategy"), r.Strategy, strategies)
	}
	if r.Replicas < 0 {
		return nil, field.Invalid(field.NewPath("replicas"), r.Replicas, notNegative)
	}
	sorted, weighted := true, false
	for i := range r.Clusters {
		c := &r.Clusters[i]
		if c.Name == "" || c.Weight < 0 || c.Capacity < 0 || c.Current < 0 {
			return nil, checkCluster(i, c)
		}
		weighted = weighted || c.Weight > 0
		sorted = sorted && (i == 0 || r.Clusters[i-1].Name < c.Name)
	}
	if r.Strategy == StaticWeight && !weighted && len(r.Clusters) > 0 && r.Replicas > 0 {
		return nil, field.Invalid(field.NewPath("clusters"), "every weight is 0",
			"no replica can be placed: give at least one cluster a weight, or every cluster the weight 1 for equal shares")
	}
	if sorted {
		return nil, nil
	}
	return byName(r.Clusters)
}

const notNegative = "must not be negative"

func checkCluster(i int, c *Target) error {
	path := clusterPath(i)
	switch {
	case c.Name == "":
		return field.Required(path.Child("name"), "must not be empty")
	case c.Weight < 0:
		return field.Invalid(path.Child("weight"), c.Weight, notNegative)
	case c.Capacity < 0:
		return field.Invalid(path.Child("capacity"), c.Capacity, notNegative+"; use Unbounded for no limit")
	default:
		return field.Invalid(path.Child("current"), c.Current, notNegative)
	}
}

func clusterPath(i int) *field.Path { return field.NewPath("clusters").Index(i) }

// byName returns the order of the clusters by name. It returns an error if two names are equal.
func byName(clusters []Target) ([]int32, error) {
	order := make([]int32, len(clusters))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(strings.Compare(clusters[a].Name, clusters[b].Name), cmp.Compare(a, b))
	})
	for i := 1; i < len(order); i++ {
		if name := clusters[order[i]].Name; name == clusters[order[i-1]].Name {
			return nil, field.Duplicate(clusterPath(int(order[i])).Child("name"), name)
		}
	}
	return order, nil
}

// hash returns a hash of a workload's key and a cluster's name: FNV-1a, followed by the finalizer of SplitMix64
// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). The finalizer makes all orders of
// clusters equally frequent even if their names differ only in the last letter. The function must never change, because
// ties would be broken differently.
func hash(key, name string) uint64 {
	h := uint64(14695981039346656037)
	for _, part := range []string{key, "\x00", name} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
