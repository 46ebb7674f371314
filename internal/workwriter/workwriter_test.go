package workwriter

import (
	"context"
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/mustertest/apiserver"
	workcrds "github.com/muster-sdk/muster/work/crds"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

func TestChange_Operations(t *testing.T) {
	labels := map[string]string{"set": "web", "namespace": ""}
	annotations := map[string]string{"example.com/revision": "web-1", v1alpha1.GeneratedByAnnotation: "WorkSet shop/web"}
	for _, test := range []struct {
		reason      string
		labels      map[string]string
		annotations map[string]string
		change      Change
		paths       []string
	}{
		{"a Work without metadata", nil, nil, Change{Labels: labels, Annotations: annotations, Spec: &v1alpha1.WorkSpec{}},
			[]string{"/metadata/resourceVersion", "/metadata/labels", "/metadata/annotations", "/spec"}},
		{"only different metadata is written",
			map[string]string{"set": "web", "namespace": "", "mine": "x"},
			map[string]string{"a/b~c": "x", v1alpha1.GeneratedByAnnotation: "WorkSet shop/web"},
			Change{Labels: labels, Annotations: annotations},
			[]string{"/metadata/resourceVersion", "/metadata/annotations/example.com~1revision"}},
		{"a missing label with an empty value is written", map[string]string{"set": "web"}, map[string]string{"mine": "x"},
			Change{Labels: labels},
			[]string{"/metadata/resourceVersion", "/metadata/labels/namespace"}},
		{"a requested deletion that did not happen is withdrawn", nil,
			map[string]string{v1alpha1.DeletionRequestedByAnnotation: "uid"}, Change{Annotations: annotations},
			[]string{"/metadata/resourceVersion", "/metadata/annotations/example.com~1revision",
				"/metadata/annotations/work.muster.dev~1generated-by",
				"/metadata/annotations/work.muster.dev~1deletion-requested-by"}},
		{"no difference", labels, annotations, Change{Labels: labels, Annotations: annotations},
			[]string{"/metadata/resourceVersion"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			known := &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", Labels: test.labels,
				Annotations: test.annotations}}
			test.change.Known = &known.ObjectMeta
			ops := test.change.operations()
			var paths []string
			for _, op := range ops {
				paths = append(paths, op.Path)
			}
			require.Equal(t, test.paths, paths)
			text, err := json.Marshal(ops)
			require.NoError(t, err)
			patch, err := jsonpatch.DecodePatch(text)
			require.NoError(t, err)
			data, err := json.Marshal(known)
			require.NoError(t, err)
			changed, err := patch.Apply(data)
			require.NoError(t, err)
			got := &v1alpha1.Work{}
			require.NoError(t, json.Unmarshal(changed, got))
			require.Subset(t, got.Labels, test.change.Labels)
			require.Subset(t, got.Annotations, test.change.Annotations)
			require.Subset(t, got.Labels, test.labels)
			delete(test.annotations, v1alpha1.DeletionRequestedByAnnotation)
			require.Subset(t, got.Annotations, test.annotations)
			require.NotContains(t, got.Annotations, v1alpha1.DeletionRequestedByAnnotation)
		})
	}
}

func manifest(value string) v1alpha1.Manifest {
	return v1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"web"},"data":{"k":"` + value +
			`"}}`)}}
}

// TestWriter_Conflicts checks each write on a Work that another client has changed, and on another Work with the same
// name.
func TestWriter_Conflicts(t *testing.T) {
	server, err := apiserver.New(apiserver.Options{})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	ctx := t.Context()
	c, err := client.New(server.Admin(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	require.NoError(t, workcrds.InstallOnHub(ctx, c))
	w := Writer{c}
	created := func() *v1alpha1.Work {
		work := &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		work.Spec.Manifests = []v1alpha1.Manifest{manifest("v1")}
		require.NoError(t, w.Create(ctx, work))
		require.Equal(t, []string{v1alpha1.Finalizer}, work.Finalizers)
		return work
	}
	remove := func(work *v1alpha1.Work) {
		work.Finalizers = nil
		require.NoError(t, c.Update(ctx, work))
		require.NoError(t, client.IgnoreNotFound(c.Delete(ctx, work)))
	}
	former := created()
	remove(former)
	known := created()
	changed, err := w.Update(ctx, Change{Known: &known.ObjectMeta, Annotations: map[string]string{"a": "b"}})
	require.NoError(t, err)
	require.NotEqual(t, known.ResourceVersion, changed.ResourceVersion)

	for name, write := range map[string]func(context.Context, *metav1.ObjectMeta) error{
		"update": func(ctx context.Context, known *metav1.ObjectMeta) error {
			_, err := w.Update(ctx, Change{Known: known, Annotations: map[string]string{"a": "c"}})
			return err
		},
		"replace a manifest": func(ctx context.Context, known *metav1.ObjectMeta) error {
			return w.ReplaceManifest(ctx, known, 0, manifest("v3"))
		},
		"request": func(ctx context.Context, known *metav1.ObjectMeta) error {
			_, err := w.RequestDeletion(ctx, known, Request{By: "uid"})
			return err
		},
		"delete": func(ctx context.Context, known *metav1.ObjectMeta) error {
			return w.Delete(ctx, known, known.ResourceVersion)
		},
	} {
		require.Error(t, write(ctx, &former.ObjectMeta), "%s of another Work", name)
		require.Error(t, write(ctx, &known.ObjectMeta), "%s of another version", name)
	}
	_, err = w.RequestDeletion(ctx, &former.ObjectMeta, Request{By: "uid", AnyVersion: true})
	require.Error(t, err, "another Work")
	now := &v1alpha1.Work{}
	require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(known), now))
	require.Equal(t, changed.ResourceVersion, now.ResourceVersion, "no write had an effect")

	require.NoError(t, w.ReplaceManifest(ctx, &now.ObjectMeta, 0, manifest("v2")))
	require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(known), now))
	require.Contains(t, string(now.Spec.Manifests[0].Raw), "v2")
	require.Equal(t, "b", now.Annotations["a"])

	requested, err := w.RequestDeletion(ctx, &known.ObjectMeta, Request{By: "uid", AnyVersion: true,
		Delete: &v1alpha1.DeletePolicy{Action: v1alpha1.OrphanObject}})
	require.NoError(t, err)
	require.Equal(t, "uid", requested.Annotations[v1alpha1.DeletionRequestedByAnnotation])
	require.Equal(t, v1alpha1.OrphanObject, requested.Spec.Delete.Action)
	require.True(t, apierrors.IsConflict(w.Delete(ctx, &known.ObjectMeta, known.ResourceVersion)))
	require.NoError(t, w.Delete(ctx, &known.ObjectMeta, requested.ResourceVersion))
}
