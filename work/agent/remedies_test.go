package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// awaitApplied waits until a manifest of a Work has a condition Applied with a status, a reason and a message.
func (f *fixture) awaitApplied(work *v1alpha1.Work, ordinal int, status, reason, message string) {
	f.T.Helper()
	f.Eventually("the status of Work "+work.Name+" has the condition", func() error {
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if len(work.Status.Manifests) <= ordinal || work.Status.ObservedGeneration != work.Generation {
			return fmt.Errorf("no status yet")
		}
		applied := findManifestCondition(work, ordinal, v1alpha1.ConditionApplied)
		if string(applied.Status) != status || applied.Reason != reason || !strings.Contains(applied.Message, message) {
			return fmt.Errorf("want %s/%s %q, got %s/%s %q",
				status, reason, message, applied.Status, applied.Reason, applied.Message)
		}
		return nil
	})
}

func findManifestCondition(work *v1alpha1.Work, ordinal int, kind string) metav1.Condition {
	for _, c := range work.Status.Manifests[ordinal].Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// TestDisabled checks that an administrator of the member can stop applies and deletions of an object by an
// annotation: the hub reports it, other objects are still applied, and the removal of the annotation ends it.
func TestDisabled(t *testing.T) { testkit.Virtual(t, testDisabled) }

func testDisabled(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	spec := func(value string) string {
		return "{" + manifests(configMap("a", "{k: "+value+"}"), configMap("b", "{k: "+value+"}")) + "}"
	}
	work := f.work("shop", spec("v"))
	f.ready(work)
	annotate := func(value string) {
		f.patch(f.read("ConfigMap", "a"), "metadata: {annotations: {"+v1alpha1.DisabledAnnotation+": "+value+"}}")
	}
	annotate("Apply")
	f.awaitApplied(work, 0, "False", v1alpha1.ReasonDisabled, v1alpha1.DisabledAnnotation)
	f.change(work, spec("w"))
	f.awaitApplied(work, 0, "False", v1alpha1.ReasonDisabled, "Remove the annotation on the member")
	f.awaitApplied(work, 1, "True", v1alpha1.ReasonApplied, "")
	require.Equal(t, []string{"v", "w"}, []string{f.data("a", "k"), f.data("b", "k")})
	require.Equal(t, v1alpha1.ReasonDisabled, condition(work, v1alpha1.ConditionDegraded).Reason)
	annotate("null")
	f.ready(work)
	require.Equal(t, "w", f.data("a", "k"))

	reported := func() error {
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if !strings.Contains(work.Status.Message, v1alpha1.DisabledAnnotation) {
			return fmt.Errorf("the status of the Work does not name the annotation: %s", work.Status.Message)
		}
		return nil
	}
	annotate("Delete")
	f.change(work, "{"+manifests(configMap("b", "{k: w}"))+"}")
	f.Eventually("the rejected object is reported", reported)
	require.Nil(t, f.read("ConfigMap", "a").GetDeletionTimestamp(),
		"the object stays although the Work no longer contains it")
	f.delete(work)
	f.Eventually("the waiting deletion is reported", func() error {
		if err := reported(); err != nil {
			return err
		}
		if !strings.Contains(work.Status.Message, "Waiting for the deletion of 1 object.") {
			return fmt.Errorf("the clean-up is not reported: %s", work.Status.Message)
		}
		return nil
	})
	f.Eventually("ConfigMap b does not have k", func() error { return equal("", f.data("b", "k")) })
	require.Nil(t, f.read("ConfigMap", "a").GetDeletionTimestamp())
	annotate("null")
	f.gone(work)
	require.Nil(t, f.read("ConfigMap", "a"))
}

// TestRecreate checks a Work that changes an immutable Secret: it is rejected, with a message that names the field,
// until the Work permits that the object is deleted and created again.
func TestRecreate(t *testing.T) { testkit.Virtual(t, testRecreate) }

func testRecreate(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	spec := func(value, options string) string {
		secret := "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS}, immutable: true, " +
			"stringData: {password: " + value + "}}"
		return "{" + manifests(secret, configMap("a", "{k: v}")) + options + "}"
	}
	work := f.work("shop", spec("one", ""))
	f.ready(work)
	uid := f.read("Secret", "s").GetUID()
	f.change(work, spec("two", ""))
	f.awaitApplied(work, 0, "False", v1alpha1.ReasonRejected, "data")
	require.Equal(t, uid, f.read("Secret", "s").GetUID())
	f.change(work, spec("two", ", apply: {recreate: IfImmutable}"))
	f.ready(work)
	require.NotEqual(t, uid, f.read("Secret", "s").GetUID())
}

// TestJob_FailedAndDeletedByTTL checks a Job with a TTL that fails: it is not run again, and its Work reports the
// failure also after the Job was deleted and after a restart.
func TestJob_FailedAndDeletedByTTL(t *testing.T) {
	t.Parallel()
	f := newFixtureWithMember(t)
	stop := f.start()
	work := f.work("migration", "{"+manifests(jobOnce, configMap("a", "{k: v}"))+"}")
	f.Eventually("the Pods of the Job fail", f.failPods)
	failed := func() error {
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if f.read("Job", "once") != nil {
			return fmt.Errorf("the Job still exists")
		}
		if c := condition(work, v1alpha1.ConditionDegraded); c == nil || c.Reason != v1alpha1.ReasonNotReady {
			return fmt.Errorf("the failure is not reported:\n%s", render(work.Status))
		}
		return nil
	}
	f.Eventually("the failure is reported", failed)
	stop()
	f.start()
	f.patch(f.read("ConfigMap", "a"), "data: {k: edited}")
	f.Eventually("the agent has reconciled", func() error { return equal("v", f.data("a", "k")) })
	f.awaitNoWrites()
	require.NoError(t, failed())
}

// jobOnce is a Job that Kubernetes deletes as soon as it has finished.
const jobOnce = `{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: NS},
  spec: {ttlSecondsAfterFinished: 0, backoffLimit: 0,
  template: {spec: {restartPolicy: Never, nodeName: nowhere, containers: [{name: c, image: i}]}}}}`

// failPods sets all pods of the member to failed. It returns an error if there is none.
func (f *fixture) failPods() error {
	pods := &corev1.PodList{}
	if err := f.member.List(f.T.Context(), pods, client.InNamespace(f.name)); err != nil {
		return err
	}
	for i := range pods.Items {
		pods.Items[i].Status.Phase = corev1.PodFailed
		if err := f.member.Status().Update(f.T.Context(), &pods.Items[i]); err != nil {
			return err
		}
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("the Job has no pods yet")
	}
	return nil
}

// TestJob_EndedWhileAgentIsStopped checks that a Job which failed and was deleted while the agent did not run is not
// reported as successful, and that a Job which a user deletes while it runs has failed.
func TestJob_EndedWhileAgentIsStopped(t *testing.T) {
	t.Parallel()
	f := newFixtureWithMember(t)
	stop := f.start()
	hasAvailable := func(work *v1alpha1.Work, status metav1.ConditionStatus, message string) func() error {
		return func() error {
			if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
				return err
			}
			complete := condition(work, v1alpha1.ConditionComplete)
			if complete == nil || complete.Status != "False" {
				return fmt.Errorf("want an incomplete Work, got:\n%s", render(work.Status))
			}
			available := findManifestCondition(work, 0, v1alpha1.ConditionAvailable)
			if available.Status != status || !strings.Contains(available.Message, message) {
				return fmt.Errorf("want Available=%s with %q, got:\n%s", status, message, render(work.Status))
			}
			return nil
		}
	}
	work := f.work("migration", "{"+manifests(jobOnce)+"}")
	f.Eventually("the Work is not available", hasAvailable(work, "False", ""))
	f.Holds("Job once exists", func() bool { return f.read("Job", "once") != nil })
	stop()
	f.Eventually("the Pods of the Job fail", f.failPods)
	f.Holds("Job once does not exist", func() bool { return f.read("Job", "once") == nil })
	stop = f.start()
	f.Eventually("the result of the Job is unknown", hasAvailable(work, "Unknown", "Increase ttlSecondsAfterFinished"))
	stop()
	f.start()
	f.change(work, "{"+manifests(strings.Replace(jobOnce, "image: i", "image: other", 1))+"}")
	f.Holds("Job once exists", func() bool { return f.read("Job", "once") != nil })
	require.NoError(t, f.member.Delete(t.Context(), f.read("Job", "once"),
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
	f.Eventually("the deletion of the unfinished Job is reported", hasAvailable(work, "False", "before it finished"))
}

// TestRejected_IsNotSentAgainWhenOtherObjectsChange checks that a rejected manifest is not sent again each time another
// object of its Work changes.
func TestRejected_IsNotSentAgainWhenOtherObjectsChange(t *testing.T) {
	testkit.Virtual(t, testRejectedIsNotSentAgainWhenOtherObjectsChange)
}

func testRejectedIsNotSentAgainWhenOtherObjectsChange(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	const bad = "{apiVersion: v1, kind: Service, metadata: {name: bad, namespace: NS}, spec: {ports: [{port: 99999}]}}"
	work := f.work("shop", "{"+manifests(bad, configMap("busy", "{k: v}"))+
		", manifestOptions: [{select: {name: busy}, feedback: [{name: seen, jsonPath: .data.seen}]}]}")
	f.awaitApplied(work, 0, "False", v1alpha1.ReasonRejected, "99999")
	f.toMember.take()
	for i := range 20 { // each change is reconciled
		value := fmt.Sprint("v", i)
		f.patch(f.read("ConfigMap", "busy"), "data: {seen: "+value+"}")
		f.Eventually("the status has the new value", func() error {
			if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
				return err
			}
			return equal(value, feedback(work, "seen"))
		})
	}
	sent := count(f.toMember.take(), "PATCH services bad")
	require.LessOrEqual(t, sent, 8, "the backoff begins at one second and doubles after each rejection")
}
