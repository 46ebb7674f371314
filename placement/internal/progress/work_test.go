package progress

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func condition(kind string, status metav1.ConditionStatus, reason string, minute int) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, ObservedGeneration: 3,
		LastTransitionTime: metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute)),
	}
}

func deployment(name string) workv1alpha1.ResourceIdentifier {
	return workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments",
		Namespace: "shop", Name: name}
}

func workOf(conditions ...metav1.Condition) *workv1alpha1.Work {
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Generation: 3},
		Status:     workv1alpha1.WorkStatus{ObservedGeneration: 3, Message: "The message.", Conditions: conditions},
	}
}

func TestOf(t *testing.T) {
	const isTrue, isFalse, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	at := func(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }
	stale := condition("Degraded", isTrue, "NotReady", 9)
	stale.ObservedGeneration = 2
	undated := condition("Applied", isTrue, "Applied", 1)
	undated.ObservedGeneration = 0
	deleted := workOf()
	deleted.DeletionTimestamp = new(metav1.NewTime(noon))
	for _, test := range []struct {
		reason string
		work   *workv1alpha1.Work
		want   Work
	}{
		{
			"a Work that the agent has not observed is unknown",
			&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 1}},
			Work{Generation: 1, Applied: unknown, Available: unknown, Degraded: unknown, Progressing: unknown},
		},
		{
			"a healthy Work has no reason, and the time of the latest transition",
			workOf(condition("Applied", isTrue, "Applied", 1), condition("Available", isTrue, "Ready", 4),
				condition("Progressing", isFalse, "AsDesired", 2),
				condition("Degraded", isFalse, "AsDesired", 0), condition("Complete", isTrue, "Completed", 7)),
			Work{Applied: isTrue, Available: isTrue, Progressing: isFalse, Degraded: isFalse, Changed: at(4)},
		},
		{
			"the reason of Degraded precedes that of Applied",
			workOf(condition("Applied", isFalse, "Pending", 1), condition("Degraded", isTrue, "Timeout", 2)),
			Work{Applied: isFalse, Available: unknown, Degraded: isTrue, Progressing: unknown, Reason: "Timeout",
				Changed: at(2)},
		},
		{
			"the reason of Applied precedes that of Available",
			workOf(condition("Available", isFalse, "NotApplied", 1), condition("Applied", isFalse, "Failed", 1),
				condition("Degraded", isFalse, "AsDesired", 1)),
			Work{Applied: isFalse, Available: isFalse, Degraded: isFalse, Progressing: unknown, Reason: "Failed",
				Changed: at(1)},
		},
		{
			"the reason of Progressing is used if there is no other",
			workOf(condition("Applied", isTrue, "Applied", 1), condition("Available", isTrue, "Ready", 1),
				condition("Progressing", isTrue, "Progressing", 2)),
			Work{Applied: isTrue, Available: isTrue, Degraded: unknown, Progressing: isTrue, Reason: "Progressing",
				Changed: at(2)},
		},
		{
			"a condition of an earlier generation is ignored",
			workOf(condition("Applied", isTrue, "Applied", 1), stale),
			Work{Applied: isTrue, Available: unknown, Degraded: unknown, Progressing: unknown, Changed: at(1)},
		},
		{
			"a condition without a generation is used",
			workOf(undated),
			Work{Applied: isTrue, Available: unknown, Degraded: unknown, Progressing: unknown, Changed: at(1)},
		},
		{
			"an invalid status is unknown",
			workOf(condition("Applied", "Perhaps", "Odd", 1)),
			Work{Applied: unknown, Available: unknown, Degraded: unknown, Progressing: unknown, Reason: "Odd", Changed: at(1)},
		},
		{
			"the Work is being deleted",
			deleted,
			Work{Applied: unknown, Available: unknown, Degraded: unknown, Progressing: unknown, Deleting: true},
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			want := test.want
			if test.work.Status.ObservedGeneration != 0 {
				want.Generation, want.Observed, want.Message = 3, 3, "The message."
			}
			if diff := cmp.Diff(want, Of(test.work)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOfFeedback(t *testing.T) {
	work := workOf()
	add := func(id workv1alpha1.ResourceIdentifier, values ...workv1alpha1.FeedbackValue) {
		work.Status.Manifests = append(work.Status.Manifests, workv1alpha1.ManifestStatus{ResourceIdentifier: id,
			Feedback: values})
	}
	long := strings.Repeat("é", 100)
	add(deployment("web"), workv1alpha1.FeedbackValue{Name: "ready", Type: "Number", Value: "3"},
		workv1alpha1.FeedbackValue{Name: "note", Type: "String", Value: long})
	add(deployment(strings.Repeat("x", 2000)), workv1alpha1.FeedbackValue{Name: "ready", Type: "Number", Value: "3"})
	add(deployment("db"), workv1alpha1.FeedbackValue{Name: "ready", Type: "Number", Value: "1"})

	got := Of(work).Feedback
	require.Len(t, got, 3, "an object with an invalid name must not be listed")
	require.Equal(t, []string{"db ready", "web note", "web ready"}, []string{
		got[0].ResourceIdentifier.Name + " " + got[0].Name, got[1].ResourceIdentifier.Name + " " + got[1].Name,
		got[2].ResourceIdentifier.Name + " " + got[2].Name,
	}, "sorted by object and name")
	require.LessOrEqual(t, len(got[1].Value), maxValue)
	require.True(t, utf8.ValidString(got[1].Value), "the value must be cut between two characters")
	require.True(t, strings.HasSuffix(got[1].Value, "é…"))

	for i := range 200 {
		add(deployment("more"), workv1alpha1.FeedbackValue{Name: strings.Repeat("n", i+1), Value: "1"})
	}
	got = Of(work).Feedback
	require.Len(t, got, v1alpha1.MaxFeedbackSummaries)
	require.Equal(t, "db", got[0].ResourceIdentifier.Name, "the first values in order are kept")
	require.Less(t, cap(got), 100, "omitted values must not stay in memory")
}
