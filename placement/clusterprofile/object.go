package clusterprofile

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	group   = "multicluster.x-k8s.io"
	version = "v1alpha1"
)

func newObject(kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// ownedBy returns the owner reference from an exported object to its source. The reference does not block the deletion
// of the source, because that would require a permission on the finalizers of the source.
func ownedBy(source metav1.Object, kind schema.GroupVersionKind) metav1.OwnerReference {
	owner := *metav1.NewControllerRef(source, kind)
	owner.BlockOwnerDeletion = nil
	return owner
}

// ownerOf returns the controller reference of an exported object to its source, which is an object of muster with the
// same name. Nil means that the object was not exported and has another owner.
func ownerOf(object metav1.Object, kind schema.GroupKind) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.Name != object.GetName() ||
		schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != kind {
		return nil
	}
	return owner
}

// missing returns the labels or annotations that differ from the desired ones, as part of a merge patch. Nil: none
// differ.
func missing(have, want map[string]string) map[string]any {
	var patch map[string]any
	for key, value := range want {
		if is, there := have[key]; !there || is != value {
			if patch == nil {
				patch = map[string]any{}
			}
			patch[key] = value
		}
	}
	return patch
}
