package crds_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestStatus_OfEarlierAgents checks that the status of an agent that does not shorten names and paths is accepted: the
// manifest of an object that cannot exist must not hide the state of the others.
func TestStatus_OfEarlierAgents(t *testing.T) {
	c := installed(t)
	work := named("earlier", of(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`))
	create(t, c, work)
	long := strings.Repeat("x", 1000)
	work.Status.Manifests = []v1alpha1.ManifestStatus{{
		ResourceIdentifier: v1alpha1.ResourceIdentifier{Group: long, Version: long, Kind: long, Resource: long,
			Namespace: long, Name: long},
		Diffs: []v1alpha1.FieldDiff{{Path: strings.Repeat(".spec", 800)}},
	}}
	require.NoError(t, c.Status().Update(t.Context(), work))
}
