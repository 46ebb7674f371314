package health

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func TestOf(t *testing.T) {
	const isTrue, isFalse, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	stale := workOf(healthy)
	stale.Status.Conditions[1].ObservedGeneration = 2
	undated := workOf("Applied=True/Applied")
	undated.Status.Conditions[0].ObservedGeneration = 0
	for _, test := range []struct {
		reason string
		work   *workv1alpha1.Work
		want   Work
	}{
		{"a Work that is available", workOf(healthy), Work{Applied: isTrue, Available: isTrue, Degraded: isFalse}},
		{"the reason of Degraded precedes other reasons", workOf(rejected),
			Work{Applied: isFalse, Available: isFalse, Degraded: isTrue, Reason: "Rejected"}},
		{"the reason of Applied precedes that of Available", workOf(repeated),
			Work{Applied: isFalse, Available: isFalse, Degraded: isFalse, Reason: "Failed"}},
		{"the reason of Available if the Work is applied and not degraded", workOf(progressing),
			Work{Applied: isTrue, Available: isFalse, Degraded: isFalse, Reason: "Progressing"}},
		{"a condition of an earlier generation is ignored", stale,
			Work{Applied: isTrue, Available: unknown, Degraded: isFalse}},
		{"a condition without observedGeneration is current",
			undated, Work{Applied: isTrue, Available: unknown, Degraded: unknown}},
		{"an invalid condition status is unknown", workOf("Applied=Perhaps/Odd"),
			Work{Applied: unknown, Available: unknown, Degraded: unknown, Reason: "Odd"}},
	} {
		test.want.Generation, test.want.Observed, test.want.Message = 3, 3, "web: status message"
		require.Empty(t, cmp.Diff(test.want, Of(test.work)), test.reason)
	}
	deleted := workOf("")
	deleted.DeletionTimestamp, deleted.Status.Message = new(metav1.NewTime(noon)), strings.Repeat("é", 1000)
	require.True(t, Of(deleted).Deleting)
	require.LessOrEqual(t, len(Of(deleted).Message), 512)
}

func TestWorkloadsOf(t *testing.T) {
	workWithChanges := func(text, manifests string, changes ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
		work := withManifests(workOf(text), manifests)
		for _, change := range changes {
			change(work)
		}
		return work
	}
	truncated := func(w *workv1alpha1.Work) { w.Status.Truncated = "Left out: much." }
	for _, test := range []struct {
		reason string
		work   *workv1alpha1.Work
		want   Workloads
	}{
		{"a Work without workloads", workWithChanges(progressing, "Issuer=False/NotReady"), Workloads{}},
		{"Deployments, StatefulSets and DaemonSets are workloads",
			workWithChanges(progressing, "Deployment=True/Ready StatefulSet=True/Ready DaemonSet=True/Ready "+
				"ReplicaSet=False/NotReady"), Workloads{Total: 3, Ready: 3}},
		{"a Deployment of another API group is not a workload",
			workWithChanges(progressing, "Deployment=False/NotReady",
				func(w *workv1alpha1.Work) { w.Status.Manifests[0].Group = "apps.example.com" }), Workloads{}},
		{"the message names the first workload that is not ready", workWithChanges(progressing, "Deployment=True/Ready "+
			"StatefulSet=False/Progressing DaemonSet=False/Progressing"),
			Workloads{Total: 3, Ready: 1, Message: "apps/StatefulSet shop/b: 1 of 2 are ready"}},
		{"a failed workload precedes workloads that are progressing",
			workWithChanges(failed, "Deployment=False/Progressing StatefulSet=False/NotReady "+
				"DaemonSet=False/NotReady"),
			Workloads{Total: 3, Failed: true, Message: "apps/StatefulSet shop/b: 1 of 2 are ready"}},
		{"a workload of unknown state is not ready", workWithChanges(progressing, "Deployment=Unknown/Unknown"),
			Workloads{Total: 1, Message: "apps/Deployment shop/a: 1 of 2 are ready"}},
		{"the reason replaces an empty message",
			workWithChanges(progressing, "Deployment=False/Progressing",
				func(w *workv1alpha1.Work) { w.Status.Manifests[0].Conditions[0].Message = "" }),
			Workloads{Total: 1, Message: "apps/Deployment shop/a: Progressing"}},
		{"a condition of an earlier generation is ignored",
			workWithChanges(progressing, "Deployment=True/Ready",
				func(w *workv1alpha1.Work) { w.Status.Manifests[0].Conditions[0].ObservedGeneration = 2 }),
			Workloads{Total: 1, Message: "apps/Deployment shop/a: the member reports no status"}},
		{"a workload without conditions is not ready", workWithChanges(progressing, "Deployment="),
			Workloads{Total: 1, Message: "apps/Deployment shop/a: the member reports no status"}},
		{"a workload without conditions is ready if the status is truncated",
			workWithChanges(progressing, "Deployment= DaemonSet=False/Progressing", truncated),
			Workloads{Total: 2, Ready: 1, Message: "apps/DaemonSet shop/b: 1 of 2 are ready"}},
		{"omitted manifests are not ready",
			workWithChanges(progressing, "Deployment=True/Ready Issuer=True/Ready", truncated,
				func(w *workv1alpha1.Work) { w.Status.Manifests = w.Status.Manifests[:1] }),
			Workloads{Total: 2, Ready: 1, Message: "Left out: much."}},
		{"omitted manifests of an available Work are ignored",
			workWithChanges(healthy, "Deployment=True/Ready Issuer=True/Ready", truncated,
				func(w *workv1alpha1.Work) { w.Status.Manifests = w.Status.Manifests[:1] }), Workloads{Total: 1, Ready: 1}},
		{"messages are bounded", workWithChanges(progressing, "Deployment=False/Progressing", func(w *workv1alpha1.Work) {
			w.Status.Manifests[0].Conditions[0].Message = strings.Repeat("m", 600)
		}), Workloads{Total: 1, Message: "apps/Deployment shop/a: " + strings.Repeat("m", 485) + "…"}},
	} {
		require.Empty(t, cmp.Diff(test.want, Of(test.work).Workloads), test.reason)
	}
}
