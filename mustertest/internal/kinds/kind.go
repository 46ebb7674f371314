// Package kinds describes the resources that the in-memory API server serves: how their objects are decoded, defaulted,
// pruned, validated and compared. It covers built-in kinds and kinds of CustomResourceDefinitions.
//
// Objects are unstructured maps in the encoding that kube-apiserver returns.
package kinds

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// An Object is the content of one API object.
type Object = map[string]any

// A Kind is one served version of one resource. It is immutable and may be used concurrently.
type Kind struct {
	GVK          schema.GroupVersionKind
	Resource     schema.GroupVersionResource
	Storage      schema.GroupResource // under which objects are stored; differs for events.k8s.io
	Names        Names
	Namespaced   bool
	Verbs        []string
	Subresources Subresources
	// Preferred specifies whether the version is the preferred version of its group.
	Preferred bool

	builtin    *builtin
	custom     *custom
	conversion conversion
	managers   fieldManagers
}

// Names are the further names of a kind in discovery.
type Names struct {
	Singular   string
	ListKind   string
	ShortNames []string
	Categories []string
}

// Subresources specifies the subresources of a kind.
type Subresources struct{ Status, Scale bool }

// conversion converts objects between the version of a kind and the stored version. In the zero value, both are the
// same.
type conversion struct {
	toStored func(Object) // converts a decoded object to the stored version, in place
	toServed func(Object) // the reverse
}

// Builtin reports whether the kind is part of Kubernetes.
func (k *Kind) Builtin() bool { return k.builtin != nil }

// New returns a typed empty object, or nil for custom resources.
func (k *Kind) New() runtime.Object {
	if k.builtin == nil {
		return nil
	}
	return k.builtin.new()
}

// Virtual reports whether the server only responds to create requests and never stores objects of the kind, such as a
// SubjectAccessReview.
func (k *Kind) Virtual() bool { return k.builtin != nil && k.builtin.virtual }

// Graceful reports whether the deletion of the object waits for another component, such as the kubelet for a Pod on a
// node.
func (k *Kind) Graceful(obj Object) bool {
	return k.builtin != nil && k.builtin.graceful != nil && k.builtin.graceful(obj)
}

// OrphansByDefault reports whether a deletion without a propagation policy orphans the dependents.
func (k *Kind) OrphansByDefault() bool { return k.builtin != nil && k.builtin.orphans }

// UnconditionalUpdate reports whether an update may omit the resourceVersion.
func (k *Kind) UnconditionalUpdate() bool { return k.builtin != nil && !k.builtin.conditional }

// CreateOnUpdate reports whether an update of an object that does not exist creates the object.
func (k *Kind) CreateOnUpdate() bool { return k.builtin != nil && k.builtin.createOnUpdate }

// ToStored converts an object from the version of the kind to the stored version, in place.
func (k *Kind) ToStored(obj Object) {
	if k.conversion.toStored != nil {
		k.conversion.toStored(obj)
	}
}

// ToServed converts a stored object to the version of the kind. The result may share content with obj.
func (k *Kind) ToServed(obj Object) Object {
	if !k.Converts() {
		return obj
	}
	obj = runtime.DeepCopyJSON(obj)
	k.conversion.toServed(obj)
	return obj
}

// Converts reports whether the stored version differs from the version of the kind.
func (k *Kind) Converts() bool { return k.conversion.toServed != nil }

// Default sets the default values that the API server sets when it decodes an object.
func (k *Kind) Default(obj Object) {
	if k.custom != nil {
		k.custom.defaults(obj)
		return
	}
	if k.builtin.defaults == nil {
		return
	}
	typed := k.builtin.new()
	if err := FromObject(obj, typed); err != nil {
		return // the decoder has already returned this error
	}
	k.builtin.defaults(typed)
	replace(obj, k.toObject(typed))
}

// Empty returns an object with the fields that the encoding of the kind always contains, such as the spec of a Lease.
func (k *Kind) Empty() Object {
	if k.builtin == nil {
		return Object{"apiVersion": k.GVK.GroupVersion().String(), "kind": k.GVK.Kind}
	}
	return k.toObject(k.builtin.new())
}

// PrepareCreate removes the fields that a create request may not set, and sets the first generation.
func (k *Kind) PrepareCreate(obj Object) {
	if k.Subresources.Status && (k.builtin == nil || !k.builtin.keepStatus) {
		k.dropStatus(obj)
	}
	if k.custom != nil || k.builtin.generation {
		meta(obj)["generation"] = int64(1)
	}
	if k.builtin != nil && k.builtin.prepareCreate != nil {
		k.builtin.prepareCreate(obj)
	}
}

// PrepareUpdate restores the fields that an update may not change, and increments the generation if the content
// changed.
func (k *Kind) PrepareUpdate(obj, old Object) {
	if k.Subresources.Status {
		copyField(obj, old, "status")
	}
	if k.builtin != nil && k.builtin.prepareUpdate != nil {
		k.builtin.prepareUpdate(obj, old)
	}
	if (k.custom != nil || k.builtin.generation && !k.builtin.constant) && !sameContent(obj, old) {
		generation, _, _ := unstructured.NestedInt64(old, "metadata", "generation")
		meta(obj)["generation"] = generation + 1
	}
}

// PrepareStatus returns old with the status and the managed fields of obj.
func (k *Kind) PrepareStatus(obj, old Object) {
	status, has := obj["status"]
	managed, hasManaged := meta(obj)["managedFields"]
	updated := meta(obj)
	replace(obj, runtime.DeepCopyJSON(old))
	if has {
		obj["status"] = status
	} else {
		delete(obj, "status")
	}
	if hasManaged {
		meta(obj)["managedFields"] = managed
	} else {
		delete(meta(obj), "managedFields")
	}
	if k.builtin != nil { // strategies of built-in kinds keep metadata from the request
		for _, key := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
			copyField(meta(obj), updated, key)
		}
	}
}

func (k *Kind) dropStatus(obj Object) {
	if k.builtin == nil {
		delete(obj, "status")
		return
	}
	delete(obj, "status")
	normalize(k, obj)
}

// ValidateCreate returns the validation errors of a new object.
func (k *Kind) ValidateCreate(ctx context.Context, obj Object) field.ErrorList {
	if k.custom != nil {
		return k.custom.validateCreate(ctx, obj)
	}
	typed, metadata, errs := k.typed(obj)
	if errs != nil {
		return errs
	}
	errs = k.validateMeta(metadata)
	if k.builtin.validate != nil {
		errs = append(errs, k.builtin.validate(typed)...)
	}
	return errs
}

// ValidateUpdate returns the validation errors of an update. Subresource is empty or "status".
func (k *Kind) ValidateUpdate(ctx context.Context, obj, old Object, subresource string) field.ErrorList {
	if k.custom != nil {
		return k.custom.validateUpdate(ctx, obj, old, subresource)
	}
	typed, metadata, errs := k.typed(obj)
	if errs != nil {
		return errs
	}
	typedOld, oldMetadata, errs := k.typed(old)
	if errs != nil {
		return errs
	}
	path := field.NewPath("metadata")
	errs = validation.ValidateObjectMetaAccessor(metadata, k.Namespaced, pathSegment, path)
	errs = append(errs, validation.ValidateObjectMetaUpdate(metadata, oldMetadata, path)...)
	errs = append(errs, validation.ValidateObjectMetaUpdate(metadata, oldMetadata, path)...) // twice, as registries do
	if subresource == "" {
		if !k.builtin.metaOnCreate {
			errs = append(errs, k.validateMeta(metadata)...)
		}
		if k.builtin.validate != nil {
			errs = append(errs, k.builtin.validate(typed)...)
		}
		if k.builtin.validateUpdate != nil {
			errs = append(errs, k.builtin.validateUpdate(typed, typedOld)...)
		}
	}
	return errs
}

// validateMeta validates metadata as ValidateObjectMeta of the core kinds does, which all built-in kinds use.
func (k *Kind) validateMeta(metadata *metav1.ObjectMeta) field.ErrorList {
	path := field.NewPath("metadata")
	errs := validation.ValidateObjectMeta(metadata, k.Namespaced, k.builtin.name, path)
	for i, finalizer := range metadata.Finalizers {
		if k.GVK.Group != "apiextensions.k8s.io" && k.GVK.Group != "coordination.k8s.io" && !strings.Contains(finalizer,
			"/") && finalizer != metav1.FinalizerOrphanDependents && finalizer != metav1.FinalizerDeleteDependents &&
			finalizer != "kubernetes" {
			errs = append(errs, field.Invalid(path.Child("finalizers").Index(i), finalizer,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

func (k *Kind) typed(obj Object) (runtime.Object, *metav1.ObjectMeta, field.ErrorList) {
	typed := k.builtin.new()
	if err := FromObject(obj, typed); err != nil {
		return nil, nil, field.ErrorList{field.InternalError(nil, err)}
	}
	accessor, ok := typed.(metav1.ObjectMetaAccessor)
	if !ok {
		return typed, &metav1.ObjectMeta{}, nil
	}
	metadata, _ := accessor.GetObjectMeta().(*metav1.ObjectMeta)
	return typed, metadata, nil
}

// FieldLabel returns an error if field selectors of the kind do not support the label.
func (k *Kind) FieldLabel(label string) error {
	if label == "metadata.name" || label == "metadata.namespace" && (k.Namespaced || k.builtin != nil) {
		return nil
	}
	if k.custom != nil {
		if _, ok := k.custom.selectable[label]; ok {
			return nil
		}
		return fmt.Errorf("field label not supported: %s", label)
	}
	if _, ok := k.builtin.fields[label]; ok {
		return nil
	}
	if len(k.builtin.fields) == 0 {
		return fmt.Errorf("%q is not a known field selector: only %q, %q", label, "metadata.name", "metadata.namespace")
	}
	return fmt.Errorf("field label not supported: %s", label)
}

// Fields returns the values that field selectors of the kind can match.
func (k *Kind) Fields(obj Object) fields.Set {
	set := fields.Set{}
	set["metadata.name"], _, _ = unstructured.NestedString(obj, "metadata", "name")
	if k.Namespaced {
		set["metadata.namespace"], _, _ = unstructured.NestedString(obj, "metadata", "namespace")
	}
	if k.custom != nil {
		k.custom.fields(obj, set)
		return set
	}
	for label, path := range k.builtin.fields {
		value, found, _ := unstructured.NestedFieldNoCopy(obj, strings.Split(path.path, ".")...)
		if !found || value == nil {
			set[label] = path.zero
		} else {
			set[label] = fmt.Sprint(value)
		}
	}
	return set
}

// FromObject converts an unstructured object to a typed one.
func FromObject(obj Object, typed any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(obj, typed)
}

func (k *Kind) toObject(typed runtime.Object) Object {
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		panic(fmt.Sprintf("convert %s: %v", k.GVK, err)) // typed comes from a conversion in the other direction
	}
	obj["apiVersion"], obj["kind"] = k.GVK.GroupVersion().String(), k.GVK.Kind
	return obj
}

// normalize converts a built-in object to the encoding of its Go type.
func normalize(k *Kind, obj Object) {
	typed := k.builtin.new()
	if err := FromObject(obj, typed); err == nil {
		replace(obj, k.toObject(typed))
	}
}

// Normalize converts an object to the stored encoding, after a patch.
func (k *Kind) Normalize(obj Object) {
	if k.builtin != nil {
		normalize(k, obj)
	}
}

func meta(obj Object) map[string]any {
	m, ok := obj["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		obj["metadata"] = m
	}
	return m
}

func copyField(to, from map[string]any, key string) {
	if value, ok := from[key]; ok {
		to[key] = value
	} else {
		delete(to, key)
	}
}

func replace(obj, with Object) {
	clear(obj)
	maps.Copy(obj, with)
}

// sameContent reports whether two objects are equal except for their metadata. The status is compared too:
// PrepareUpdate has restored it before if the kind has the subresource status.
func sameContent(a, b Object) bool {
	strip := func(obj Object) Object {
		out := make(Object, len(obj))
		for key, value := range obj {
			if key != "metadata" {
				out[key] = value
			}
		}
		return out
	}
	return equal(strip(a), strip(b))
}
