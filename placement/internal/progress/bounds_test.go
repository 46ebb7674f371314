package progress

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// maximalObserved returns an input with fields of maximum size, with texts of the given letters.
func maximalObserved(letter string) Observed {
	text := func(n int) string { return strings.Repeat(letter, n)[:n] }
	name := func(prefix string, i, n int) string {
		head := fmt.Sprintf("%s%05d", prefix, i)
		return head + strings.Repeat("x", n-len(head))
	}
	long, longer, value := text(2000), text(4000), text(1000)
	o := Observed{
		Generation: 1 << 40, Now: noon, Revision: name("r", 0, 253), Objects: 5000,
		Rollout: v1alpha1.RolloutStatus{
			Revision: name("r", 0, 253), Phase: v1alpha1.PhaseFailed, Message: long, StableRevision: name("r", 1, 253),
			StartedAt: new(metav1.NewTime(noon)), StableSince: new(metav1.NewTime(noon)),
		},
	}
	counts := v1alpha1.RolloutCounts{Total: 5000, Pending: 5000, Progressing: 5000, Soaking: 5000, Succeeded: 5000,
		Failed: 5000, TimedOut: 5000}
	for i := range 256 {
		o.Rollout.Stages = append(o.Rollout.Stages, v1alpha1.RolloutStageStatus{
			Name: name("s", i, 75), Phase: v1alpha1.PhaseWaitingForApproval, RolloutCounts: counts,
			ReachedAt: new(metav1.NewTime(noon)), FinishedAt: new(metav1.NewTime(noon)),
		})
	}
	for i := range 100 {
		o.Revisions = append(o.Revisions, v1alpha1.RevisionSummary{Name: name("r", i, 253), Number: int64(i),
			CreatedAt: metav1.NewTime(noon)})
		o.Problems = append(o.Problems, Problem{v1alpha1.ReasonWriteFailed, longer})
	}
	for i := range 5000 {
		c := Cluster{Name: name("c", i, 63), Chosen: true, Reachable: true, Current: true, Revision: name("r", i%64, 253),
			Replicas: new(int32(1 << 30))}
		work := workOf(condition("Applied", metav1.ConditionFalse, "Rejected", 0),
			condition("Degraded", metav1.ConditionTrue, "Rejected", 0))
		work.Status.Message = longer
		if i%50 == 0 {
			for j := range 100 {
				id := deployment(name("o", j, 253))
				id.Namespace, id.Group, id.Kind, id.Resource = name("n", j, 63), name("g", j, 253), name("k", j, 63),
					name("p", j, 63)
				work.Status.Manifests = append(work.Status.Manifests,
					workv1alpha1.ManifestStatus{ResourceIdentifier: id, Feedback: []workv1alpha1.FeedbackValue{
						{Name: name("v", j, 63), Type: workv1alpha1.FeedbackString, Value: name("", i, 5) + value},
					}})
			}
		}
		c.Works = []Work{Of(work)}
		o.Clusters = append(o.Clusters, c)
	}
	return o
}

func TestStatus_MaximumSize(t *testing.T) {
	for _, test := range []struct{ reason, letter string }{
		{"plain letters", "x"},
		{"letters of three bytes", "→"},
		{"letters that have six bytes in JSON", "<"},
		{"invalid letters", "\x00\xff"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			o := maximalObserved(test.letter)
			status := Status(o)
			data, err := json.Marshal(status)
			require.NoError(t, err)
			t.Logf("%d bytes, %d clusters, %d of feedback", len(data), len(status.Clusters), len(status.Feedback))
			require.LessOrEqual(t, len(data), maxBytes)
			require.NotEmpty(t, status.Clusters)
			require.Equal(t, int32(5000), int32(len(status.Clusters))+status.OmittedClusters)
			require.Len(t, status.Rollout.Stages, 256, "the stages of the rollout are kept")

			o.Before = stored(t, status)
			require.Len(t, Status(o).Clusters, len(status.Clusters), "the same number of clusters is omitted again")
		})
	}
}

// TestTrim_SizesAroundTheLimit checks for statuses of any size around the limit that the result is within the limit,
// and equals what the API returns.
func TestTrim_SizesAroundTheLimit(t *testing.T) {
	base := v1alpha1.WorkSetStatus{
		Feedback: []v1alpha1.FeedbackSummary{{ResourceIdentifier: deployment("web"), Value: "v"}},
		Clusters: []v1alpha1.ClusterSummary{{Name: "a", State: v1alpha1.ClusterFailed},
			{Name: "b", State: v1alpha1.ClusterFailed}},
	}
	room := maxBytes - size(base)
	seen := map[string]bool{}
	for n := room - 30; n < room+300; n += 3 {
		status := base
		status.Message = strings.Repeat("m", n)
		got := trim(status)
		require.LessOrEqual(t, size(got),
			max(maxBytes, size(v1alpha1.WorkSetStatus{Message: status.Message, OmittedClusters: 2})))
		require.Equal(t, int32(2), int32(len(got.Clusters))+got.OmittedClusters)
		require.Empty(t, cmp.Diff(stored(t, got), got))
		seen[fmt.Sprint(len(got.Feedback), len(got.Clusters))] = true
	}
	require.Equal(t, map[string]bool{"1 2": true, "0 2": true, "0 1": true, "0 0": true}, seen,
		"feedback is omitted before clusters")
}

// TestStatus_UsualSizeIsNotTrimmed checks that a status of usual size is not trimmed.
func TestStatus_UsualSizeIsNotTrimmed(t *testing.T) {
	o := Observed{Now: noon, Revision: "web-5f6d8b7c9"}
	for i := range 5000 {
		work := workOf(condition("Applied", metav1.ConditionFalse, "Rejected", 0),
			condition("Degraded", metav1.ConditionTrue, "Rejected", 0))
		work.Status.Message = strings.Repeat("m", 300)
		for j := range v1alpha1.MaxFeedbackSummaries {
			work.Status.Manifests = append(work.Status.Manifests,
				workv1alpha1.ManifestStatus{ResourceIdentifier: deployment(fmt.Sprint(j)), Feedback: []workv1alpha1.FeedbackValue{
					{Name: "replicas", Type: workv1alpha1.FeedbackNumber, Value: "3"},
				}})
		}
		o.Clusters = append(o.Clusters, Cluster{Name: fmt.Sprintf("cluster-%04d", i), Chosen: true, Reachable: true,
			Current: true, Revision: o.Revision, Works: []Work{Of(work)}, Hold: rollout.HoldFailures})
	}
	status := Status(o)
	require.Len(t, status.Clusters, v1alpha1.MaxClusterSummaries)
	require.Equal(t, int32(4900), status.OmittedClusters)
	require.Len(t, status.Feedback, v1alpha1.MaxFeedbackSummaries)
	require.Equal(t, "15000", status.Feedback[0].Sum)
	require.Less(t, size(status), 80<<10)
}
