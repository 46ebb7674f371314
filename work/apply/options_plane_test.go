package apply_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestIgnoredFields_AllItems checks that [*] ignores a field of all items, including items that other clients add.
func TestIgnoredFields_AllItems(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	web := func(a, b string) apply.Object {
		return f.object(
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NS}, spec: {replicas: 0, selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: `+a+`}, {name: b, image: `+b+`}]}}}}`,
			ignored(t, ".spec.template.spec.containers[*].image"))
	}
	images := func() (list []string) {
		containers, _, _ := unstructured.NestedSlice(f.get(web("", "").Manifest).Object, "spec", "template", "spec",
			"containers")
		for _, container := range containers {
			list = append(list, container.(map[string]any)["image"].(string))
		}
		return list
	}
	f.one(web("a:1", "b:1"))
	f.jsonPatch(web("", "").Manifest, `[{op: replace, path: /spec/template/spec/containers/1/image, value: theirs}]`)
	require.Equal(t, apply.Unchanged, f.one(web("a:1", "b:1")).Action, "the edit of an ignored field is no drift")
	change := f.one(web("a:2", "b:2"))
	require.Equal(t, apply.Configured, change.Action, "%s %v", change.Message, change.Err)
	require.Equal(t, []string{"a:1", "theirs"}, images())
	require.Equal(t, apply.Unchanged, f.one(web("a:2", "b:2")).Action)
}

// TestIgnoredFields_RemovedFromManifest checks a field that cannot be removed: an object that was applied with it
// keeps it when the manifest omits and ignores the field, and is not deleted.
func TestIgnoredFields_RemovedFromManifest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := func(volume string, options ...func(*apply.Object)) apply.Object {
		return f.object("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, namespace: NS}, spec: "+
			"{accessModes: [ReadWriteOnce], "+
			"storageClassName: none, resources: {requests: {storage: 1Mi}}"+volume+"}}", options...)
	}
	require.Equal(t, apply.Created, f.one(claim(", volumeName: NS-volume")).Action)
	uid := f.get(claim("").Manifest).GetUID()
	ignoring := claim("", ignored(t, ".spec.volumeName"))
	ignoring.Recreate = v1alpha1.RecreateIfImmutable
	change := f.one(ignoring)
	require.True(t, change.Done(), "%s %v", change.Message, change.Err)
	live := f.get(ignoring.Manifest)
	require.Equal(t, uid, live.GetUID())
	require.Nil(t, live.GetDeletionTimestamp())
	volume, _, _ := unstructured.NestedString(live.Object, "spec", "volumeName")
	require.Equal(t, f.Namespace+"-volume", volume)
	f.requireNoMoreWrites([]apply.Object{ignoring})
}

// TestDisabled checks that an annotation of the member's administrator stops applies and deletions, until it is
// removed.
func TestDisabled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	object := f.configMap("a", "{k: v}")
	annotate := func(value string) {
		f.patch(object.Manifest, `{metadata: {annotations: {`+v1alpha1.DisabledAnnotation+`: `+value+`}}}`)
	}
	f.one(object)
	annotate("Apply")
	f.patch(object.Manifest, "{data: {k: edited}}")
	for _, changed := range []apply.Object{object, f.configMap("a", "{k: w}")} {
		change := f.one(changed)
		require.Equal(t, apply.Skipped, change.Action)
		require.Equal(t, v1alpha1.ReasonDisabled, change.Reason)
		require.Contains(t, change.Message, v1alpha1.DisabledAnnotation)
		require.False(t, change.Done())
	}
	require.Equal(t, "edited", f.get(object.Manifest).Object["data"].(map[string]any)["k"])
	annotate("null")
	require.Equal(t, apply.Configured, f.one(object).Action)

	annotate("'Apply, Delete'")
	for range 2 {
		change := f.pruneOnce(v1alpha1.DeletePolicy{})[0]
		require.Equal(t, v1alpha1.ReasonDisabled, change.Reason)
		require.False(t, change.Done())
		require.Len(t, f.inventory, 1)
		require.Nil(t, f.get(object.Manifest).GetDeletionTimestamp())
	}
	annotate("null")
	f.prune(v1alpha1.DeletePolicy{})
	require.True(t, f.isGone(object.Manifest))
}

const claimed = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: b, namespace: NS},
    spec: {serviceName: b, replicas: 0,
  selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}},
  volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce],
    resources: {requests: {storage: SIZE}}}}]}}`

// TestRecreate checks manifests that change immutable fields.
func TestRecreate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, tc := range map[string]struct{ before, after string }{
		"secret": {
			"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: NS}, immutable: true, stringData: {k: v}}",
			"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: NS}, immutable: true, stringData: {k: w}}",
		},
		"roleRef": {
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: NS}, roleRef: " +
				"{apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: NS}, roleRef: " +
				"{apiGroup: rbac.authorization.k8s.io, kind: Role, name: b}}",
		},
		"job": {
			"{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: NS}, spec: {suspend: true, template: {spec: " +
				"{restartPolicy: Never, containers: [{name: c, image: a}]}}}}",
			"{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: NS}, spec: {suspend: false, template: {spec: " +
				"{restartPolicy: Never, containers: [{name: c, image: b}]}}}}",
		},
		"claims": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: NS}, spec: {serviceName: a, replicas: 0,
    selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: NS}, spec: {serviceName: b, replicas: 0,
    selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
		},
		"volume": {
			strings.ReplaceAll(claimed, "SIZE", "1Gi"), strings.ReplaceAll(claimed, "SIZE", "2Gi"),
		},
		"scope": {
			"{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NS-class}, provisioner: a}",
			"{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NS-class}, provisioner: b}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			t.Cleanup(func() {
				if name == "scope" {
					_ = f.Client.Delete(noContext{t}.Context(), f.object(tc.after).Manifest)
				}
			})
			require.Equal(t, apply.Created, f.one(f.object(tc.before)).Action)
			uid := f.get(f.object(tc.before).Manifest).GetUID()
			if name == "job" {
				f.patch(f.object(tc.before).Manifest, "{spec: {suspend: false}}") // the template of a suspended Job may change
			}
			changed := f.object(tc.after)
			change := f.one(changed)
			require.Equal(t, v1alpha1.ReasonRejected, change.Reason, "without the option nothing is deleted")
			require.Equal(t, uid, f.get(changed.Manifest).GetUID())

			f.restart() // the new engine has no record of the rejection
			changed.Recreate = v1alpha1.RecreateIfImmutable
			require.Eventually(t, func() bool {
				change = f.one(changed)
				return change.Action == apply.Created || change.Action == apply.Unchanged
			}, deadline, tick, "the object is created again")
			require.NotEqual(t, uid, f.get(changed.Manifest).GetUID())
			require.Equal(t, apply.Unchanged, f.one(changed).Action)
		})
	}
}
