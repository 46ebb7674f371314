package workset

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement"
)

// TestOptions checks that contradictory options are an error of the setup that names the field.
func TestOptions(t *testing.T) {
	named := func(cluster string) string { return cluster }
	var clusters struct{ placement.ClusterSource }
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{Workers: -1}, "workset.Options.Workers: must not be negative"},
		{Options{Writers: -1}, "workset.Options.Writers: must not be negative"},
		{Options{Clusters: clusters}, "workset.Options.Namespace: is required with Clusters"},
		{Options{Namespace: named}, "workset.Options.Namespace: must not be set without Clusters"},
	} {
		_, err := test.options.withDefaults()
		require.ErrorContains(t, err, test.want)
	}
	o, err := Options{Clusters: clusters, Namespace: named}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, "a", o.Namespace("a"))
}
