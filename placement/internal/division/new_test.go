package division_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/internal/division"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func TestNew_RefusesInvalidDivision(t *testing.T) {
	for _, test := range []struct {
		reason, spec string
		want         []string
	}{
		{"fields that the API server refuses", `{strategy: Aggregated, weights: [{clusters: {}, weight: -1}]}`,
			[]string{"invalid division of replicas: ", "weights: Forbidden", "weights[0].clusters: ", "weights[0].weight: "}},
		{"an unknown strategy", `{strategy: Even}`, []string{"strategy: Unsupported value"}},
		{"an invalid label selector",
			`{strategy: StaticWeight, weights: [{clusters: {labelSelector: {matchExpressions: [{key: ` +
				`a, operator: Near}]}}, weight: 1}]}`, []string{"weights[0].clusters.labelSelector"}},
		{
			"expressions that do not compile", `{strategy: StaticWeight, weights: [{clusters: {names: [a]}, ` +
				`weight: 1}, {clusters: {cel: ["true", "cluster."]}, weight: 1}, {clusters: {cel: ["5"]}, weight: 1}]}`,
			[]string{"invalid division of replicas: ", "weights[1].clusters.cel[1]", "weights[2].clusters.cel[0]"},
		},
	} {
		d, err := division.New(read[v1alpha1.ReplicaDivision](t, test.spec))
		require.Nil(t, d, test.reason)
		for _, want := range test.want {
			require.ErrorContains(t, err, want, test.reason)
		}
	}
}

func TestNew_CopiesItsArgument(t *testing.T) {
	spec := read[v1alpha1.ReplicaDivision](t, `{strategy: StaticWeight, objects: [{group: apps, name: web}], `+
		`weights: [{clusters: {names: [a], labelSelector: {matchLabels: {region: eu}}, cel: ["true"]}, weight: 1}]}`)
	d, err := division.New(spec)
	require.NoError(t, err)
	spec.Strategy, spec.Weights[0].Weight = "", 7
	*spec.Objects[0].Group, spec.Objects[0].Name = "", "other"
	spec.Weights[0].Clusters.Names[0], spec.Weights[0].Clusters.CEL[0] = "b", "false"
	spec.Weights[0].Clusters.LabelSelector.MatchLabels["region"] = "us"

	objects := parse(t, deployment("web", "3"), deployment("other", "3"))
	clusters := members(t, objects, "{}")
	want, err := d.Divide(objects, clusters, nil)
	require.NoError(t, err)
	require.Equal(t, int32(3), want.Clusters[0].Replicas)
	require.Equal(t, int32(0), want.Clusters[1].Replicas)
	require.Equal(t, objects[1], want.Clusters[1].Objects[1])

	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				got, err := d.Divide(objects, clusters, nil)
				if err != nil || got.Clusters[0].Replicas != 3 || len(d.Workloads(objects, clusters)) != 1 ||
					len(d.Current(objects)) != 1 {
					t.Error("a concurrent call has another result", err)
				}
			}
		})
	}
	all.Wait()
}
