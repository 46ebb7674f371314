package placement

import (
	"context"
	"strconv"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// The limits of an explanation in a status.
const (
	maxExplained     = 100
	maxReason        = 256
	maxRequestLength = 253
)

// explanation returns the explanation that the annotation of the Placement requests. Nil: the annotation requests none.
// An existing explanation stays until the annotation changes. A Decider other than that of package scheduler explains
// only which clusters it has chosen.
func (d *decisionController) explanation(ctx context.Context, a *attempt, s *step) *v1alpha1.Explanation {
	request := a.placement.Annotations[v1alpha1.ExplainAnnotation]
	if request == "" || len(request) > maxRequestLength {
		return nil
	}
	if existing := a.placement.Status.Explanation; existing != nil && existing.Request == request {
		return existing
	}
	diagnosis, err := s.result.Diagnose(ctx)
	if err != nil {
		diagnosis = chosenOnly(&s.result)
	} else {
		evicted(diagnosis, a.snapshot, s.excluded)
	}
	return explanationOf(request, diagnosis)
}

// chosenOnly returns a diagnosis with the selected clusters only, for a decision that cannot be explained.
func chosenOnly(result *scheduler.Result) *scheduler.Diagnosis {
	diagnosis := &scheduler.Diagnosis{Wanted: result.Wanted, Total: result.Total, Hints: result.Hints}
	for _, choice := range result.Chosen {
		diagnosis.Clusters = append(diagnosis.Clusters,
			scheduler.ClusterDiagnosis{Name: choice.Cluster.Name, Outcome: scheduler.Chosen, Score: choice.Score})
	}
	return diagnosis
}

// explanationOf converts a diagnosis, within the limits of a status.
func explanationOf(request string, diagnosis *scheduler.Diagnosis) *v1alpha1.Explanation {
	is := &v1alpha1.Explanation{Request: request, Message: bounded.Text(diagnosis.String(), maxMessage)}
	listed := min(len(diagnosis.Clusters), maxExplained)
	is.Omitted = int32(len(diagnosis.Clusters) - listed)
	for _, cluster := range diagnosis.Clusters[:listed] {
		explained := v1alpha1.ClusterExplanation{
			Name: cluster.Name, Result: string(cluster.Outcome), Plugin: cluster.Plugin,
			Reason: bounded.Text(cluster.Reason, maxReason),
		}
		if cluster.Outcome != scheduler.Rejected {
			explained.Score = strconv.FormatFloat(cluster.Score, 'f', 1, 64)
		}
		is.Clusters = append(is.Clusters, explained)
	}
	return is
}
