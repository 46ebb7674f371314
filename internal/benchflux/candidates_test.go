package benchflux_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/fluxcd/pkg/ssa"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// newCandidate returns a candidate and the count of its requests. Its client has discovered the kinds.
func (s *stage) newCandidate(b *testing.B, name, namespace string) (candidate, *requests) {
	b.Helper()
	c, counted := s.newClient(b)
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &v1alpha1.AppliedWorkList{}} {
		require.NoError(b, c.List(b.Context(), list, client.InNamespace("nowhere")))
	}
	switch name {
	case "floor":
		return floor{c, manifests(namespace)}, counted
	case "marked":
		m := newMuster(b, c, namespace, nil)
		objects := manifests(namespace)
		for _, object := range objects {
			m.mark(object)
		}
		return floor{c, objects}, counted
	case "exact":
		return &exact{floor: floor{c, manifests(namespace)}}, counted
	case "watched":
		return newMuster(b, c, namespace, s.watch), counted
	case "cold":
		return newMuster(b, c, namespace, nil), counted
	case "flux":
		return newFlux(c, manifests(namespace)), counted
	}
	b.Fatalf("unknown candidate: %s", name)
	return nil, nil
}

// floor applies every object, also if the object is unchanged.
type floor struct {
	client  client.Client
	objects []*unstructured.Unstructured
}

func (f floor) apply(ctx context.Context, _ []int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(apply.DefaultConcurrency)
	for _, object := range f.objects {
		group.Go(func() error {
			// Apply replaces the map of config by the response, and does not write into the map.
			config := &unstructured.Unstructured{Object: object.Object}
			return f.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), client.FieldOwner("floor"),
				client.ForceOwnership)
		})
	}
	return group.Wait()
}

// exact applies all objects in the first round, and the edited objects afterwards.
type exact struct {
	floor

	observed bool
}

func (e *exact) apply(ctx context.Context, edited []int) error {
	if !e.observed {
		e.observed = true
		return e.floor.apply(ctx, nil)
	}
	differ := make([]*unstructured.Unstructured, len(edited))
	for i, index := range edited {
		differ[i] = e.objects[index]
	}
	return floor{e.client, differ}.apply(ctx, nil)
}

// muster applies as the agent does, with the inventory in an AppliedWork.
type muster struct {
	client  client.Client
	engine  *apply.Engine
	objects []apply.Object
	applied *v1alpha1.AppliedWork
}

func newMuster(b *testing.B, c client.Client, name string, metadata apply.Metadata) *muster {
	b.Helper()
	m := &muster{client: c, engine: apply.New(c, apply.Options{Metadata: metadata})}
	for _, manifest := range manifests(name) {
		m.objects = append(m.objects, apply.Object{Manifest: manifest})
	}
	m.applied = &v1alpha1.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.AppliedWorkSpec{
			Work:       v1alpha1.WorkReference{Hub: "hub", Namespace: "member-east", Name: name, UID: "0"},
			FieldOwner: "muster-work-" + name,
		},
	}
	require.NoError(b, c.Create(b.Context(), m.applied))
	return m
}

func (m *muster) owner() apply.Owner {
	return apply.Owner{
		Reference: metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "AppliedWork", Name: m.applied.Name, UID: m.applied.UID,
		},
		FieldOwner: m.applied.Spec.FieldOwner,
	}
}

// mark adds an owner reference, a label and an annotation to an object, with the size of those of the engine.
func (m *muster) mark(object *unstructured.Unstructured) {
	const digest = "0123456789abcdef0123"
	object.SetOwnerReferences([]metav1.OwnerReference{m.owner().Reference})
	object.SetLabels(map[string]string{"app": "shop", v1alpha1.AppliedLabel: "true"})
	object.SetAnnotations(map[string]string{"applied." + v1alpha1.GroupName + "/" + digest: digest})
}

func (m *muster) apply(ctx context.Context, _ []int) error {
	set := apply.Set{Owner: m.owner(), Objects: m.objects, Inventory: m.applied.Status.Resources, Record: m.record}
	changes, err := m.engine.Apply(ctx, set, nil)
	if err != nil {
		return err
	}
	if !changes.Done() {
		return errors.Join(errors.New("not all objects are applied"), changes.Err())
	}
	return m.record(ctx, changes.Inventory)
}

// record writes an inventory unless it equals the last one.
func (m *muster) record(ctx context.Context, inventory []v1alpha1.AppliedResource) error {
	if reflect.DeepEqual(m.applied.Status.Resources, inventory) {
		return nil
	}
	m.applied.Status.Resources = inventory
	return m.client.Update(ctx, m.applied)
}

// flux applies as kustomize-controller does.
type flux struct {
	manager *ssa.ResourceManager
	options ssa.ApplyOptions
	objects []*unstructured.Unstructured
}

const kustomize = "kustomize.toolkit.fluxcd.io"

func newFlux(c client.Client, objects []*unstructured.Unstructured) flux {
	f := flux{objects: objects, options: ssa.DefaultApplyOptions()}
	const controller = "kustomize-controller"
	// The benchmark does not wait for readiness, and needs no poller.
	f.manager = ssa.NewResourceManager(c, nil, ssa.Owner{Field: controller, Group: kustomize})
	f.manager.SetOwnerLabels(objects, "shop", "flux-system")
	f.manager.SetConcurrency(apply.DefaultConcurrency)
	f.options.ExclusionSelector = map[string]string{kustomize + "/reconcile": "disabled", kustomize + "/ssa": "Ignore"}
	f.options.IfNotPresentSelector = map[string]string{kustomize + "/ssa": "IfNotPresent"}
	f.options.ForceSelector = map[string]string{kustomize + "/force": "Enabled"}
	f.options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{corev1.LastAppliedConfigAnnotation, kustomize + "/checksum", "fluxcd.io/sync-checksum"},
		Labels:      []string{"fluxcd.io/sync-gc-mark"},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: controller, OperationType: metav1.ManagedFieldsOperationUpdate},
		},
		Exclusions: map[string]string{kustomize + "/ssa": "Merge"},
	}
	return f
}

func (f flux) apply(ctx context.Context, _ []int) error {
	_, err := f.manager.ApplyAllStaged(ctx, f.objects, f.options)
	return err
}
