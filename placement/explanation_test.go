package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// TestExplanationOf_FitsInAStatus checks that the explanation of a large fleet with long reasons is within the limits
// of the API, and lists the chosen clusters first.
func TestExplanationOf_FitsInAStatus(t *testing.T) {
	diagnosis := &scheduler.Diagnosis{Wanted: 1, Total: 1000, Clusters: []scheduler.ClusterDiagnosis{
		{Name: "best", Outcome: scheduler.Chosen, Score: 12.34},
	}}
	for i := range 999 {
		diagnosis.Clusters = append(diagnosis.Clusters, scheduler.ClusterDiagnosis{
			Name: fmt.Sprintf("c%d", i), Outcome: scheduler.Rejected, Plugin: "P", Reason: strings.Repeat("é", 2000),
		})
	}
	is := explanationOf("r", diagnosis)
	require.Len(t, is.Clusters, 100)
	require.EqualValues(t, 900, is.Omitted)
	require.LessOrEqual(t, len(is.Message), 1024)
	require.Equal(t, v1alpha1.ClusterExplanation{Name: "best", Result: "Chosen", Score: "12.3"}, is.Clusters[0])
	require.LessOrEqual(t, len(is.Clusters[1].Reason), 256)
	require.Empty(t, is.Clusters[1].Score)
}

// TestMatters_Explain checks that adding and removing a request for an explanation each cause a decision.
func TestMatters_Explain(t *testing.T) {
	plain, asks := &v1alpha1.Placement{}, &v1alpha1.Placement{}
	asks.Annotations = map[string]string{v1alpha1.ExplainAnnotation: "1"}
	require.True(t, needsDecision(plain, asks))
	require.True(t, needsDecision(asks, plain))
	require.False(t, needsDecision(asks, asks.DeepCopy()))
}
