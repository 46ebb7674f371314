package agent_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestJob_SucceededAndDeletedByTTL checks a Job that Kubernetes deletes as soon as it has finished: its Work stays
// complete, also after a restart, and the Job runs again when its manifest changes.
func TestJob_SucceededAndDeletedByTTL(t *testing.T) {
	t.Parallel()
	w := newWorldWithMember(t)
	stop := w.start()
	job := func(image string) string {
		return "{" +
			manifests(
				`{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: NS}, spec: {ttlSecondsAfterFinished: 0,
  template: {spec: {restartPolicy: Never, nodeName: nowhere, containers: [{name: c, image: `+image+`}]}}}}`,
				configMap("a", "{k: v}")) + "}"
	}
	work := w.work("migration", job("one"))
	first := w.finishJob("once", "")
	complete := func() error {
		if err := w.hub.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if c := condition(work, v1alpha1.ConditionComplete); c == nil || c.Status != "True" ||
			c.ObservedGeneration != work.Generation {
			return fmt.Errorf("not complete:\n%s", render(work.Status))
		}
		return equal("2/2", work.Status.Ready)
	}
	gone := func() error {
		if w.read("Job", "once") != nil {
			return fmt.Errorf("the Job still exists")
		}
		return complete()
	}
	w.eventually(gone)
	stop()
	stop = w.start()
	w.patch(w.read("ConfigMap", "a"), "data: {k: edited}")
	w.eventually(func() error { return equal("v", w.data("a", "k")) }) // so that the agent has reconciled
	require.NoError(t, gone(), "the Job does not run again")

	w.change(work, job("two"))
	second := w.finishJob("once", first)
	require.NotEqual(t, first, second)
	w.eventually(gone)
	stop()
}

// finishJob waits for a Job with another UID, lets it succeed as its controller would, and returns its UID.
func (w *world) finishJob(name string, previous types.UID) (uid types.UID) {
	w.t.Helper()
	w.eventually(func() error {
		job := &batchv1.Job{}
		if err := w.member.Get(context.Background(), client.ObjectKey{Namespace: w.name, Name: name}, job); err != nil {
			return err
		}
		if job.UID == previous {
			return fmt.Errorf("the Job is the former one")
		}
		pods := &corev1.PodList{}
		if err := w.member.List(context.Background(), pods, client.InNamespace(w.name),
			client.MatchingLabels{"batch.kubernetes.io/controller-uid": string(job.UID)}); err != nil {
			return err
		}
		for i := range pods.Items {
			pods.Items[i].Status.Phase = corev1.PodSucceeded
			if err := w.member.Status().Update(context.Background(), &pods.Items[i]); err != nil {
				return err
			}
		}
		if uid = job.UID; len(pods.Items) == 0 {
			return fmt.Errorf("the Job has no pods yet")
		}
		return nil
	})
	return uid
}
