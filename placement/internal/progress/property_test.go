package progress

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/internal/readycondition"
	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func anyText(t *rapid.T) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "short.", "no end", "\xff\xfe", "<&>\u2028\x01"}),
		rapid.Map(rapid.IntRange(0, 400), func(n int) string { return strings.Repeat("é<\xff", n) }),
	).Draw(t, "text")
}

func anyWork(t *rapid.T) Work {
	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Generation: int64(rapid.IntRange(1, 2).Draw(t, "generation"))}}
	if rapid.IntRange(0, 9).Draw(t, "deleting") == 0 {
		work.DeletionTimestamp = new(metav1.NewTime(noon))
	}
	work.Status = workv1alpha1.WorkStatus{ObservedGeneration: work.Generation, Message: anyText(t)}
	for _, kind := range []string{"Applied", "Available", "Progressing", "Degraded"} {
		status := rapid.SampledFrom([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue,
			metav1.ConditionFalse, metav1.ConditionUnknown}).Draw(t, kind)
		if kind == "Degraded" && status == metav1.ConditionTrue && rapid.Bool().Draw(t, "healthy") {
			status = metav1.ConditionFalse
		}
		work.Status.Conditions = append(work.Status.Conditions, metav1.Condition{Type: kind, Status: status,
			Reason: rapid.SampledFrom([]string{"Rejected", "UnknownKind"}).Draw(t, "reason")})
	}
	for _, name := range []string{"web", "db"} {
		work.Status.Manifests = append(work.Status.Manifests,
			workv1alpha1.ManifestStatus{ResourceIdentifier: deployment(name), Feedback: []workv1alpha1.FeedbackValue{{
				Name: "v", Type: rapid.SampledFrom([]workv1alpha1.FeedbackType{workv1alpha1.FeedbackNumber,
					workv1alpha1.FeedbackNumber, workv1alpha1.FeedbackString}).Draw(t, "type"),
				Value: rapid.SampledFrom([]string{"1", "0.1", "2e-7", "many"}).Draw(t, "value"),
			}}})
	}
	return Of(work)
}

func anyCluster(t *rapid.T) Cluster {
	mostly := func(name string) bool { return rapid.IntRange(0, 5).Draw(t, name) > 0 }
	c := Cluster{
		Chosen: mostly("chosen"), Reachable: mostly("reachable"), Current: mostly("current"),
		Revision: rapid.SampledFrom([]string{"", "r1", "r2", "r2", strings.Repeat("r", 300)}).Draw(t, "revision"),
		Hold:     rapid.SampledFrom([]rollout.HoldReason{"", "", rollout.HoldOrder, rollout.HoldFailures}).Draw(t, "hold"),
		Works:    rapid.SliceOfN(rapid.Custom(anyWork), 0, 3).Draw(t, "works"),
	}
	if !mostly("no problem") {
		c.Problem = anyText(t)
	}
	return c
}

func anyObserved(t *rapid.T) Observed {
	o := Observed{
		Generation: 3, Now: noon, Revision: rapid.SampledFrom([]string{"r2", "r2", ""}).Draw(t, "revision"),
		Objects:  rapid.IntRange(0, 9).Draw(t, "objects"),
		Clusters: rapid.SliceOfN(rapid.Custom(anyCluster), 0, 20).Draw(t, "clusters"),
		Deleting: rapid.IntRange(0, 9).Draw(t, "deleting") == 0,
		Rollout: v1alpha1.RolloutStatus{
			Revision: rapid.SampledFrom([]string{"r2", "r1", ""}).Draw(t, "rollout"),
			Message:  strings.ToValidUTF8(anyText(t), ""),
			Phase: rapid.SampledFrom([]v1alpha1.RolloutPhase{
				"", v1alpha1.PhaseProgressing, v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed, v1alpha1.PhaseRolledBack,
				v1alpha1.PhasePaused, v1alpha1.PhaseWaitingForApproval,
			}).Draw(t, "phase"),
		},
	}
	if o.Rollout.Phase == v1alpha1.PhaseRolledBack {
		o.Rollout.StableRevision, o.Rollout.Rollback = "r1", &v1alpha1.RollbackStatus{StartedAt: metav1.NewTime(noon),
			Cause: "so"}
	}
	for i := range o.Clusters {
		o.Clusters[i].Name = fmt.Sprintf("c%02d", i)
	}
	o.Revisions = []v1alpha1.RevisionSummary{}
	for i := range rapid.IntRange(0, 3).Draw(t, "revisions") {
		o.Revisions = append(o.Revisions, v1alpha1.RevisionSummary{Name: fmt.Sprintf("r%d", i), Number: int64(i),
			CreatedAt: metav1.NewTime(noon)})
	}
	for range rapid.IntRange(0, 2).Draw(t, "problems") {
		o.Problems = append(o.Problems,
			Problem{rapid.SampledFrom([]string{v1alpha1.ReasonInvalid, v1alpha1.ReasonWriteFailed,
				v1alpha1.ReasonSelectionFailed, ""}).Draw(t, "problem"), anyText(t)})
	}
	return o
}

// stored returns a status as the API server returns it.
func stored(t require.TestingT, status v1alpha1.WorkSetStatus) (back v1alpha1.WorkSetStatus) {
	data, err := json.Marshal(status)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &back))
	return back
}

// TestStatusIsAFixedPoint checks that a status that was stored and read results in an equal status later: otherwise the
// status of an idle WorkSet would be written again and again.
func TestStatusIsAFixedPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObserved(t)
		o.Now = noon.Add(123456 * time.Microsecond)
		before := stored(t, Status(o))
		o.Before, o.Now = before, o.Now.Add(time.Hour)
		after := Status(o)
		if diff := cmp.Diff(before, after); diff != "" || !equality.Semantic.DeepEqual(before, after) {
			t.Fatalf("the status has changed (-before +after):\n%s", diff)
		}
	})
}

// TestStatusDoesNotDependOnOrder checks that the order of clusters, problems and revisions has no effect.
func TestStatusDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObserved(t)
		want := Status(o)
		o.Clusters = rapid.Permutation(o.Clusters).Draw(t, "order")
		slices.Reverse(o.Problems)
		slices.Reverse(o.Revisions)
		if diff := cmp.Diff(want, Status(o)); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

// TestStatus_DoesNotChangeItsInput checks that Status does not change its input.
func TestStatus_DoesNotChangeItsInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObserved(t)
		o.Before = Status(o)
		data, err := json.Marshal(o)
		require.NoError(t, err)
		o.Generation++
		o.Now = o.Now.Add(time.Hour)
		status := Status(o)
		for i := range status.Conditions {
			status.Conditions[i].Reason = "Changed"
		}
		o.Generation--
		o.Now = noon
		again, err := json.Marshal(o)
		require.NoError(t, err)
		require.Equal(t, string(data), string(again))
	})
}

// TestCountsAreConsistent checks that the counts agree with each other and with the states.
func TestCountsAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObserved(t)
		status := Status(o)
		c := status.Counts
		states := map[v1alpha1.ClusterState]int32{}
		chosen, leaving := int32(0), int32(0)
		for i := range o.Clusters {
			one := &o.Clusters[i]
			switch {
			case !o.Deleting && one.Chosen:
				chosen++
			case len(one.Works) > 0:
				leaving++
			}
		}
		for _, cluster := range status.Clusters {
			states[cluster.State]++
		}
		require.Equal(t, chosen, c.Total)
		require.Equal(t, leaving, c.Leaving)
		require.Equal(t, c.Leaving, states[v1alpha1.ClusterLeaving])
		require.Equal(t, c.Failed, states[v1alpha1.ClusterFailed])
		require.Equal(t, c.Unknown, states[v1alpha1.ClusterUnknown])
		require.Equal(t, c.Total+c.Leaving, int32(len(status.Clusters))+status.OmittedClusters)
		require.LessOrEqual(t, states[v1alpha1.ClusterAvailable], c.Available)
		require.LessOrEqual(t, c.Available, c.Applied, "available clusters are applied")
		require.LessOrEqual(t, c.Applied, c.Total)
		require.LessOrEqual(t, c.Available+c.Failed+c.Unknown, c.Total)
		require.LessOrEqual(t, c.Updated, c.Total)
		require.False(t, o.Revision == "" && c.Updated > 0, "no cluster is updated without a revision")

		conditions := map[string]metav1.ConditionStatus{}
		for _, condition := range status.Conditions {
			if readycondition.Is(condition.Type) {
				continue
			}
			conditions[condition.Type] = condition.Status
			require.NotEmpty(t, condition.Reason)
			require.LessOrEqual(t, len(condition.Message), maxMessageLength)
		}
		require.Len(t, conditions, 4)
		require.Equal(t, c.Total > 0 && c.Available == c.Total,
			conditions[v1alpha1.ConditionAvailable] == metav1.ConditionTrue)
		if conditions[v1alpha1.ConditionApplied] == metav1.ConditionTrue {
			require.True(t, c.Total > 0 && len(o.Problems) == 0 && !o.Deleting)
			for i := range o.Clusters {
				one := &o.Clusters[i]
				require.True(t, !one.Chosen || one.applied() || one.Revision == "" && one.Hold != "" && one.Problem == "", one.Name)
			}
		}
		if c.Failed > 0 || len(o.Problems) > 0 {
			require.Equal(t, metav1.ConditionTrue, conditions[v1alpha1.ConditionDegraded])
		}
		require.NotEmpty(t, status.Message)
		require.LessOrEqual(t, len(status.Message), maxMessageLength)
		require.True(t, utf8.ValidString(status.Message))
		require.True(t, slices.IsSortedFunc(status.Clusters, func(a, b v1alpha1.ClusterSummary) int {
			return 2*(slices.Index(order[:], a.State)-slices.Index(order[:], b.State)) + strings.Compare(a.Name, b.Name)
		}))
		for _, cluster := range status.Clusters {
			require.LessOrEqual(t, len(cluster.Message), maxMessage)
			require.LessOrEqual(t, len(cluster.Revision), maxRevision)
		}
	})
}
