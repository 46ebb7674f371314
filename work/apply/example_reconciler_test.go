package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

const (
	inventoryAnnotation = "example.com/inventory"
	bundleFinalizer     = "example.com/bundle"
)

// bundles reconciles ConfigMaps whose values are manifests: it applies the manifests, deletes objects that a
// ConfigMap no longer contains, and deletes all objects when the ConfigMap is deleted.
type bundles struct {
	client client.Client // without a cache
	engine *apply.Engine // apply.New(client, apply.Options{})
}

func (b bundles) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var bundle corev1.ConfigMap
	if err := b.client.Get(ctx, request.NamespacedName, &bundle); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	deleted := bundle.DeletionTimestamp != nil
	if !deleted && controllerutil.AddFinalizer(&bundle, bundleFinalizer) {
		if err := b.client.Update(ctx, &bundle); err != nil {
			return reconcile.Result{}, err
		}
	}
	set := apply.Set{
		Owner: apply.Owner{
			Reference:  *metav1.NewControllerRef(&bundle, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
			Namespace:  bundle.Namespace,
			FieldOwner: "bundle-" + string(bundle.UID),
		},
		Record: func(ctx context.Context, inventory []v1alpha1.AppliedResource) error {
			data, err := json.Marshal(inventory)
			before := bundle.DeepCopy()
			metav1.SetMetaDataAnnotation(&bundle.ObjectMeta, inventoryAnnotation, string(data))
			return errors.Join(err, b.client.Patch(ctx, &bundle, client.MergeFrom(before)))
		},
	}
	if recorded := bundle.Annotations[inventoryAnnotation]; recorded != "" {
		if err := json.Unmarshal([]byte(recorded), &set.Inventory); err != nil {
			return reconcile.Result{}, reconcile.TerminalError(err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(bundle.Data)) {
		manifest := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(bundle.Data[key]), &manifest.Object); err != nil {
			return reconcile.Result{}, reconcile.TerminalError(err) // An unreadable manifest is no request to delete.
		}
		if !deleted {
			set.Objects = append(set.Objects, apply.Object{Manifest: manifest})
		}
	}
	result, err := b.engine.Sync(ctx, set, nil, v1alpha1.DeletePolicy{})
	if err := errors.Join(err, result.Err()); err != nil {
		return reconcile.Result{}, err
	}
	if !result.Done() {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	if deleted && controllerutil.RemoveFinalizer(&bundle, bundleFinalizer) {
		return reconcile.Result{}, b.client.Update(ctx, &bundle)
	}
	return reconcile.Result{}, nil
}

// A reconciler with Sync needs sixty lines: see Reconcile.
func ExampleEngine_Sync() {
	var r reconcile.Reconciler = bundles{}
	fmt.Printf("%T\n", r)
	// Output: apply_test.bundles
}

// TestExample_Bundles runs the reconciler of the example.
func TestExample_Bundles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := bundles{f.Client, apply.New(f.Client, apply.Options{})}
	bundle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "bundle"}}
	one, two := f.configMap("one", "{k: v}"), f.configMap("two", "{k: v}")
	two.Manifest.SetNamespace("default")
	two.Manifest.SetName(f.Namespace + "-two")
	write := func(objects ...apply.Object) {
		bundle.Data = map[string]string{}
		for _, o := range objects {
			data, err := yaml.Marshal(o.Manifest.Object)
			require.NoError(t, err)
			bundle.Data[o.Manifest.GetName()] = string(data)
		}
	}
	reconcileBundle := func() {
		t.Helper()
		for end := time.Now().Add(deadline); ; {
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bundle)})
			require.NoError(t, err)
			if result.RequeueAfter == 0 {
				return
			}
			require.Less(t, time.Now(), end, "the bundle is not reconciled")
		}
	}
	write(one, two)
	require.NoError(t, f.Client.Create(t.Context(), bundle))
	reconcileBundle()
	require.False(t, f.isGone(one.Manifest))
	require.False(t, f.isGone(two.Manifest))

	require.NoError(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(bundle), bundle))
	write(two)
	require.NoError(t, f.Client.Update(t.Context(), bundle))
	reconcileBundle()
	require.True(t, f.isGone(one.Manifest))

	require.NoError(t, f.Client.Delete(t.Context(), bundle))
	reconcileBundle()
	require.True(t, f.isGone(two.Manifest))
	require.True(t, f.isGone(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": f.Namespace, "name": "bundle"}}}))
}
