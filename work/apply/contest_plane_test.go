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
func (f *fixture) fakeClock() *clocktesting.FakePassiveClock {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	f.engine = apply.New(newClient(f.T, f.counting()), apply.Options{Clock: clock})
	return clock
}

func TestContested(t *testing.T) { testkit.Virtual(t, testContested) }

func testContested(t *testing.T) {
	f := newMemoryFixture(t)
	clock := f.fakeClock()
	object := f.configMap("a", "{k: v, l: w}")
	require.Equal(t, apply.Created, f.one(object).Action)
	opponent := func() { f.patch(object.Manifest, "{data: {k: theirs}}") }

	healed := 0
	var change apply.Change
	for range 100 {
		opponent()
		if change = f.one(object); change.Action == apply.Configured {
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
		change = f.one(object)
		require.Equal(t, apply.Configured, change.Action)
		require.Equal(t, v1alpha1.ReasonContested, change.Reason, "another heal does not end the contest")
		require.Equal(t, v1alpha1.ReasonContested, f.one(object).Reason)
		for pause := 4 * time.Second; pause < 20*time.Minute; pause *= 2 { // the pause doubles, up to a limit
			opponent()
			change = f.one(object)
			require.Equal(t, apply.Skipped, change.Action)
			require.Equal(t, min(pause, 5*time.Minute), change.RetryAfter)
			require.Contains(t, change.Message, "correction is "+min(pause, 5*time.Minute).String())
			clock.SetTime(clock.Now().Add(change.RetryAfter - time.Millisecond))
			require.Equal(t, apply.Skipped, f.one(object).Action)
			clock.SetTime(clock.Now().Add(time.Millisecond))
			require.Equal(t, apply.Configured, f.one(object).Action)
		}
	})
	testkit.Step(t, "edit of the contested field by a person is healed at once", func() {
		opponent()
		require.Equal(t, apply.Skipped, f.one(object).Action, "the pause of the contest is not over")
		f.jsonPatch(object.Manifest, "[{op: replace, path: /data/k, value: edited}]")
		require.Equal(t, apply.Configured, f.one(object).Action)
		require.Equal(t, "v", f.get(object.Manifest).Object["data"].(map[string]any)["k"])
		opponent()
		require.Equal(t, apply.Skipped, f.one(object).Action, "the contest continues")
	})
	testkit.Step(t, "edit of another field is healed at once", func() {
		f.patch(object.Manifest, "{data: {l: edited}}")
		require.Equal(t, apply.Configured, f.one(object).Action)
		require.Equal(t, "w", f.get(object.Manifest).Object["data"].(map[string]any)["l"])
	})
	testkit.Step(t, "changed manifest is applied at once", func() {
		opponent()
		change := f.one(f.configMap("a", "{k: x, l: w}"))
		require.Equal(t, apply.Configured, change.Action)
		require.Equal(t, v1alpha1.ReasonApplied, change.Reason)
	})
	testkit.Step(t, "ignoredFields ends the contest", func() {
		object := f.configMap("a", "{k: x, l: w}", ignored(t, ".data.k"))
		f.one(object)
		for range 5 {
			opponent()
			require.Equal(t, v1alpha1.ReasonApplied, f.one(object).Reason)
		}
	})
	testkit.Step(t, "contest ends after the pause", func() {
		object := f.configMap("b", "{k: v}")
		f.one(object)
		for range 4 {
			f.patch(object.Manifest, "{data: {k: theirs}}")
			change = f.one(object)
		}
		clock.SetTime(clock.Now().Add(change.RetryAfter))
		change = f.one(object)
		require.Equal(t, v1alpha1.ReasonContested, change.Reason)
		clock.SetTime(clock.Now().Add(change.RetryAfter))
		f.counted.take()
		require.Equal(t, v1alpha1.ReasonApplied, f.one(object).Reason)
		_, writes := f.counted.take()
		require.Zero(t, writes)
	})
}

func TestContested_RemovedAndDeleted(t *testing.T) {
	testkit.Virtual(t, testContestedRemovedAndDeleted)
}

func testContestedRemovedAndDeleted(t *testing.T) {
	f := newMemoryFixture(t)
	f.fakeClock()
	finalized := f.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: f, namespace: NS, finalizers: " +
		"[example.com/f]}}")
	t.Cleanup(func() {
		f.in(noContext{t}).patch(finalized.Manifest, "{metadata: {finalizers: null}}")
	})
	deleted := f.configMap("d", "{k: v}")
	var changes []apply.Change
	written := 0
	f.apply(finalized, deleted)
	for range 10 {
		f.patch(finalized.Manifest, "{metadata: {finalizers: null}}")
		if !f.isGone(deleted.Manifest) {
			require.NoError(t, f.Client.Delete(t.Context(), deleted.Manifest.DeepCopy()))
		}
		changes = f.apply(finalized, deleted)
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
	f := newFixture(t)
	f.fakeClock()
	web := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NS},
    spec: {replicas: 0, selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`
	object := f.object(web)
	f.one(object)
	scale := func(replicas int32) {
		scaled := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		require.NoError(t, f.Client.SubResource("scale").Update(t.Context(), object.Manifest.DeepCopy(),
			client.WithSubResourceBody(scaled),
			client.FieldOwner("kube-controller-manager")))
	}
	healed := 0
	var change apply.Change
	for i := range 10 {
		scale(int32(i%2 + 1))
		if change = f.one(object); change.Action == apply.Configured {
			healed++
		}
	}
	require.Equal(t, 3, healed)
	require.Equal(t, v1alpha1.ReasonContested, change.Reason)
	require.Contains(t, change.Message, `.spec.replicas by "kube-controller-manager"`)
	require.Contains(t, change.Message, "Add .spec.replicas to ignoredFields")
	remedied := f.object(web, ignored(t, ".spec.replicas"))
	for range 3 {
		scale(1)
		require.Equal(t, v1alpha1.ReasonApplied, f.one(remedied).Reason)
		scale(2)
	}
	replicas, _, _ := unstructured.NestedInt64(f.get(object.Manifest).Object, "spec", "replicas")
	require.Equal(t, int64(2), replicas, "the autoscaler sets the replicas")
}

// TestPlatformWriters checks manifests with fields that the controllers of Kubernetes write: the engine stops
// writing, also after a restart.
func TestPlatformWriters(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	objects := f.objects(`
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
			_ = f.Client.Delete(noContext{t}.Context(), object.DeepCopy())
		}
	})
	hook := objects[4].Manifest
	inject := func() {
		if f.isGone(hook) {
			return
		}
		live := f.get(hook)
		webhook := live.Object["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any)
		webhook["caBundle"] = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJ="
		require.NoError(t, f.Client.Update(t.Context(), live, client.FieldOwner("cainjector")))
	}
	f.requireNoMoreWrites(objects, inject)
	require.Equal(t, "kept", f.get(objects[0].Manifest).GetAnnotations()["note"])
	rules, _, _ := unstructured.NestedSlice(f.get(objects[2].Manifest).Object, "rules")
	require.NotEmpty(t, rules, "the rules of the aggregation controller are kept")
	ca, _, _ := unstructured.NestedString(f.get(objects[3].Manifest).Object, "data", "ca.crt")
	require.Contains(t, ca, "BEGIN CERTIFICATE")
}
