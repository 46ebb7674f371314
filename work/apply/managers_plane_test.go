package apply_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

const podTemplate = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME, namespace: NS},
  spec: {replicas: 0, selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: IMAGE CONTAINER}] POD}}}}`

// TestHeal_MergeIsInvalid checks edits after which the merge of manifest and object is invalid. Each is
// reverted immediately, and a manifest that has changed meanwhile is applied as well.
func TestHeal_MergeIsInvalid(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	template := func(container, pod string) string {
		return strings.NewReplacer("CONTAINER", container, "POD", pod).Replace(podTemplate)
	}
	const container = "/spec/template/spec/containers/0"
	for name, tc := range map[string]struct {
		reason   string
		manifest string
		edit     string // a JSON patch
		then     string // the edit of a changed manifest; empty: by the image
	}{
		"port": {
			"the number of a named port changes", `{apiVersion: v1, kind: Service, metadata: {name: NAME, namespace: ` +
				`NS, labels: {v: "IMAGE"}}, spec: {ports: [{name: http, port: 80}, {name: b, port: 90}]}}`,
			`[{op: replace, path: /spec/ports/0/port, value: 81}]`, "",
		},
		"volume": {
			"the source of a volume changes", template(", volumeMounts: [{name: d, mountPath: /d}]",
				", volumes: [{name: d, emptyDir: {}}]"),
			`[{op: replace, path: /spec/template/spec/volumes/0, value: {name: d, configMap: {name: x}}}]`, "",
		},
		"probe": {
			"the type of a probe changes", template(", livenessProbe: {httpGet: {port: 80, path: /}, periodSeconds: 7}", ""),
			`[{op: replace, path: ` + container + `/livenessProbe, value: {tcpSocket: {port: 81}, periodSeconds: 7}}]`, "",
		},
		"env": {
			"a value becomes a reference", template(", env: [{name: A, value: x}, {name: B, value: x}]", ""),
			`[{op: replace, path: ` + container + `/env/0, value: {name: A, valueFrom: {configMapKeyRef: {name: x, key: k}}}}]`,
			"",
		},
		"lifecycle": {
			"the type of a hook changes", template(", lifecycle: {preStop: {exec: {command: [a]}}}", ""),
			`[{op: replace, path: ` + container + `/lifecycle/preStop, value: {httpGet: {port: 81}}}]`, "",
		},
		"budget": {
			"the bound of a disruption budget changes", `{apiVersion: policy/v1, kind: PodDisruptionBudget,
      metadata: {name: NAME, namespace: NS,
    labels: {v: "IMAGE"}},
  spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}}`,
			`[{op: remove, path: /spec/minAvailable}, {op: add, path: /spec/maxUnavailable, value: 2}]`, "",
		},
		"strategy": {
			"the manifest changes to another union member after the first one was defaulted",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME, namespace: NS},
    spec: {replicas: 0, strategy: {type: RollingUpdate}, selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: IMAGE}]}}}}`,
			`[]`, "RollingUpdate→Recreate",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			for _, when := range []string{"heal", "change"} {
				f.inventory = nil
				text := strings.ReplaceAll(tc.manifest, "NAME", name+"-"+when)
				object := f.object(strings.ReplaceAll(text, "IMAGE", "i1"))
				require.Equal(t, apply.Created, f.one(object).Action)
				before := f.get(object.Manifest)
				f.jsonPatch(object.Manifest, tc.edit)
				if when == "change" {
					if from, to, other := strings.Cut(tc.then, "→"); other {
						text = strings.ReplaceAll(text, from, to)
					}
					object = f.object(strings.ReplaceAll(text, "IMAGE", "i2"))
				}
				change := f.one(object)
				require.NoError(t, change.Err, "%s: %s", tc.reason, change.Message)
				live := f.get(object.Manifest)
				if when == "heal" {
					require.Equal(t, spec(before), spec(live), tc.reason)
				} else {
					require.Contains(t, string(mustMarshal(t, live.Object)), "i2")
				}
				require.Equal(t, apply.Unchanged, f.one(object).Action)
			}
		})
	}
}

func spec(u *unstructured.Unstructured) any { return u.Object["spec"] }

func mustMarshal(t testing.TB, object any) []byte {
	t.Helper()
	data, err := json.Marshal(object)
	require.NoError(t, err)
	return data
}

func (f *fixture) jsonPatch(object *unstructured.Unstructured, text string) {
	f.T.Helper()
	patch := client.RawPatch("application/json-patch+json", yamlToJSON(f.T, text))
	err := f.Client.Patch(f.T.Context(), object.DeepCopy(), patch, client.FieldOwner("kubectl-edit"))
	if err != nil {
		message := err.Error()
		f.T.Fatalf("edit %s: …%s", object.GetName(), message[max(0, len(message)-300):])
	}
}

// TestHeal_KeepsFieldsOfOtherManagers checks that only conflicting fields are taken from other managers.
func TestHeal_KeepsFieldsOfOtherManagers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	object := f.object(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NS},
    spec: {selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, env: [{name: A, value: x}]}]}}}}`)
	f.one(object)
	f.jsonPatch(object.Manifest, `[{op: add, path: /spec/template/spec/containers/-, value: {name: sidecar, image: s,
    env: [{name: A, value: theirs}]}},
  {op: replace, path: /spec/replicas, value: 0}, {op: add, path: /metadata/annotations/note, value: theirs},
  {op: replace, path: /spec/template/spec/containers/0/env/0,
    value: {name: A, valueFrom: {configMapKeyRef: {name: x, key: k}}}}]`)
	change := f.one(object)
	require.Equal(t, apply.Configured, change.Action, "%s %v", change.Message, change.Err)
	live := f.get(object.Manifest)
	containers, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
	require.Len(t, containers, 2, "a container of another manager stays")
	require.Equal(t, "theirs", live.GetAnnotations()["note"])
	replicas, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	require.Zero(t, replicas)
}

// TestManagedFields_StaleVersions checks a custom resource whose managed fields have a version that its definition does
// not serve any more.
func TestManagedFields_StaleVersions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	group := f.Namespace + ".example.com"
	crd := func(versions string) *unstructured.Unstructured {
		return manifest(t, strings.NewReplacer("GROUP", group, "VERSIONS",
			versions).Replace(`{apiVersion: apiextensions.k8s.io/v1,
    kind: CustomResourceDefinition,
  metadata: {name: wheels.GROUP}, spec: {group: GROUP, scope: Namespaced, names: {plural: wheels, kind: Wheel},
    versions: [VERSIONS]}}`))
	}
	version := func(name string, stored bool, fields string) string {
		return fmt.Sprintf(`{name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: `+
			`{spec: {type: object, properties: {%s}}}}}}`, name, stored, fields)
	}
	const old = "size: {type: integer}, color: {type: string}, label: {type: string}"
	definition := crd(version("v1beta1", true, old))
	t.Cleanup(func() { _ = f.Client.Delete(noContext{t}.Context(), definition) })
	require.NoError(t, f.Client.Create(t.Context(), definition))
	wheel := func(version, name, color string) apply.Object {
		return f.object("{apiVersion: " + group + "/" + version + ", kind: Wheel, metadata: {name: " + name +
			", namespace: NS}, spec: {size: 3, color: " + color + "}}")
	}
	var change apply.Change
	require.Eventually(t, func() bool { change = f.one(wheel("v1beta1", "ours", "red")); return change.Done() }, deadline,
		tick, "the definition is established")
	f.patch(wheel("v1beta1", "ours", "red").Manifest, "{spec: {label: theirs}}")

	next := crd(version("v1beta1", false, old) + ", " + version("v1", true, old+", grip: {type: string, default: good}"))
	next.SetResourceVersion(f.get(definition).GetResourceVersion())
	require.NoError(t, f.Client.Update(t.Context(), next))
	f.restart()
	passes := 0
	require.Eventually(t, func() bool {
		// the API server observes the version by a watch, and defaults later writes
		passes++
		change = f.one(wheel("v1", "ours", fmt.Sprint("color-", passes)))
		return change.Done() && change.Live.Object.Object["spec"].(map[string]any)["grip"] == "good"
	}, deadline, tick)
	change = f.one(wheel("v1", "ours", "red"))
	require.NoError(t, change.Err, change.Message)
	live := f.get(wheel("v1", "ours", "red").Manifest)
	require.Equal(t, "red", live.Object["spec"].(map[string]any)["color"])
	require.Equal(t, "theirs", live.Object["spec"].(map[string]any)["label"])
	for _, entry := range live.GetManagedFields() {
		require.Equal(t, group+"/v1", entry.APIVersion)
	}
	require.Equal(t, apply.Unchanged, f.one(wheel("v1", "ours", "red")).Action)
}

// TestTakeover_MigratesManagers checks that a field which the manifest drops after a takeover is removed, and that
// other fields of the former owner stay.
func TestTakeover_MigratesManagers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for manager, operation := range map[string]metav1.ManagedFieldsOperationType{
		"kubectl-client-side-apply": metav1.ManagedFieldsOperationUpdate, "helm": metav1.ManagedFieldsOperationUpdate,
		"kubectl": metav1.ManagedFieldsOperationApply, "their-controller": metav1.ManagedFieldsOperationUpdate,
	} {
		t.Run(manager, func(t *testing.T) {
			f.inventory = nil
			name := lower(string(operation)) + "-" + manager
			existing := f.configMap(name, "{k: v, l: w, m: theirs}").Manifest
			if operation == metav1.ManagedFieldsOperationApply {
				require.NoError(t, f.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(existing),
					client.FieldOwner(manager)))
			} else {
				require.NoError(t, f.Client.Create(t.Context(), existing, client.FieldOwner(manager)))
			}
			object := f.configMap(name, "{k: v, l: w}", takeover("IfNoDiff"))
			change := f.one(object)
			require.Equal(t, apply.Configured, change.Action, "%s %v", change.Message, change.Err)
			require.Equal(t, apply.Unchanged, f.one(object).Action)
			change = f.one(f.configMap(name, "{k: v}", takeover("IfNoDiff")))
			require.Equal(t, apply.Configured, change.Action)
			want := map[string]any{"k": "v", "m": "theirs"}
			if manager == "their-controller" {
				want["l"] = "w" // the controller may still need the field
			}
			require.Equal(t, want, f.get(object.Manifest).Object["data"])
		})
	}
}

// TestTakeover_FromTheSameManager checks the step of docs/migrate/flux-ssa.md: an engine with the field manager of the
// former applier owns the objects that the former applier has applied.
func TestTakeover_FromTheSameManager(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	existing := f.configMap("former", "{k: v, l: w}").Manifest
	const label = "kustomize.toolkit.fluxcd.io/name"
	existing.SetLabels(map[string]string{label: "app"})
	require.NoError(t, f.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(existing.DeepCopy()),
		client.FieldOwner(f.owner.FieldOwner)))
	uid := f.get(existing).GetUID()
	change := f.one(f.configMap("former", "{k: v, l: w}"))
	require.Equal(t, apply.Conflict, change.Action, "the engine has not applied the object")
	require.Contains(t, f.get(existing).GetLabels(), label)

	change = f.one(f.configMap("former", "{k: v, l: w}", takeover("Always")))
	require.Equal(t, apply.Configured, change.Action, "%s %v", change.Message, change.Err)
	live := f.get(existing)
	require.Equal(t, uid, live.GetUID())
	require.NotContains(t, live.GetLabels(), label)
	require.Equal(t, apply.Unchanged, f.one(f.configMap("former", "{k: v, l: w}")).Action)
	require.Equal(t, apply.Configured, f.one(f.configMap("former", "{k: v}")).Action)
	require.Equal(t, map[string]any{"k": "v"}, f.get(existing).Object["data"])
	f.prune(v1alpha1.DeletePolicy{})
	require.True(t, f.isGone(existing))
}
