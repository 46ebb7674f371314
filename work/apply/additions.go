package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// An addition is a field, a key of a map or an item of a list that another field manager has added to an object, and
// that the manifest does not have. Additions are found in the managed fields, so values are not compared, and fields
// that defaulting and admission add are not additions.

// systemManagers are the field managers of Kubernetes' own components. The fields that they add are not additions.
var systemManagers = []string{
	"kube-controller-manager", "kube-scheduler", "kubelet", "kube-apiserver", "cloud-controller-manager",
}

// additions returns the additions to an object; none if the policy keeps them. It is pure.
func (s *observation) additions(o Object) []FieldConflict {
	if o.Additions != v1alpha1.AdditionsReport && o.Additions != v1alpha1.AdditionsRemove {
		return nil
	}
	var added []FieldConflict
	for _, entry := range s.entries {
		for _, path := range s.addedBy(entry, o) {
			added = append(added, FieldConflict{Field: pathOf(path).String(), Manager: entry.Manager})
		}
	}
	slices.SortFunc(added, compareConflicts)
	return slices.Compact(added)
}

// addedBy returns the additions of one field manager, the outermost fields only.
func (s *observation) addedBy(entry metav1.ManagedFieldsEntry, o Object) []fieldpath.Path {
	if entry.Manager == s.manager || entry.Subresource != "" || slices.Contains(systemManagers, entry.Manager) ||
		slices.Contains(s.marks.rivals, entry.Manager) {
		return nil
	}
	ours, err := parseFields(s.fields)
	if err != nil {
		return nil
	}
	var added []fieldpath.Path
	outer := fieldpath.NewSet()
	for _, path := range pathsOfSet(fieldsOf(entry)) {
		inside := false
		for i := 1; i < len(path) && !inside; i++ {
			inside = outer.Has(path[:i])
		}
		if inside || !mayBeAdded(path) || ours.Has(path) || !descend(ours, path).Empty() || o.containsOrIgnores(path) {
			continue
		}
		outer.Insert(path)
		added = append(added, path)
	}
	return added
}

// mayBeAdded reports whether a field can be an addition. Status cannot. Of the metadata, labels and annotations can,
// except annotations that Kubernetes, kubectl and muster write.
func mayBeAdded(path fieldpath.Path) bool {
	name := func(i int) string {
		if i < len(path) && path[i].FieldName != nil {
			return *path[i].FieldName
		}
		return ""
	}
	switch name(0) {
	case "status":
		return false
	case "metadata":
		inside := len(path) > 2 && (name(1) == "labels" || name(1) == "annotations")
		return inside && !revisionAnnotation(name(2)) && name(2) != "kubectl.kubernetes.io/last-applied-configuration" &&
			name(2) != v1alpha1.DisabledAnnotation && !strings.HasPrefix(name(2), MarkPrefix)
	default:
		return true
	}
}

// containsOrIgnores reports whether a field is in the manifest, whichever manager owns it, or is ignored.
func (o Object) containsOrIgnores(path fieldpath.Path) bool {
	field := pathOf(path)
	if _, found := field.Get(o.Manifest.Object); found {
		return true
	}
	return slices.ContainsFunc(o.IgnoredFields, field.Matches)
}

// addedFields returns the additions that a heal removes.
func (t *task) addedFields() []FieldConflict {
	if t.observed == nil || t.observed.fields == nil || t.Additions != v1alpha1.AdditionsRemove {
		return nil
	}
	return t.observed.additions(t.Object)
}

// seizeAdditions moves the additions to our field manager in the managed fields, so that our next apply removes them.
func (e *Engine) seizeAdditions(ctx context.Context, owner Owner, t *task) error {
	if len(t.addedFields()) == 0 {
		return nil
	}
	live, err := e.read(ctx, t.id)
	if err != nil {
		return err
	}
	if live.GetUID() != t.observed.uid {
		return newConflict(t, errRecreated)
	}
	now := observe(live, owner)
	entries, changed := seized(now, t.Object, live.GetAPIVersion())
	if !changed {
		return nil
	}
	if _, err := e.writeManagers(ctx, owner, live, entries); err != nil {
		return fmt.Errorf("take over the fields that other managers have added: %w", err)
	}
	return nil
}

// seized returns the managed fields of an object with the additions moved to our field manager.
func seized(s *observation, o Object, apiVersion string) (next []metav1.ManagedFieldsEntry, changed bool) {
	taken := fieldpath.NewSet()
	for _, entry := range s.entries {
		added := fieldpath.NewSet(s.addedBy(entry, o)...)
		if added.Empty() {
			next = append(next, entry)
			continue
		}
		changed, taken = true, taken.Union(added)
		if rest := without(fieldsOf(entry), added); !rest.Empty() {
			next = append(next, withFields(entry, rest))
		}
	}
	for i, entry := range next {
		if entry.Manager == s.manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			next[i] = withFields(entry, fieldsOf(entry).Union(taken))
			return next, changed
		}
	}
	if changed {
		next = append(next, withFields(metav1.ManagedFieldsEntry{
			Manager: s.manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: apiVersion, FieldsType: "FieldsV1",
		}, taken))
	}
	return next, changed
}
