package apply_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// awkward returns the manifests of the folder testdata/awkward by file name. They occur in bundles and exports, and
// each of them could cause endless writes.
func awkward(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../testdata/awkward/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}

// TestAwkward checks that the engine stops writing each of these manifests, and writes nothing after a restart.
func TestAwkward(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, text := range awkward(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			objects := f.objects(text)
			t.Cleanup(func() {
				for _, object := range objects {
					if object.Manifest.GetNamespace() == "" {
						_ = f.Client.Delete(noContext{t}.Context(), object.Manifest.DeepCopy())
					}
				}
			})
			f.requireNoMoreWrites(objects)
		})
	}
	t.Run("definition", func(t *testing.T) { // of the size of cert-manager's, with a resource in each of two versions
		t.Parallel()
		f := f.in(t)
		group := f.Namespace + ".example.org"
		var fields []string
		for i := range 400 {
			fields = append(fields, fmt.Sprintf(`f%d: {type: object, description: "%s", properties: {a: {type: string, enum: `+
				`[x, y]}, b: {type: array, items: {type: string}}}}`, i, long(500)))
		}
		schema := "{openAPIV3Schema: {type: object, properties: {status: {type: object}, spec: {type: object, properties: {" +
			strings.Join(fields, ", ") + "}}}}}"
		objects := f.objects(strings.NewReplacer("GROUP", group, "SCHEMA", schema).Replace(`
- {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: awkwards.GROUP,
   creationTimestamp: null}, spec: {group: GROUP, scope: Namespaced, preserveUnknownFields: false,
    names: {plural: awkwards, kind: Awkward, shortNames: [], categories: []}, conversion: {strategy: None}, versions: [
    {name: v1, served: true, storage: true, subresources: {status: {}}, schema: SCHEMA}, {name: v1beta1, served: true,
      storage: false, subresources: {status: {}}, schema: SCHEMA}]},
   status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}}
- {apiVersion: GROUP/v1, kind: Awkward, metadata: {name: new, namespace: NS}, spec: {f1: {a: x, b: []}, f2: {}}}
- {apiVersion: GROUP/v1beta1, kind: Awkward, metadata: {name: old, namespace: NS}, spec: {f1: {a: x, b: [z]}}}
`))
		t.Cleanup(func() { _ = f.Client.Delete(noContext{t}.Context(), objects[0].Manifest.DeepCopy()) })
		f.requireNoMoreWrites(objects)
	})
}

// TestAwkward_Quota checks an object that a quota rejects: the message has the reason, and the object is not sent on
// each reconcile.
func TestAwkward_Quota(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fakeClock()
	f.create("{apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: NS}, spec: {hard: {services: '0'}}}")
	service := f.object("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {ports: [{port: 80}]}}")
	// An API server that has cached that the namespace has no ResourceQuota takes a moment to observe a new one.
	f.Eventually("the ResourceQuota is enforced", func() error {
		if err := f.Client.Create(t.Context(), service.Manifest.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("want Forbidden, got %w", err)
		}
		return nil
	})
	change := f.one(service)
	require.Equal(t, v1alpha1.ReasonForbidden, change.Reason, change.Message)
	require.Contains(t, change.Message, "quota")
	require.Positive(t, f.one(service).RetryAfter)
	f.counted.take()
	for range 5 {
		require.Equal(t, apply.Failed, f.one(service).Action)
	}
	_, writes := f.counted.take()
	require.Zero(t, writes)
}

// TestAwkward_Explained checks manifests that conflict with the cluster permanently: they cause no endless writes,
// and the message has the next step.
func TestAwkward_Explained(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, tc := range map[string]struct{ object, reason, message string }{
		"immutable": {"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: NS}, immutable: true, stringData: {k: " +
			"v}}", v1alpha1.ReasonRejected, "data"},
		"roleRef": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: NS}, " +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: k-v}}",
			v1alpha1.ReasonRejected, "cannot change roleRef"},
		"job": {"{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: NS}, spec: {suspend: false, template: " +
			"{spec: {restartPolicy: Never, containers: [{name: c, image: k-v}]}}}}",
			v1alpha1.ReasonRejected, "field is immutable"},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			f.fakeClock() // on a busy machine the pause after a rejection would pass meanwhile
			require.True(t, f.one(f.object(tc.object)).Done())
			changed := f.object(strings.NewReplacer("k: v", "k: w", "name: k-v", "name: k-w", "image: k-v",
				"image: k-w").Replace(tc.object))
			change := f.one(changed)
			require.Equal(t, tc.reason, change.Reason)
			require.Contains(t, change.Message, tc.message)
			f.counted.take()
			for range 5 {
				require.Equal(t, apply.Failed, f.one(changed).Action)
			}
			_, writes := f.counted.take()
			require.Zero(t, writes)
		})
	}
}
