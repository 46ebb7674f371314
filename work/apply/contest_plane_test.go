package apply_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// fakeClock gives the engine a clock that does not advance.
func (w *world) fakeClock() *clocktesting.FakePassiveClock {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	w.engine = apply.New(newClient(w.t, w.counting()), apply.Options{Clock: clock})
	return clock
}

func TestContested(t *testing.T) { testkit.Virtual(t, testContested) }

func testContested(t *testing.T) {
	w := newWorldInMemory(t)
	clock := w.fakeClock()
	object := w.configMap("a", "{k: v, l: w}")
	require.Equal(t, apply.Created, w.one(object).Action)
	opponent := func() { w.patch(object.Manifest, "{data: {k: theirs}}") }

	healed := 0
	var change apply.Change
	for range 100 {
		opponent()
		if change = w.one(object); change.Action == apply.Configured {
			healed++
		}
	}
	require.Equal(t, 3, healed, "no time has passed: only the free heals are made")
	require.Equal(t, apply.Skipped, change.Action)
	require.Equal(t, v1alpha1.ReasonContested, change.Reason)
	require.Equal(t, []apply.FieldConflict{{Field: ".data.k", Manager: "editor"}}, change.Conflicts)
	for _, part := range []string{`.data.k by "editor"`, "ignoredFields"} {
		require.Contains(t, change.Message, part)
	}
	require.Positive(t, change.RetryAfter)
	require.True(t, change.Done(), "other objects do not wait for a contested object")

	testkit.Step(t, "after the pause", func() {
		clock.SetTime(clock.Now().Add(change.RetryAfter))
		change = w.one(object)
		require.Equal(t, apply.Configured, change.Action)
		require.Equal(t, v1alpha1.ReasonContested, change.Reason, "another heal does not end the contest")
		require.Equal(t, v1alpha1.ReasonContested, w.one(object).Reason)
		for pause := 4 * time.Second; pause < 20*time.Minute; pause *= 2 { // the pause doubles, up to a limit
			opponent()
			change = w.one(object)
			require.Equal(t, apply.Skipped, change.Action)
			require.Equal(t, min(pause, 5*time.Minute), change.RetryAfter)
			require.Contains(t, change.Message, "correction is "+min(pause, 5*time.Minute).String())
			clock.SetTime(clock.Now().Add(change.RetryAfter - time.Millisecond))
			require.Equal(t, apply.Skipped, w.one(object).Action)
			clock.SetTime(clock.Now().Add(time.Millisecond))
			require.Equal(t, apply.Configured, w.one(object).Action)
		}
	})
	testkit.Step(t, "edit of the contested field by a person is healed at once", func() {
		opponent()
		require.Equal(t, apply.Skipped, w.one(object).Action, "the pause of the contest is not over")
		w.jsonPatch(object.Manifest, "[{op: replace, path: /data/k, value: edited}]")
		require.Equal(t, apply.Configured, w.one(object).Action)
		require.Equal(t, "v", w.get(object.Manifest).Object["data"].(map[string]any)["k"])
		opponent()
		require.Equal(t, apply.Skipped, w.one(object).Action, "the contest continues")
	})
	testkit.Step(t, "edit of another field is healed at once", func() {
		w.patch(object.Manifest, "{data: {l: edited}}")
		require.Equal(t, apply.Configured, w.one(object).Action)
		require.Equal(t, "w", w.get(object.Manifest).Object["data"].(map[string]any)["l"])
	})
	testkit.Step(t, "changed manifest is applied at once", func() {
		opponent()
		change := w.one(w.configMap("a", "{k: x, l: w}"))
		require.Equal(t, apply.Configured, change.Action)
		require.Equal(t, v1alpha1.ReasonApplied, change.Reason)
	})
	testkit.Step(t, "ignoredFields ends the contest", func() {
		object := w.configMap("a", "{k: x, l: w}", ignored(t, ".data.k"))
		w.one(object)
		for range 5 {
			opponent()
			require.Equal(t, v1alpha1.ReasonApplied, w.one(object).Reason)
		}
	})
	testkit.Step(t, "contest ends after the pause", func() {
		object := w.configMap("b", "{k: v}")
		w.one(object)
		for range 4 {
			w.patch(object.Manifest, "{data: {k: theirs}}")
			change = w.one(object)
		}
		clock.SetTime(clock.Now().Add(change.RetryAfter))
		change = w.one(object)
		require.Equal(t, v1alpha1.ReasonContested, change.Reason)
		clock.SetTime(clock.Now().Add(change.RetryAfter))
		w.counted.take()
		require.Equal(t, v1alpha1.ReasonApplied, w.one(object).Reason)
		_, writes := w.counted.take()
		require.Zero(t, writes)
	})
}

func TestContested_RemovedAndDeleted(t *testing.T) {
	testkit.Virtual(t, testContestedRemovedAndDeleted)
}

func testContestedRemovedAndDeleted(t *testing.T) {
	w := newWorldInMemory(t)
	w.fakeClock()
	finalized := w.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: f, namespace: NS, finalizers: " +
		"[example.com/f]}}")
	t.Cleanup(func() {
		(&world{t: noContext{t}, admin: w.admin}).patch(finalized.Manifest, "{metadata: {finalizers: null}}")
	})
	deleted := w.configMap("d", "{k: v}")
	var changes []apply.Change
	written := 0
	w.apply(finalized, deleted)
	for range 10 {
		w.patch(finalized.Manifest, "{metadata: {finalizers: null}}")
		if !w.isGone(deleted.Manifest) {
			require.NoError(t, w.admin.Delete(t.Context(), deleted.Manifest.DeepCopy()))
		}
		changes = w.apply(finalized, deleted)
		for _, change := range changes {
			if change.Action == apply.Configured || change.Action == apply.Created {
				written++
			}
		}
	}
	require.Equal(t, 6, written, "three heals of each object")
	require.Contains(t, changes[0].Message, `.metadata.finalizers[="example.com/f"] by another client`,
		"a manager that only removes fields has no entry in managedFields")
	require.Equal(t, v1alpha1.ReasonContested, changes[1].Reason)
	require.Contains(t, changes[1].Message, "CreateOnly")
}

// TestContested_Autoscaler checks a manifest with replicas that an autoscaler writes through the subresource scale.
func TestContested_Autoscaler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fakeClock()
	web := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NS},
    spec: {replicas: 0, selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`
	object := w.object(web)
	w.one(object)
	scale := func(replicas int32) {
		scaled := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		require.NoError(t, w.admin.SubResource("scale").Update(t.Context(), object.Manifest.DeepCopy(),
			client.WithSubResourceBody(scaled),
			client.FieldOwner("kube-controller-manager")))
	}
	healed := 0
	var change apply.Change
	for i := range 10 {
		scale(int32(i%2 + 1))
		if change = w.one(object); change.Action == apply.Configured {
			healed++
		}
	}
	require.Equal(t, 3, healed)
	require.Equal(t, v1alpha1.ReasonContested, change.Reason)
	require.Contains(t, change.Message, `.spec.replicas by "kube-controller-manager"`)
	require.Contains(t, change.Message, "Add .spec.replicas to ignoredFields")
	remedied := w.object(web, ignored(t, ".spec.replicas"))
	for range 3 {
		scale(1)
		require.Equal(t, v1alpha1.ReasonApplied, w.one(remedied).Reason)
		scale(2)
	}
	replicas, _, _ := unstructured.NestedInt64(w.get(object.Manifest).Object, "spec", "replicas")
	require.Equal(t, int64(2), replicas, "the autoscaler sets the replicas")
}

// TestPlatformWriters checks manifests with fields that the controllers of Kubernetes write: the engine stops
// writing, also after a restart.
func TestPlatformWriters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := w.objects(`
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: exported, namespace: NS,
   annotations: {deployment.kubernetes.io/revision: "7", note: kept}},
   spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
     spec: {containers: [{name: c, image: x}]}}},
   status: {observedGeneration: 3, replicas: 3}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-part, labels: {agg-NS: "true"}},
   rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-whole},
   aggregationRule: {clusterRoleSelectors: [{matchLabels: {agg-NS: "true"}}]}, rules: []}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: NS},
   data: {ca.crt: of another cluster}}
- {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: NS-hook},
   webhooks: [{name: a.example.com, admissionReviewVersions: [v1],
   sideEffects: None, failurePolicy: Ignore, matchPolicy: Exact, clientConfig: {caBundle: Cg==,
     url: "https://example.com/a"}, rules: []}]}
`)
	clusterWide := []*unstructured.Unstructured{objects[1].Manifest, objects[2].Manifest, objects[4].Manifest}
	t.Cleanup(func() {
		for _, object := range clusterWide {
			_ = w.admin.Delete(noContext{t}.Context(), object.DeepCopy())
		}
	})
	hook := objects[4].Manifest
	inject := func() {
		if w.isGone(hook) {
			return
		}
		live := w.get(hook)
		webhook := live.Object["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any)
		webhook["caBundle"] = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJ="
		require.NoError(t, w.admin.Update(t.Context(), live, client.FieldOwner("cainjector")))
	}
	w.requireNoMoreWrites(objects, inject)
	require.Equal(t, "kept", w.get(objects[0].Manifest).GetAnnotations()["note"])
	rules, _, _ := unstructured.NestedSlice(w.get(objects[2].Manifest).Object, "rules")
	require.NotEmpty(t, rules, "the rules of the aggregation controller are kept")
	ca, _, _ := unstructured.NestedString(w.get(objects[3].Manifest).Object, "data", "ca.crt")
	require.Contains(t, ca, "BEGIN CERTIFICATE")
}
