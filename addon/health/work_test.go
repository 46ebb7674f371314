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
	stale := workOf(allWell)
	stale.Status.Conditions[1].ObservedGeneration = 2
	undated := workOf("Applied=True/Applied")
	undated.Status.Conditions[0].ObservedGeneration = 0
	for _, test := range []struct {
		reason string
		work   *workv1alpha1.Work
		want   Work
	}{
		{"all is well", workOf(allWell), Work{Applied: isTrue, Available: isTrue, Degraded: isFalse}},
		{"that it is degraded is worst", workOf(rejected),
			Work{Applied: isFalse, Available: isFalse, Degraded: isTrue, Reason: "Rejected"}},
		{"then what is not applied", workOf(repeated),
			Work{Applied: isFalse, Available: isFalse, Degraded: isFalse, Reason: "Failed"}},
		{"then what is not ready", workOf(onItsWay),
			Work{Applied: isTrue, Available: isFalse, Degraded: isFalse, Reason: "Progressing"}},
		{"what is about a generation before says nothing", stale,
			Work{Applied: isTrue, Available: unknown, Degraded: isFalse}},
		{"a condition need not say what it is about", undated, Work{Applied: isTrue, Available: unknown, Degraded: unknown}},
		{"a status that is none is unknown", workOf("Applied=Perhaps/Odd"),
			Work{Applied: unknown, Available: unknown, Degraded: unknown, Reason: "Odd"}},
	} {
		test.want.Generation, test.want.Observed, test.want.Message = 3, 3, "web: it says so"
		require.Empty(t, cmp.Diff(test.want, Of(test.work)), test.reason)
	}
	deleted := workOf("")
	deleted.DeletionTimestamp, deleted.Status.Message = new(metav1.NewTime(noon)), strings.Repeat("é", 1000)
	require.True(t, Of(deleted).Deleting)
	require.LessOrEqual(t, len(Of(deleted).Message), 512)
}

func TestWorkloadsOf(t *testing.T) {
	made := func(text, manifests string, changes ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
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
		{"it has none", made(onItsWay, "Issuer=False/NotReady"), Workloads{}},
		{"the three kinds count", made(onItsWay, "Deployment=True/Ready StatefulSet=True/Ready DaemonSet=True/Ready "+
			"ReplicaSet=False/NotReady"), Workloads{Total: 3, Ready: 3}},
		{"of their own group alone",
			made(onItsWay, "Deployment=False/NotReady",
				func(w *workv1alpha1.Work) { w.Status.Manifests[0].Group = "apps.example.com" }), Workloads{}},
		{"the first that is not ready is reported", made(onItsWay, "Deployment=True/Ready "+
			"StatefulSet=False/Progressing DaemonSet=False/Progressing"),
			Workloads{Total: 3, Ready: 1, Message: "apps/StatefulSet shop/b: 1 of 2 are ready"}},
		{"one that has failed goes before", made(failed, "Deployment=False/Progressing StatefulSet=False/NotReady "+
			"DaemonSet=False/NotReady"),
			Workloads{Total: 3, Failed: true, Message: "apps/StatefulSet shop/b: 1 of 2 are ready"}},
		{"one that could not be read is not ready", made(onItsWay, "Deployment=Unknown/Unknown"),
			Workloads{Total: 1, Message: "apps/Deployment shop/a: 1 of 2 are ready"}},
		{"one without a message has a reason",
			made(onItsWay, "Deployment=False/Progressing",
				func(w *workv1alpha1.Work) { w.Status.Manifests[0].Conditions[0].Message = "" }),
			Workloads{Total: 1, Message: "apps/Deployment shop/a: Progressing"}},
		{"what is about a generation before says nothing",
			made(onItsWay, "Deployment=True/Ready",
				func(w *workv1alpha1.Work) { w.Status.Manifests[0].Conditions[0].ObservedGeneration = 2 }),
			Workloads{Total: 1, Message: "apps/Deployment shop/a: the member reports no status"}},
		{"nor does a manifest without conditions", made(onItsWay, "Deployment="),
			Workloads{Total: 1, Message: "apps/Deployment shop/a: the member reports no status"}},
		{"unless they were left out, which are those of what is well",
			made(onItsWay, "Deployment= DaemonSet=False/Progressing", truncated),
			Workloads{Total: 2, Ready: 1, Message: "apps/DaemonSet shop/b: 1 of 2 are ready"}},
		{"omitted manifests are unknown",
			made(onItsWay, "Deployment=True/Ready Issuer=True/Ready", truncated,
				func(w *workv1alpha1.Work) { w.Status.Manifests = w.Status.Manifests[:1] }),
			Workloads{Total: 2, Ready: 1, Message: "Left out: much."}},
		{"unless all of the Work is well",
			made(allWell, "Deployment=True/Ready Issuer=True/Ready", truncated,
				func(w *workv1alpha1.Work) { w.Status.Manifests = w.Status.Manifests[:1] }), Workloads{Total: 1, Ready: 1}},
		{"messages are bounded", made(onItsWay, "Deployment=False/Progressing", func(w *workv1alpha1.Work) {
			w.Status.Manifests[0].Conditions[0].Message = strings.Repeat("m", 600)
		}), Workloads{Total: 1, Message: "apps/Deployment shop/a: " + strings.Repeat("m", 485) + "…"}},
	} {
		require.Empty(t, cmp.Diff(test.want, Of(test.work).Workloads), test.reason)
	}
}
