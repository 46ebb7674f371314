package apply

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// pared returns the manifest without the ignored fields.
func (o Object) pared() *unstructured.Unstructured {
	if len(o.IgnoredFields) == 0 {
		return o.Manifest
	}
	pared := o.Manifest.DeepCopy()
	for _, path := range o.ignored(o.Manifest.Object) {
		path.Remove(pared.Object)
	}
	return pared
}

// ignored returns the paths of the ignored fields in the objects. Items of lists are in reverse order, so that the
// fields can be removed one after the other.
func (o Object) ignored(objects ...map[string]any) []v1alpha1.FieldPath {
	var paths []v1alpha1.FieldPath
	for _, path := range o.IgnoredFields {
		expanded := path.Expand(objects...)
		slices.Reverse(expanded)
		paths = append(paths, expanded...)
	}
	return paths
}

// wanted returns the manifest that is applied to an existing object. Of the ignored fields it contains those that no
// other manager has taken yet, with their live values, since omitting them would remove them; and those that are part
// of an atomic field, which can only be applied as a whole.
func (o Object) wanted(live *unstructured.Unstructured, owner Owner) *unstructured.Unstructured {
	if len(o.IgnoredFields) == 0 {
		return o.Manifest
	}
	records := leavesOf(live.GetManagedFields(), owner.FieldOwner)
	wanted := o.Manifest.DeepCopy()
	for _, path := range o.ignored(o.Manifest.Object, live.Object) {
		value, found := path.Get(live.Object)
		if found && records.keep(path) {
			// Set fails if the manifest no longer has the item that contains the field. Then the item is removed.
			_ = path.Set(wanted.Object, value)
		} else {
			path.Remove(wanted.Object)
		}
	}
	return wanted
}

// leaves are the fields of field managers, without the fields that contain them.
type leaves struct{ ours, all []v1alpha1.FieldPath }

func leavesOf(entries []metav1.ManagedFieldsEntry, manager string) leaves {
	var of leaves
	for _, entry := range entries {
		if entry.FieldsV1 == nil {
			continue
		}
		set, err := parseFields(entry.FieldsV1.GetRawBytes())
		if err != nil {
			continue
		}
		paths := pathsOf(set)
		of.all = append(of.all, paths...)
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			of.ours = paths
		}
	}
	return of
}

// keep reports whether an ignored field must be applied with its live value: our manager owns it, or it is a part of an
// atomic field.
func (l leaves) keep(path v1alpha1.FieldPath) bool {
	for _, leaf := range l.ours {
		if leaf.HasPrefix(path) {
			return true
		}
	}
	for _, leaf := range l.all {
		if len(leaf) < len(path) && path.HasPrefix(leaf) {
			return true
		}
	}
	return false
}

func pathsOf(set *fieldpath.Set) []v1alpha1.FieldPath {
	var paths []v1alpha1.FieldPath
	for leaf := range set.Leaves().All() {
		paths = append(paths, pathOf(leaf))
	}
	return paths
}

// stamp returns a copy of a manifest with the marks of the owner.
func stamp(manifest *unstructured.Unstructured, owner Owner, hash string) *unstructured.Unstructured {
	stamped := manifest.DeepCopy()
	stamped.SetLabels(labels.Merge(stamped.GetLabels(), labels.Set{v1alpha1.AppliedLabel: "true"}))
	annotations := stamped.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[owner.Mark()] = hash
	stamped.SetAnnotations(annotations)
	return stamped
}
