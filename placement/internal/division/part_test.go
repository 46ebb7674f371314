package division_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/division"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// parties returns clusters named a, b and so on, each with its Part and its current replicas of a workload.
func parties(objects []bundle.Object, parts []division.Part, current []int32) []division.Cluster {
	out := make([]division.Cluster, len(parts))
	for i, part := range parts {
		out[i] = division.Cluster{
			Cluster: &scheduler.Cluster{Name: string(rune('a' + i))}, Objects: objects, Part: part,
			Current: map[bundle.Key]int32{objects[0].Key(): current[i]},
		}
	}
	return out
}

func TestDivide_Parts(t *testing.T) {
	const takes, keeps, waits = division.Takes, division.Keeps, division.Waits
	for _, test := range []struct {
		reason   string
		spec     string
		replicas int
		parts    []division.Part
		current  []int32
		want     []int32 // of the clusters with Takes or Waits
	}{
		{"the first cluster of a rollout gets its own share only", `{strategy: StaticWeight}`, 12,
			[]division.Part{takes, waits, waits, waits}, []int32{0, 0, 0, 0}, []int32{3, 3, 3, 3}},
		{"clusters with Takes keep the replicas that waiting clusters do not have yet", `{strategy: StaticWeight}`, 12,
			[]division.Part{takes, takes, waits, waits}, []int32{6, 6, 0, 0}, []int32{6, 6, 3, 3}},
		{"a cluster that no longer waits gets its share at once", `{strategy: StaticWeight}`, 12,
			[]division.Part{takes, takes, takes, waits}, []int32{6, 6, 0, 0}, []int32{4, 4, 4, 3}},
		{"fewer replicas are removed while clusters wait", `{strategy: StaticWeight}`, 8,
			[]division.Part{takes, takes, waits, waits}, []int32{6, 6, 0, 0}, []int32{4, 4, 2, 2}},
		{"additional replicas for waiting clusters are not assigned to others",
			`{strategy: StaticWeight}`, 40, []division.Part{takes, takes, waits, waits},
			[]int32{6, 6, 0, 0}, []int32{10, 10, 10, 10}},
		{"replicas for a waiting cluster stay where they are",
			`{strategy: StaticWeight, weights: [{clusters: {names: [b]}, weight: 1}]}`, 12, []division.Part{takes, waits},
			[]int32{12, 0}, []int32{12, 12}},
		{"the replicas of a cluster with Keeps are subtracted",
			`{strategy: StaticWeight}`, 12, []division.Part{takes, keeps, takes},
			[]int32{4, 4, 4}, []int32{4, 4}},
		{"a cluster with Keeps may have more than all replicas",
			`{strategy: StaticWeight}`, 6, []division.Part{takes, keeps, takes}, []int32{4, 10, 4},
			[]int32{0, 0}},
		{"a cluster with Keeps and without replicas leaves all to the others",
			`{strategy: StaticWeight}`, 12, []division.Part{takes, keeps, takes},
			[]int32{4, 0, 4}, []int32{6, 6}},
		{"the weight of a cluster with Keeps is ignored",
			`{strategy: StaticWeight, weights: [{clusters: {names: [b]}, weight: 9}, {clusters: {names: [a, c]}, weight: 1}]}`,
			12, []division.Part{takes, keeps, takes}, []int32{4, 4, 4}, []int32{4, 4}},
		{"DynamicWeight: replicas stay where they are", `{strategy: DynamicWeight}`, 12, []division.Part{takes, takes, waits},
			[]int32{6, 6, 0}, []int32{6, 6, 0}},
		{"Aggregated: waiting clusters get no replicas", `{strategy: Aggregated}`, 12,
			[]division.Part{takes, keeps, waits}, []int32{8, 4, 0}, []int32{8, 0}},
		{"Duplicated: only Keeps has an effect", `{strategy: Duplicated}`, 5,
			[]division.Part{takes, keeps, waits}, []int32{5, 5, 0}, []int32{5, 5}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			objects := parse(t,
				fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: %d}}`, test.replicas))
			result, err := divided(t, test.spec).Divide(objects, parties(objects, test.parts, test.current), nil)
			require.NoError(t, err)
			var got []int32
			for i, share := range result.Clusters {
				if test.parts[i] == keeps {
					require.Equal(t, division.Share{}, share)
					continue
				}
				got = append(got, share.Replicas)
			}
			require.Equal(t, test.want, got)
			require.Empty(t, result.Unplaced)
		})
	}
}

// TestDivide_PartsKeepTheSum checks for random Parts that the clusters with Takes together have no fewer replicas than
// before, or than there are for them, and that no more replicas run than there are.
func TestDivide_PartsKeepTheSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int32Range(0, 30).Draw(t, "replicas")
		object, err := bundle.Parse(
			fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":%d}}`, n))
		require.NoError(t, err)
		parts := rapid.SliceOfN(rapid.SampledFrom([]division.Part{division.Takes, division.Keeps, division.Waits}), 1,
			6).Draw(t, "parts")
		current := make([]int32, len(parts))
		kept, had, waiting, taking := int32(0), int32(0), false, false
		for i, part := range parts {
			switch part {
			case division.Waits:
				waiting = true
				continue
			case division.Keeps:
				current[i] = rapid.Int32Range(0, 10).Draw(t, "current")
				kept += current[i]
			case division.Takes:
				current[i] = rapid.Int32Range(0, 10).Draw(t, "current")
				had, taking = had+current[i], true
			}
		}
		d, err := division.New(&v1alpha1.ReplicaDivision{Strategy: rapid.SampledFrom([]v1alpha1.DivisionStrategy{
			v1alpha1.DivisionStaticWeight, v1alpha1.DivisionDynamicWeight, v1alpha1.DivisionAggregated,
		}).Draw(t, "strategy")})
		require.NoError(t, err)
		objects := []bundle.Object{object}
		result, err := d.Divide(objects, parties(objects, parts, current), nil)
		require.NoError(t, err)
		assigned := int32(0)
		for i := range parts {
			if parts[i] == division.Takes {
				assigned += result.Clusters[i].Replicas
			}
		}
		remaining := max(n-kept, 0)
		require.LessOrEqual(t, assigned, remaining)
		require.GreaterOrEqual(t, assigned, min(had, remaining))
		if taking && !waiting {
			require.Equal(t, remaining, assigned)
		}
	})
}
