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
	got := explanationOf("r", diagnosis)
	require.Len(t, got.Clusters, 100)
	require.EqualValues(t, 900, got.Omitted)
	require.LessOrEqual(t, len(got.Message), 1024)
	require.Equal(t, v1alpha1.ClusterExplanation{Name: "best", Result: "Chosen", Score: "12.3"}, got.Clusters[0])
	require.LessOrEqual(t, len(got.Clusters[1].Reason), 256)
	require.Empty(t, got.Clusters[1].Score)
}

// TestNeedsDecision_Explain checks that adding and removing a request for an explanation each cause a decision.
func TestNeedsDecision_Explain(t *testing.T) {
	plain, explained := &v1alpha1.Placement{}, &v1alpha1.Placement{}
	explained.Annotations = map[string]string{v1alpha1.ExplainAnnotation: "1"}
	require.True(t, needsDecision(plain, explained))
	require.True(t, needsDecision(explained, plain))
	require.False(t, needsDecision(explained, explained.DeepCopy()))
}
