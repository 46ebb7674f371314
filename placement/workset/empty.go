package workset

import (
	"cmp"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// emptied returns a message for each selector that matches nothing although it matched objects of the former revision;
// none if spec.allowEmpty is set. An empty match is not a request: the objects may be in a namespace that was deleted
// by mistake, or not restored yet. Objects in spec.manifests are ignored.
func emptied(set *v1alpha1.WorkSet, before, selected, manifests []bundle.Object) []string {
	spec := &set.Spec
	if spec.AllowEmpty || len(spec.Resources) == 0 {
		return nil
	}
	written := make(map[bundle.Key]bool, len(manifests))
	for i := range manifests {
		written[manifests[i].Key()] = true
	}
	const next = "the clusters keep what they have: create objects that it matches, change or remove the selector, or " +
		"set spec.allowEmpty to true"
	var messages []string
	had := 0
	for i := range before {
		if !written[before[i].Key()] {
			had++
		}
	}
	if had > 0 && len(selected) == 0 {
		return []string{fmt.Sprintf("spec.resources: matches nothing, and revision %s has %d objects: %s",
			set.Status.Revision, had, next)}
	}
	for i := range spec.Resources {
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
				fmt.Sprintf("spec.resources[%d]: matches nothing, and matched %d objects of revision %s: %s", i, was,
					set.Status.Revision, next))
		}
	}
	return messages
}

// matches reports whether a selector of a WorkSet matches an object of a revision.
func matches(s *v1alpha1.ResourceSelector, namespace string, o *bundle.Object) bool {
	switch {
	case s.Group != o.Group || s.Kind != o.Kind || s.Name != "" && s.Name != o.Name:
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
