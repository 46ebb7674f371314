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
	f := newFixtureWithMember(t)
	stop := f.start()
	job := func(image string) string {
		return "{" +
			manifests(
				`{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: NS}, spec: {ttlSecondsAfterFinished: 0,
  template: {spec: {restartPolicy: Never, nodeName: nowhere, containers: [{name: c, image: `+image+`}]}}}}`,
				configMap("a", "{k: v}")) + "}"
	}
	work := f.work("migration", job("one"))
	first := f.finishJob("once", "")
	complete := func() error {
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if c := condition(work, v1alpha1.ConditionComplete); c == nil || c.Status != "True" ||
			c.ObservedGeneration != work.Generation {
			return fmt.Errorf("not complete:\n%s", render(work.Status))
		}
		return equal("2/2", work.Status.Ready)
	}
	gone := func() error {
		if f.read("Job", "once") != nil {
			return fmt.Errorf("the Job still exists")
		}
		return complete()
	}
	f.Eventually("the Job is deleted", gone)
	stop()
	stop = f.start()
	f.patch(f.read("ConfigMap", "a"), "data: {k: edited}")
	f.Eventually("the agent has reconciled", func() error { return equal("v", f.data("a", "k")) })
	require.NoError(t, gone(), "the Job does not run again")

	f.change(work, job("two"))
	second := f.finishJob("once", first)
	require.NotEqual(t, first, second)
	f.Eventually("the Job is deleted", gone)
	stop()
}

// finishJob waits for a Job with another UID, lets it succeed as its controller would, and returns its UID.
func (f *fixture) finishJob(name string, previous types.UID) (uid types.UID) {
	f.T.Helper()
	f.Eventually("Job "+name+" succeeds", func() error {
		job := &batchv1.Job{}
		if err := f.member.Get(context.Background(), client.ObjectKey{Namespace: f.name, Name: name}, job); err != nil {
			return err
		}
		if job.UID == previous {
			return fmt.Errorf("the Job is the former one")
		}
		pods := &corev1.PodList{}
		if err := f.member.List(context.Background(), pods, client.InNamespace(f.name),
			client.MatchingLabels{"batch.kubernetes.io/controller-uid": string(job.UID)}); err != nil {
			return err
		}
		for i := range pods.Items {
			pods.Items[i].Status.Phase = corev1.PodSucceeded
			if err := f.member.Status().Update(context.Background(), &pods.Items[i]); err != nil {
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
