package kinds

import (
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsapply "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var (
	builtinConverter = sync.OnceValue(func() managedfields.TypeConverter {
		return applyconfigurations.NewTypeConverter(scheme.Scheme)
	})
	apiextensionsConverter = sync.OnceValue(func() managedfields.TypeConverter {
		s := runtime.NewScheme()
		_ = apiextensionsv1.AddToScheme(s) // never returns an error
		return apiextensionsapply.NewTypeConverter(s)
	})
)

// fieldManagers caches the field managers of a kind by subresource.
type fieldManagers struct {
	mu            sync.Mutex
	bySubresource map[string]*managedfields.FieldManager
}

// get returns the field manager of a subresource. The first call creates it.
func (m *fieldManagers) get(k *Kind, subresource string) (*managedfields.FieldManager, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if manager := m.bySubresource[subresource]; manager != nil {
		return manager, nil
	}
	manager, err := k.newFieldManager(subresource)
	if err != nil {
		return nil, fmt.Errorf("make the field manager of %s: %w", k.GVK, err)
	}
	if m.bySubresource == nil {
		m.bySubresource = map[string]*managedfields.FieldManager{}
	}
	m.bySubresource[subresource] = manager
	return manager, nil
}

// FieldManager returns the field manager that computes the managed fields of a subresource, or of the object if
// subresource is empty. Objects must be *unstructured.Unstructured in the version of the kind.
func (k *Kind) FieldManager(subresource string) (*managedfields.FieldManager, error) {
	return k.managers.get(k, subresource)
}

func (k *Kind) newFieldManager(subresource string) (*managedfields.FieldManager, error) {
	helper := objects{k}
	reset := k.resetFields(subresource)
	gv := k.GVK.GroupVersion()
	switch {
	case k.custom != nil:
		converter, err := k.custom.typeConverter()
		if err != nil {
			return nil, err
		}
		return managedfields.NewDefaultCRDFieldManager(converter, helper, helper, helper, k.GVK, gv, subresource, reset)
	case k.GVK.Group == apiextensionsv1.GroupName:
		return managedfields.NewDefaultFieldManager(apiextensionsConverter(), helper, helper, helper, k.GVK, gv,
			subresource, reset)
	default:
		return managedfields.NewDefaultFieldManager(builtinConverter(), helper, helper, helper, k.GVK, gv,
			subresource, reset)
	}
}

// resetFields returns the fields that requests to the object or the subresource cannot own.
func (k *Kind) resetFields(subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	if !k.Subresources.Status {
		return nil
	}
	var set *fieldpath.Set
	switch {
	case subresource == "":
		set = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	case k.custom != nil:
		set = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
	default:
		set = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(k.GVK.GroupVersion().String()): fieldpath.NewExcludeSetFilter(set),
	}
}

// objects implements the interfaces that a field manager requires, for a kind with one version.
type objects struct{ kind *Kind }

func (objects) Convert(in, out, _ any) error {
	from, ok := in.(*unstructured.Unstructured)
	to, ok2 := out.(*unstructured.Unstructured)
	if !ok || !ok2 {
		return fmt.Errorf("convert %T to %T: both must be unstructured", in, out)
	}
	to.Object = from.Object
	return nil
}

func (o objects) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	gvk, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{o.kind.GVK})
	if ok && gvk.GroupVersion() != o.kind.GVK.GroupVersion() {
		return nil, runtime.NewNotRegisteredErrForTarget("muster", nil, target)
	}
	if !ok {
		return nil, runtime.NewNotRegisteredGVKErrForTarget("muster", o.kind.GVK, target)
	}
	return in, nil
}

func (objects) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (o objects) Default(in runtime.Object) {
	if u, ok := in.(*unstructured.Unstructured); ok {
		o.kind.Default(u.Object)
	}
}

func (o objects) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	if gvk != o.kind.GVK {
		return nil, runtime.NewNotRegisteredErrForKind("muster", gvk)
	}
	return &unstructured.Unstructured{Object: o.kind.Empty()}, nil
}

// typeConverter returns a type converter with the schema of the version, for structured merges.
func (c *custom) typeConverter() (managedfields.TypeConverter, error) {
	root := c.structural.ToKubeOpenAPI()
	if root.Properties == nil {
		root.Properties = map[string]spec.Schema{}
	}
	root.Properties["apiVersion"] = *spec.StringProperty()
	root.Properties["kind"] = *spec.StringProperty()
	root.Properties["metadata"] = objectMetaSchema
	root.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
		"group": c.gvk.Group, "version": c.gvk.Version, "kind": c.gvk.Kind,
	}})
	models := map[string]*spec.Schema{"object": root}
	return managedfields.NewTypeConverter(models, c.preserve)
}

// objectMetaSchema is the part of the schema of metav1.ObjectMeta that structured merges require.
var objectMetaSchema = func() spec.Schema {
	text := *spec.StringProperty()
	list := func(kind string, items spec.Schema) spec.Schema {
		s := *spec.ArrayProperty(&items)
		s.AddExtension("x-kubernetes-list-type", kind)
		return s
	}
	object := func(properties map[string]spec.Schema) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: properties}}
	}
	owner := object(map[string]spec.Schema{
		"apiVersion": text, "kind": text, "name": text, "uid": text,
		"controller": *spec.BooleanProperty(), "blockOwnerDeletion": *spec.BooleanProperty(),
	})
	owner.AddExtension("x-kubernetes-map-type", "atomic")
	owners := list("map", owner)
	owners.AddExtension("x-kubernetes-list-map-keys", []any{"uid"})
	fields := object(nil)
	fields.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	return object(map[string]spec.Schema{
		"name": text, "generateName": text, "namespace": text, "uid": text, "resourceVersion": text, "selfLink": text,
		"creationTimestamp": text, "deletionTimestamp": text,
		"generation": *spec.Int64Property(), "deletionGracePeriodSeconds": *spec.Int64Property(),
		"labels": *spec.MapProperty(&text), "annotations": *spec.MapProperty(&text),
		"finalizers": list("set", text), "ownerReferences": owners,
		"managedFields": list("atomic", fields),
	})
}()
