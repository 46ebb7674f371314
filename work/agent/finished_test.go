package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/work/readiness"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestFinished_OfMissingJobs checks that a Job that does not exist any more is successful only if its result was read.
func TestFinished_OfMissingJobs(t *testing.T) {
	id := v1alpha1.ResourceIdentifier{Group: "batch", Version: "v1", Kind: "Job", Namespace: "shop", Name: "once"}
	inState := func(kind string) *unstructured.Unstructured {
		job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job",
			"metadata": map[string]any{"name": "once", "namespace": "shop"},
			"spec":     map[string]any{"ttlSecondsAfterFinished": int64(0)},
			"status":   map[string]any{"active": int64(1)}}}
		job.SetDeletionTimestamp(&metav1.Time{Time: noon}) // Kubernetes deletes it in the foreground.
		if kind != "" {
			job.Object["status"] = map[string]any{"conditions": []any{
				map[string]any{"type": kind, "status": "True", "message": "backoff limit reached"},
			}}
		}
		return job
	}
	reported := func(reason string) *v1alpha1.WorkStatus {
		status := &v1alpha1.WorkStatus{}
		if reason != "" {
			manifest := v1alpha1.ManifestStatus{ResourceIdentifier: id}
			meta.SetStatusCondition(&manifest.Conditions, metav1.Condition{Type: v1alpha1.ConditionAvailable,
				Status: metav1.ConditionFalse, Reason: reason, Message: "as reported"})
			status.Manifests = append(status.Manifests, manifest)
		}
		return status
	}
	for _, test := range []struct {
		reason   string
		last     *unstructured.Unstructured
		reported string
		want     readiness.Status
		message  string
	}{
		{reason: "the last state is success", last: inState("Complete"), want: readiness.Ready},
		{reason: "the last state is failure", last: inState("Failed"), want: readiness.Failed,
			message: "backoff limit reached"},
		{reason: "the last state is newer than the report", last: inState("Failed"), reported: v1alpha1.ReasonReady,
			want: readiness.Failed},
		{reason: "deleted while it ran", last: inState(""), want: readiness.Failed, message: "before it finished"},
		{reason: "success was reported", reported: v1alpha1.ReasonReady, want: readiness.Ready},
		{reason: "failure was reported", reported: v1alpha1.ReasonNotReady, want: readiness.Failed, message: "as reported"},
		{reason: "only progress was reported", reported: v1alpha1.ReasonProgressing, want: readiness.Unknown,
			message: "Increase ttlSecondsAfterFinished"},
		{reason: "unknown stays unknown", reported: v1alpha1.ReasonUnknown, want: readiness.Unknown},
		{reason: "nothing was reported", want: readiness.Unknown},
	} {
		m := &planned{id: id}
		got := m.finished(test.last, reported(test.reported), readiness.Registry{}).ready
		require.Equal(t, test.want, got.Status, test.reason)
		require.Contains(t, got.Message, test.message, test.reason)
		require.Equal(t, test.want == readiness.Ready, got.Complete, test.reason)
		require.True(t, got.Ends, test.reason)
	}
}
