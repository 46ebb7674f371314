// Package ssa is the core of server-side apply that work/apply, membership/install and internal/crdinstall share:
// requests about one object, the state of CustomResourceDefinitions, and the inventory of applied objects. It contains
// no policy: its callers decide which objects belong to an owner, what an inventory records, and where it is stored.
//
// # Inventories
//
// An inventory lists the objects that an owner has applied or is about to apply. Before the first write, the owner
// stores the result of [Ahead], so that a crash at any time leaves no unknown object. After the last write it deletes
// the objects of [Stale] and stores the desired entries.
//
// The functions accept any type of entry. The argument key returns the Key of an entry.
package ssa

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
)

// New returns an object that consists of its identity only.
func New(kind schema.GroupVersionKind, key client.ObjectKey) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	return object
}

// Apply sends one server-side apply and returns the object of the response. The config is not changed.
func Apply(ctx context.Context, c client.Writer, config *unstructured.Unstructured, manager client.FieldOwner,
	options ...client.ApplyOption) (*unstructured.Unstructured, error) {
	// The client replaces the map of the response, and does not write into it.
	response := &unstructured.Unstructured{Object: config.Object}
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(response), append(options, manager)...)
	return response, err
}

// Read reads an object. The error is NotFound if the object does not exist.
func Read(ctx context.Context, c client.Reader, kind schema.GroupVersionKind,
	key client.ObjectKey) (*unstructured.Unstructured, error) {
	object := New(kind, key)
	if err := c.Get(ctx, key, object); err != nil {
		return nil, err
	}
	return object, nil
}

// Metadata reads the metadata of an object. Nil: the object does not exist. If the API server does not serve the kind,
// Metadata returns an error that [Unserved] recognizes, because such an object may still be stored.
func Metadata(ctx context.Context, c client.Reader, kind schema.GroupVersionKind,
	key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	err := c.Get(ctx, key, object)
	switch {
	case err == nil:
		return object, nil
	case apierrors.IsNotFound(err) && !Unserved(err):
		return nil, nil
	default:
		return nil, err
	}
}

// Unserved reports whether an error means that the API server does not serve the kind in the requested version.
func Unserved(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) && apierrors.HasStatusCause(err,
		metav1.CauseTypeUnexpectedServerResponse)
}

// Delete starts the deletion of an observed object. The error is a conflict if the object was changed or created again
// since it was observed.
//
// The request is not sent as PartialObjectMetadata: the API server may respond with the whole object, which a metadata
// client cannot decode for some kinds.
func Delete(ctx context.Context, c client.Writer, observed client.Object, options ...client.DeleteOption) error {
	object := New(observed.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(observed))
	return c.Delete(ctx, object, append(options, precondition.Unchanged(observed))...)
}

// The kinds of objects that other objects require. Every inventory has them before all other objects.
var (
	NamespaceKind  = schema.GroupKind{Kind: "Namespace"}
	DefinitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

// DefinedKind returns the kind that a CustomResourceDefinition defines, and its served versions.
func DefinedKind(definition *unstructured.Unstructured) (kind schema.GroupKind, versions []string) {
	kind.Group, _, _ = unstructured.NestedString(definition.Object, "spec", "group")
	kind.Kind, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "kind")
	for _, version := range objectsIn(definition, "spec", "versions") {
		if name, ok := version["name"].(string); ok && version["served"] == true {
			versions = append(versions, name)
		}
	}
	return kind, versions
}

// Conditions returns the conditions of an object.
func Conditions(object *unstructured.Unstructured) []map[string]any {
	return objectsIn(object, "status", "conditions")
}

// Condition returns the condition of a type. Nil: the object does not have the condition.
func Condition(object *unstructured.Unstructured, kind string) map[string]any {
	for _, condition := range Conditions(object) {
		if condition["type"] == kind {
			return condition
		}
	}
	return nil
}

// Established reports whether the API server has established an observed CustomResourceDefinition. Its discovery may
// contain the kind later.
func Established(definition *unstructured.Unstructured) bool {
	return Condition(definition, "Established")["status"] == "True"
}

// objectsIn returns the objects in a list. The list may be null, such as the conditions of a new object.
func objectsIn(object *unstructured.Unstructured, path ...string) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	entries, _ := list.([]any)
	objects := make([]map[string]any, 0, len(entries))
	for _, entry := range entries {
		if item, ok := entry.(map[string]any); ok {
			objects = append(objects, item)
		}
	}
	return objects
}

// Key identifies an object in all versions of its kind.
type Key struct{ Group, Kind, Namespace, Name string }

// Index returns the entries of an inventory by object. If an object has several entries, the last one is used.
func Index[S ~[]E, E any](inventory S, key func(E) Key) map[Key]E {
	index := make(map[Key]E, len(inventory))
	for _, entry := range inventory {
		index[key(entry)] = entry
	}
	return index
}

// Ahead returns the inventory that must be stored before the desired objects are applied: the stale entries, then the
// desired ones. Each object has one entry, its last one.
func Ahead[S ~[]E, E any](recorded, desired S, key func(E) Key) S {
	all := slices.Concat(recorded, desired)
	last := make(map[Key]int, len(all))
	for i, entry := range all {
		last[key(entry)] = i
	}
	ahead := make(S, 0, len(all))
	for i, entry := range all {
		if last[key(entry)] == i {
			ahead = append(ahead, entry)
		}
	}
	return ahead
}

// Stale returns the recorded entries of objects that are not desired any more, in the recorded order. Objects are
// deleted in the reverse order.
func Stale[S ~[]E, E any](recorded, desired S, key func(E) Key) S {
	index := Index(desired, key)
	return slices.DeleteFunc(slices.Clone(recorded), func(entry E) bool {
		_, kept := index[key(entry)]
		return kept
	})
}
