package division_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/division"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/replicas"
)

// fleet is the input of a division.
type fleet struct {
	spec     *v1alpha1.ReplicaDivision
	objects  []bundle.Object
	clusters []division.Cluster
	capacity map[bundle.Key]map[string]int32 // in total, including the current replicas
}

func draw(t *rapid.T) fleet {
	small := rapid.Int32Range(0, 12)
	f := fleet{spec: &v1alpha1.ReplicaDivision{Strategy: rapid.SampledFrom([]v1alpha1.DivisionStrategy{
		v1alpha1.DivisionDuplicated, v1alpha1.DivisionStaticWeight, v1alpha1.DivisionDynamicWeight,
		v1alpha1.DivisionAggregated,
	}).Draw(t, "strategy")}, capacity: map[bundle.Key]map[string]int32{}}
	parsed := func(format string, args ...any) bundle.Object {
		o, err := bundle.Parse(fmt.Appendf(nil, format, args...))
		require.NoError(t, err)
		return o
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "workloads") {
		n := rapid.OneOf(small.AsAny(), rapid.SampledFrom([]any{int32(1000), int32(2147483647), "null", -1, `"x"`})).Draw(t,
			"replicas")
		f.objects = append(f.objects,
			parsed(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"w%d"},"spec":{"replicas":%v}}`, i, n))
	}
	f.objects = append(f.objects,
		parsed(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"config"},"spec":{"replicas":7}}`))
	for c := range rapid.IntRange(0, 6).Draw(t, "clusters") {
		cluster := division.Cluster{Cluster: &scheduler.Cluster{Name: fmt.Sprintf("c%d", c)}, Current: map[bundle.Key]int32{}}
		for i := range f.objects {
			o := f.objects[i]
			switch rapid.IntRange(0, 9).Draw(t, "override") {
			case 0:
				continue
			case 1:
				o = parsed(
					`{"apiVersion":"%s","kind":"%s","metadata":{"name":"%s","labels":{"cluster":"%s"}},"spec":{"replicas":%d}}`,
					apiVersion(&o), o.Kind, o.Name, cluster.Name, small.Draw(t, "overridden"))
			}
			cluster.Objects = append(cluster.Objects, o)
		}
		for i := range f.objects {
			key := f.objects[i].Key()
			if f.capacity[key] == nil {
				f.capacity[key] = map[string]int32{}
			}
			capacity := rapid.OneOf(small, rapid.Just(replicas.Unbounded)).Draw(t, "capacity")
			if rapid.Bool().Draw(t, "has replicas") {
				cluster.Current[key] = min(small.Draw(t, "current"), capacity)
			}
			f.capacity[key][cluster.Name] = capacity
		}
		f.clusters = append(f.clusters, cluster)
		if f.spec.Strategy == v1alpha1.DivisionStaticWeight && rapid.Bool().Draw(t, "has a weight") {
			f.spec.Weights = append(f.spec.Weights, v1alpha1.ClusterWeight{
				Clusters: v1alpha1.ClusterSelector{Names: []string{cluster.Name}}, Weight: small.Draw(t, "weight")})
		}
	}
	return f
}

func apiVersion(o *bundle.Object) string {
	if o.Group == "" {
		return o.Version
	}
	return o.Group + "/" + o.Version
}

// room returns the remaining capacity.
func (f *fleet) room(clusters []division.Cluster) func(bundle.Key, string) int32 {
	current := map[string]map[bundle.Key]int32{}
	for i := range clusters {
		current[clusters[i].Name] = clusters[i].Current
	}
	return func(workload bundle.Key, cluster string) int32 {
		if f.capacity[workload][cluster] == replicas.Unbounded {
			return replicas.Unbounded
		}
		return f.capacity[workload][cluster] - current[cluster][workload]
	}
}

// numbers returns the number of replicas of each workload in the objects of each cluster.
func numbers(t *rapid.T, d *division.Division, shares []division.Share) []map[bundle.Key]int32 {
	var out []map[bundle.Key]int32
	for i := range shares {
		out = append(out, d.Current(shares[i].Objects))
		sum := int64(0)
		for _, n := range out[i] {
			sum += int64(n)
		}
		require.Equal(t, min(sum, int64(replicas.Unbounded)), int64(shares[i].Replicas))
	}
	return out
}

// failures returns the workloads that errors are about.
func failures(t *rapid.T, err error) map[bundle.Key]bool {
	out := map[bundle.Key]bool{}
	if err == nil {
		return out
	}
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
		failure, isError := errors.AsType[*division.Error](err)
		require.True(t, isError)
		out[bundle.Key{Group: failure.Object.Group, Kind: failure.Object.Kind, Namespace: failure.Object.Namespace,
			Name: failure.Object.Name}] = true
	}
	return out
}

// setTo returns the object with a number of replicas, by decoding and encoding it.
func setTo(t *rapid.T, o bundle.Object, n int32, divided bool) bundle.Object {
	if !divided {
		return o
	}
	var content map[string]any
	require.NoError(t, utiljson.Unmarshal(o.JSON, &content))
	content["spec"].(map[string]any)["replicas"] = int64(n)
	out, err := bundle.Of(content)
	require.NoError(t, err)
	return out
}

func TestDivide_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := draw(t)
		d, err := division.New(f.spec)
		require.NoError(t, err)
		before := make([][]bundle.Object, len(f.clusters))
		for i := range f.clusters {
			before[i] = slices.Clone(f.clusters[i].Objects)
		}
		result, err := d.Divide(f.objects, f.clusters, f.room(f.clusters))
		require.Len(t, result.Clusters, len(f.clusters))
		for i := range before {
			require.Empty(t, gocmp.Diff(before[i], f.clusters[i].Objects), "Divide must not change its argument")
		}
		if f.spec.Strategy == v1alpha1.DivisionDuplicated {
			require.NoError(t, err)
			require.Empty(t, result.Unplaced)
			for i := range before {
				require.Empty(t, gocmp.Diff(before[i], result.Clusters[i].Objects), "Duplicated must not change the objects")
			}
			numbers(t, d, result.Clusters)
			return
		}

		// All workloads that can be divided are divided, and nothing else is changed.
		got := numbers(t, d, result.Clusters)
		unplaced := map[bundle.Key]int64{}
		for _, u := range result.Unplaced {
			unplaced[u.Workload] = u.Replicas
		}
		failed := failures(t, err)
		for _, w := range d.Workloads(f.objects, f.clusters) {
			sum := unplaced[w.Key]
			for i := range got {
				n, found := got[i][w.Key]
				require.Equal(t, slices.Contains(w.Clusters, f.clusters[i].Name), found,
					"clusters with the object have a number of replicas")
				sum += int64(n)
				require.LessOrEqual(t, n, f.capacity[w.Key][f.clusters[i].Name])
				if found && failed[w.Key] {
					require.Equal(t, f.clusters[i].Current[w.Key], n, "the current replicas of a failed workload stay")
				}
			}
			if !failed[w.Key] {
				require.Equal(t, int64(w.Replicas), sum)
			}
			delete(unplaced, w.Key)
		}
		require.Empty(t, unplaced)
		for i := range result.Clusters {
			require.Len(t, result.Clusters[i].Objects, len(before[i]))
			for j, o := range result.Clusters[i].Objects {
				n, divided := got[i][o.Key()]
				require.Equal(t, setTo(t, before[i][j], n, divided), o)
			}
		}

		// The order of the clusters has no effect.
		indices := make([]int, len(f.clusters))
		for i := range indices {
			indices[i] = i
		}
		order := rapid.Permutation(indices).Draw(t, "order")
		var reordered []division.Cluster
		for _, i := range order {
			reordered = append(reordered, f.clusters[i])
		}
		other, _ := d.Divide(f.objects, reordered, f.room(f.clusters))
		for at, i := range order {
			require.Empty(t, gocmp.Diff(result.Clusters[i], other.Clusters[at]))
		}

		// A second division has the same result.
		again := slices.Clone(f.clusters)
		for i := range again {
			again[i].Current = got[i]
		}
		steady, err := d.Divide(f.objects, again, f.room(again))
		require.Empty(t, gocmp.Diff(result, steady))
		require.Equal(t, failed, failures(t, err))
	})
}
