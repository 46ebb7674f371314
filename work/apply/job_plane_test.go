package apply_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestJob_DeletedByTTL checks that a Job runs once for each manifest, although Kubernetes deletes it when it has
// finished.
func TestJob_DeletedByTTL(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for mode, expected := range map[v1alpha1.ApplyMode]string{v1alpha1.ServerSideApply: "apply",
		v1alpha1.CreateOnly: "create"} {
		t.Run(expected, func(t *testing.T) {
			f := f.in(t)
			job := func(image string) apply.Object {
				return f.object(`{apiVersion: batch/v1, kind: Job, metadata: {name: `+expected+
					`, namespace: NS}, spec: {ttlSecondsAfterFinished: 0,
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: `+image+`}]}}}}`, func(o *apply.Object) {
					o.Mode = mode
				})
			}
			require.Equal(t, apply.Created, f.one(job("one")).Action)
			f.finish(job("one").Manifest)
			require.Eventually(t, func() bool { return f.isGone(job("one").Manifest) }, deadline, tick,
				"the Job is deleted after its TTL")
			for range 2 {
				change := f.one(job("one"))
				require.Equal(t, apply.Skipped, change.Action, "%s %v", change.Message, change.Err)
				require.Equal(t, v1alpha1.ReasonCompleted, change.Reason)
				require.True(t, change.Done())
				require.True(t, f.isGone(job("one").Manifest))
				f.restart()
			}
			require.Equal(t, apply.Created, f.one(job("two")).Action, "a changed manifest runs the Job again")
		})
	}
	kept := f.object(`{apiVersion: batch/v1, kind: Job, metadata: {name: kept, namespace: NS}, spec: {suspend: true,
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`)
	f.one(kept)
	require.NoError(t, f.Client.Delete(t.Context(), kept.Manifest.DeepCopy(),
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
	require.Eventually(t, func() bool { return f.isGone(kept.Manifest) }, deadline, tick)
	require.Equal(t, apply.Created, f.one(kept).Action, "a Job without a TTL is healed like any object")
}

// finish lets a Job succeed through its pods, because its controller writes its status.
func (f *fixture) finish(job *unstructured.Unstructured) {
	f.T.Helper()
	require.Eventually(f.T, func() bool {
		pods := &unstructured.UnstructuredList{}
		pods.SetAPIVersion("v1")
		pods.SetKind("PodList")
		require.NoError(f.T, f.Client.List(f.T.Context(), pods, client.InNamespace(f.Namespace),
			client.MatchingLabels{"job-name": job.GetName()}))
		for i := range pods.Items {
			pod := &pods.Items[i]
			if err := unstructured.SetNestedField(pod.Object, "Succeeded", "status", "phase"); err != nil {
				return false
			}
			if err := f.Client.Status().Update(f.T.Context(), pod); err != nil {
				return false
			}
		}
		return len(pods.Items) > 0
	}, deadline, tick)
}
