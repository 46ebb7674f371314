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
func (w *world) awaitApplied(work *v1alpha1.Work, ordinal int, status, reason, message string) {
	w.t.Helper()
	w.eventually(func() error {
		if err := w.hub.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
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
	w := newWorldInMemory(t)
	w.start()
	spec := func(value string) string {
		return "{" + manifests(configMap("a", "{k: "+value+"}"), configMap("b", "{k: "+value+"}")) + "}"
	}
	work := w.work("shop", spec("v"))
	w.ready(work)
	annotate := func(value string) {
		w.patch(w.read("ConfigMap", "a"), "metadata: {annotations: {"+v1alpha1.DisabledAnnotation+": "+value+"}}")
	}
	annotate("Apply")
	w.awaitApplied(work, 0, "False", v1alpha1.ReasonDisabled, v1alpha1.DisabledAnnotation)
	w.change(work, spec("w"))
	w.awaitApplied(work, 0, "False", v1alpha1.ReasonDisabled, "Remove the annotation on the member")
	w.awaitApplied(work, 1, "True", v1alpha1.ReasonApplied, "")
	require.Equal(t, []string{"v", "w"}, []string{w.data("a", "k"), w.data("b", "k")})
	require.Equal(t, v1alpha1.ReasonDisabled, condition(work, v1alpha1.ConditionDegraded).Reason)
	annotate("null")
	w.ready(work)
	require.Equal(t, "w", w.data("a", "k"))

	reported := func() error {
		if err := w.hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if !strings.Contains(work.Status.Message, v1alpha1.DisabledAnnotation) {
			return fmt.Errorf("the status of the Work does not name the annotation: %s", work.Status.Message)
		}
		return nil
	}
	annotate("Delete")
	w.change(work, "{"+manifests(configMap("b", "{k: w}"))+"}")
	w.eventually(reported)
	require.Nil(t, w.read("ConfigMap", "a").GetDeletionTimestamp(),
		"the object stays although the Work no longer contains it")
	w.delete(work)
	w.eventually(func() error {
		if err := reported(); err != nil {
			return err
		}
		if !strings.Contains(work.Status.Message, "Waiting for the deletion of 1 object.") {
			return fmt.Errorf("the clean-up is not reported: %s", work.Status.Message)
		}
		return nil
	})
	w.eventually(func() error { return equal("", w.data("b", "k")) })
	require.Nil(t, w.read("ConfigMap", "a").GetDeletionTimestamp())
	annotate("null")
	w.gone(work)
	require.Nil(t, w.read("ConfigMap", "a"))
}

// TestRecreate checks a Work that changes an immutable Secret: it is rejected, with a message that names the field,
// until the Work permits that the object is deleted and created again.
func TestRecreate(t *testing.T) { testkit.Virtual(t, testRecreate) }

func testRecreate(t *testing.T) {
	w := newWorldInMemory(t)
	w.start()
	spec := func(value, options string) string {
		secret := "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS}, immutable: true, " +
			"stringData: {password: " + value + "}}"
		return "{" + manifests(secret, configMap("a", "{k: v}")) + options + "}"
	}
	work := w.work("shop", spec("one", ""))
	w.ready(work)
	uid := w.read("Secret", "s").GetUID()
	w.change(work, spec("two", ""))
	w.awaitApplied(work, 0, "False", v1alpha1.ReasonRejected, "data")
	require.Equal(t, uid, w.read("Secret", "s").GetUID())
	w.change(work, spec("two", ", apply: {recreate: IfImmutable}"))
	w.ready(work)
	require.NotEqual(t, uid, w.read("Secret", "s").GetUID())
}

// TestJob_FailedAndDeletedByTTL checks a Job with a TTL that fails: it is not run again, and its Work reports the
// failure also after the Job was deleted and after a restart.
func TestJob_FailedAndDeletedByTTL(t *testing.T) {
	t.Parallel()
	w := newWorldWithMember(t)
	stop := w.start()
	work := w.work("migration", "{"+manifests(jobOnce, configMap("a", "{k: v}"))+"}")
	w.eventually(w.failPods)
	failed := func() error {
		if err := w.hub.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if w.read("Job", "once") != nil {
			return fmt.Errorf("the Job still exists")
		}
		if c := condition(work, v1alpha1.ConditionDegraded); c == nil || c.Reason != v1alpha1.ReasonNotReady {
			return fmt.Errorf("the failure is not reported:\n%s", render(work.Status))
		}
		return nil
	}
	w.eventually(failed)
	stop()
	w.start()
	w.patch(w.read("ConfigMap", "a"), "data: {k: edited}")
	w.eventually(func() error { return equal("v", w.data("a", "k")) }) // so that the agent has reconciled
	w.awaitNoWrites()
	require.NoError(t, failed())
}

// jobOnce is a Job that Kubernetes deletes as soon as it has finished.
const jobOnce = `{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: NS},
  spec: {ttlSecondsAfterFinished: 0, backoffLimit: 0,
  template: {spec: {restartPolicy: Never, nodeName: nowhere, containers: [{name: c, image: i}]}}}}`

// failPods sets all pods of the member to failed. It returns an error if there is none.
func (w *world) failPods() error {
	pods := &corev1.PodList{}
	if err := w.member.List(w.t.Context(), pods, client.InNamespace(w.name)); err != nil {
		return err
	}
	for i := range pods.Items {
		pods.Items[i].Status.Phase = corev1.PodFailed
		if err := w.member.Status().Update(w.t.Context(), &pods.Items[i]); err != nil {
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
	w := newWorldWithMember(t)
	stop := w.start()
	hasAvailable := func(work *v1alpha1.Work, status metav1.ConditionStatus, message string) func() error {
		return func() error {
			if err := w.hub.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
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
	work := w.work("migration", "{"+manifests(jobOnce)+"}")
	w.eventually(hasAvailable(work, "False", ""))
	w.eventually(func() error { return equal(true, w.read("Job", "once") != nil) })
	stop()
	w.eventually(w.failPods)
	w.eventually(func() error { return equal(true, w.read("Job", "once") == nil) })
	stop = w.start()
	w.eventually(hasAvailable(work, "Unknown", "Increase ttlSecondsAfterFinished"))
	stop()
	w.start()
	w.change(work, "{"+manifests(strings.Replace(jobOnce, "image: i", "image: other", 1))+"}")
	w.eventually(func() error { return equal(true, w.read("Job", "once") != nil) })
	require.NoError(t, w.member.Delete(t.Context(), w.read("Job", "once"),
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
	w.eventually(hasAvailable(work, "False", "before it finished"))
}

// TestRejected_IsNotSentAgainWhenOtherObjectsChange checks that a rejected manifest is not sent again each time another
// object of its Work changes.
func TestRejected_IsNotSentAgainWhenOtherObjectsChange(t *testing.T) {
	testkit.Virtual(t, testRejectedIsNotSentAgainWhenOtherObjectsChange)
}

func testRejectedIsNotSentAgainWhenOtherObjectsChange(t *testing.T) {
	w := newWorldInMemory(t)
	w.start()
	const bad = "{apiVersion: v1, kind: Service, metadata: {name: bad, namespace: NS}, spec: {ports: [{port: 99999}]}}"
	work := w.work("shop", "{"+manifests(bad, configMap("busy", "{k: v}"))+
		", manifestOptions: [{select: {name: busy}, feedback: [{name: seen, jsonPath: .data.seen}]}]}")
	w.awaitApplied(work, 0, "False", v1alpha1.ReasonRejected, "99999")
	w.toMember.take()
	for i := range 20 { // each change is reconciled
		value := fmt.Sprint("v", i)
		w.patch(w.read("ConfigMap", "busy"), "data: {seen: "+value+"}")
		w.eventually(func() error {
			if err := w.hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
				return err
			}
			return equal(value, feedback(work, "seen"))
		})
	}
	sent := count(w.toMember.take(), "PATCH services bad")
	require.LessOrEqual(t, sent, 8, "the backoff begins at one second and doubles after each rejection")
}
