package apply_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

func additions(p v1alpha1.AdditionPolicy) func(*apply.Object) {
	return func(o *apply.Object) { o.Additions = p }
}

const strictDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NS},
    spec: {replicas: 0,
  selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
    spec: {containers: [{name: web, image: nginx}]}}}}`

// TestAdditions checks additions of other clients to objects: keys, containers, annotations and environment
// variables.
func TestAdditions(t *testing.T) {
	t.Parallel()
	edits := map[string]string{
		"a container": `{spec: {template: {spec: {containers: [{name: web, image: nginx}, {name: sidecar, image: s}]}}}}`,
		"an annotation": `{metadata: {annotations: {example.com/note: x}}, spec: {template: {metadata: {annotations: ` +
			`{restarted: now}}}}}`,
		"a field": `{spec: {paused: true, template: {spec: {containers: [{name: web, image: nginx, env: [{name: A, value: ` +
			`b}]}]}}}}`,
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			kept := f.object(strictDeployment)
			require.Equal(t, apply.Created, f.one(kept).Action)
			clean := written(f.get(kept.Manifest))
			f.patch(kept.Manifest, edit)
			require.Equal(t, apply.Unchanged, f.one(kept).Action, "additions are kept by default")

			reported := f.object(strictDeployment, additions(v1alpha1.AdditionsReport))
			f.counted.take()
			change := f.one(reported)
			require.Equal(t, []any{apply.Skipped, v1alpha1.ReasonDrifted, true}, []any{change.Action, change.Reason,
				change.Drifted}, change.Message)
			require.Contains(t, change.Message, `is owned by "editor"`)
			_, writes := f.counted.take()
			require.Zero(t, writes, "a report changes nothing")

			strict := f.object(strictDeployment, additions(v1alpha1.AdditionsRemove))
			f.restart()
			change = f.one(strict)
			require.Equal(t, []any{apply.Configured, true}, []any{change.Action, change.Drifted}, "%s %v", change.Message,
				change.Err)
			require.Equal(t, clean, written(f.get(kept.Manifest)), "only the additions are removed")
			f.requireNoMoreWrites([]apply.Object{strict})
		})
	}
	t.Run("key of a ConfigMap, with and without ignoredFields", func(t *testing.T) {
		f := newFixture(t)
		strict := f.configMap("a", "{k: v}", additions(v1alpha1.AdditionsRemove), ignored(t, ".data.theirs"))
		f.one(strict)
		f.patch(strict.Manifest, "{data: {extra: x, theirs: z}, metadata: {labels: {l: m}}}")
		require.Equal(t, apply.Configured, f.one(strict).Action)
		live := f.get(strict.Manifest)
		require.Equal(t, map[string]any{"k": "v", "theirs": "z"}, live.Object["data"])
		require.NotContains(t, live.GetLabels(), "l")
		f.patch(strict.Manifest, "{data: {theirs: again}}")
		require.Equal(t, apply.Unchanged, f.one(strict).Action, "an ignored field is no addition")
		f.requireNoMoreWrites([]apply.Object{strict})
	})
	t.Run("rule of a Role and port of a Service", func(t *testing.T) {
		f := newFixture(t)
		role := f.object("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, namespace: NS}, "+
			"rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}", additions(v1alpha1.AdditionsRemove))
		service := f.object("{apiVersion: v1, kind: Service, metadata: {name: a, namespace: NS}, spec: {ports: [{name: a, "+
			"port: 80}]}}",
			additions(v1alpha1.AdditionsRemove))
		f.apply(role, service)
		count := func(o apply.Object, path ...string) int {
			items, _, _ := unstructured.NestedSlice(f.get(o.Manifest).Object, path...)
			return len(items)
		}
		f.jsonPatch(role.Manifest,
			"[{op: add, path: /rules/-, value: {apiGroups: [''], resources: [secrets], verbs: [get]}}]")
		f.jsonPatch(service.Manifest, "[{op: add, path: /spec/ports/-, value: {name: b, port: 81}}]")
		for _, change := range f.apply(role, service) {
			require.Equal(t, apply.Configured, change.Action, "%s: %s %v", change.Object, change.Message, change.Err)
		}
		require.Equal(t, []int{1, 1}, []int{count(role, "rules"), count(service, "spec", "ports")})
		f.requireNoMoreWrites([]apply.Object{role, service})

		role.Additions, role.Drift = v1alpha1.AdditionsReport, v1alpha1.DriftReport
		f.jsonPatch(role.Manifest,
			"[{op: add, path: /rules/-, value: {apiGroups: [''], resources: [secrets], verbs: [get]}}]")
		change := f.one(role)
		require.Equal(t, v1alpha1.ReasonDrifted, change.Reason, change.Message)
		require.Equal(t, 2, count(role, "rules"), "a report changes nothing")
	})
	t.Run("edit and addition at once", func(t *testing.T) {
		f := newFixture(t)
		strict := f.configMap("a", "{k: v}", additions(v1alpha1.AdditionsRemove))
		f.one(strict)
		f.patch(strict.Manifest, "{data: {k: edited, extra: x}}")
		require.Equal(t, apply.Configured, f.one(strict).Action)
		require.Equal(t, map[string]any{"k": "v"}, f.get(strict.Manifest).Object["data"])
	})
	t.Run("client adds the field repeatedly", func(t *testing.T) {
		f := newFixture(t)
		f.fakeClock()
		strict := f.configMap("a", "{k: v}", additions(v1alpha1.AdditionsRemove))
		f.one(strict)
		var last apply.Change
		for range 6 {
			f.patch(strict.Manifest, "{data: {extra: x}}")
			last = f.one(strict)
		}
		require.Equal(t, v1alpha1.ReasonContested, last.Reason)
		require.Contains(t, last.Message, `.data.extra by "editor"`)
		f.counted.take()
		f.one(strict)
		_, writes := f.counted.take()
		require.Zero(t, writes)
	})
	t.Run("fields of another owner are not additions", func(t *testing.T) {
		f := newFixture(t)
		strict := f.configMap("a", "{k: v}", additions(v1alpha1.AdditionsRemove))
		f.one(strict)
		other := f.other()
		require.True(t, other.one(other.configMap("a", "{l: w}")).Done())
		require.Equal(t, apply.Unchanged, f.one(strict).Action)
		require.Equal(t, map[string]any{"k": "v", "l": "w"}, f.get(strict.Manifest).Object["data"])
	})
}

// written returns the fields of an object that users write.
func written(object *unstructured.Unstructured) map[string]any {
	annotations := object.GetAnnotations()
	delete(annotations, "deployment.kubernetes.io/revision")
	metadata := map[string]any{"labels": object.GetLabels(), "annotations": annotations}
	return map[string]any{"metadata": metadata, "spec": object.Object["spec"]}
}

// TestDriftIgnore checks that edits stay until the manifest changes, also after a restart, and that a deleted object
// is created again.
func TestDriftIgnore(t *testing.T) { testkit.Virtual(t, testDriftIgnore) }

func testDriftIgnore(t *testing.T) {
	f := newMemoryFixture(t)
	object := f.configMap("a", "{k: v, l: w}", drift(v1alpha1.DriftIgnore))
	value := func() any { return f.get(object.Manifest).Object["data"].(map[string]any)["k"] }
	f.one(object)
	f.patch(object.Manifest, "{data: {k: edited}}")
	for range 2 {
		require.Equal(t, apply.Unchanged, f.one(object).Action)
		require.Equal(t, "edited", value())
		f.restart()
	}
	changed := f.configMap("a", "{k: v, l: x}", drift(v1alpha1.DriftIgnore))
	require.Equal(t, apply.Configured, f.one(changed).Action)
	require.Equal(t, "v", value(), "a changed manifest replaces the edits")
	require.NoError(t, f.Client.Delete(t.Context(), object.Manifest.DeepCopy()))
	require.Equal(t, apply.Created, f.one(changed).Action)
}
