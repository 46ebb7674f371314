package workset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// emptied returns a message for each selector that matches no object although it matched objects of the former
// revision. It returns none if spec.allowEmpty is set. A selector without matches is not a request to delete: the
// namespace of the objects may have been deleted by mistake, or not be restored yet. Objects in spec.manifests are
// ignored.
func emptied(set *v1alpha1.WorkSet, before, selected, manifests []bundle.Object) []string {
	spec := &set.Spec
	if spec.AllowEmpty || len(spec.Resources) == 0 {
		return nil
	}
	written := make(map[bundle.Key]bool, len(manifests))
	for i := range manifests {
		written[manifests[i].Key()] = true
	}
	const next = "the clusters keep their objects: create matching objects, change or remove the selector, or set " +
		"spec.allowEmpty to true"
	var messages []string
	had := 0
	for i := range before {
		if !written[before[i].Key()] {
			had++
		}
	}
	if had > 0 && len(selected) == 0 {
		return []string{fmt.Sprintf("spec.resources: no objects match, but revision %s has %d objects: %s",
			set.Status.Revision, had, next)}
	}
	for i := range spec.Resources {
		if spec.Resources[i].Kind == v1alpha1.EveryKind {
			for _, kind := range lostKinds(&spec.Resources[i], set.Namespace, written, before, selected) {
				messages = append(messages, fmt.Sprintf("spec.resources[%d]: no objects of kind %s match, but some of revision "+
					"%s did: %s",
					i, kind, set.Status.Revision, next))
			}
			continue
		}
		was, is := 0, 0
		for j := range before {
			if !written[before[j].Key()] && matches(&spec.Resources[i], set.Namespace, &before[j]) {
				was++
			}
		}
		for j := range selected {
			if was > 0 && is == 0 && matches(&spec.Resources[i], set.Namespace, &selected[j]) {
				is++
			}
		}
		if was > 0 && is == 0 {
			messages = append(messages,
				fmt.Sprintf("spec.resources[%d]: no objects match, but %d objects of revision %s did: %s", i, was,
					set.Status.Revision, next))
		}
	}
	return messages
}

// lostKinds returns the kinds of which a selector of every kind matched objects before and matches none now. A
// CustomResourceDefinition may have been removed by mistake, so this is not a request to delete.
func lostKinds(s *v1alpha1.ResourceSelector, namespace string, written map[bundle.Key]bool,
	before, selected []bundle.Object) []string {
	lost := map[string]bool{}
	for i := range before {
		if !written[before[i].Key()] && matches(s, namespace, &before[i]) {
			lost[schema.GroupKind{Group: before[i].Group, Kind: before[i].Kind}.String()] = true
		}
	}
	for i := range selected {
		delete(lost, schema.GroupKind{Group: selected[i].Group, Kind: selected[i].Kind}.String())
	}
	return slices.Sorted(maps.Keys(lost))
}

// matches reports whether a selector of a WorkSet matches an object of a revision.
func matches(s *v1alpha1.ResourceSelector, namespace string, o *bundle.Object) bool {
	switch {
	case s.Kind == v1alpha1.EveryKind && o.Namespace == "":
		return o.Kind == "Namespace" && o.Group == "" && o.Name == cmp.Or(s.Namespace, namespace)
	case s.Kind != v1alpha1.EveryKind && (s.Group != o.Group || s.Kind != o.Kind) || s.Name != "" && s.Name != o.Name:
		return false
	case o.Namespace != "" && o.Namespace != cmp.Or(s.Namespace, namespace):
		return false
	case s.LabelSelector == nil:
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	if err != nil {
		return false
	}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(o.JSON, &object); err != nil {
		return false
	}
	return selector.Matches(labels.Set(object.Labels))
}
