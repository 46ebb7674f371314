package apply

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// An apply merges the manifest into the object, and removes only fields that our field manager owned before. If an edit
// has replaced one member of a union by another, or renumbered a port, the merged object has both and is invalid, so
// each apply fails. The residue is the set of fields that has to be removed first.

// causesOf returns the causes of an error about fields that are invalid and not immutable.
func causesOf(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var causes []metav1.StatusCause
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "" && !strings.HasPrefix(cause.Field, "metadata") && !immutable(cause.Message) {
			causes = append(causes, cause)
		}
	}
	return causes
}

// immutable reports whether a message of the API server says that a field is immutable.
func immutable(message string) bool {
	return slices.ContainsFunc([]string{
		"immutable", "updates to ", "may not be changed", "may not change once set", "cannot change roleRef",
	}, func(words string) bool { return strings.Contains(message, words) })
}

// anyItem stands for all items of a list in a scope.
const anyItem = "*"

// scopeOf returns the path of the struct or list item that contains an invalid field, and the name of the field. An
// index is replaced by [anyItem], because it refers to the merged object, which is not known.
func scopeOf(field string) (scope []string, name string) {
	for part := range strings.SplitSeq(field, ".") {
		name, index, item := strings.Cut(part, "[")
		if name != "" {
			scope = append(scope, name)
		}
		for range strings.Count(index, "[") {
			scope = append(scope, anyItem)
		}
		if item {
			scope = append(scope, anyItem)
		}
	}
	if last := len(scope) - 1; last > 0 && scope[last] != anyItem {
		return scope[:last], scope[last]
	}
	return scope, ""
}

// residueOf returns fields of a live object that the config does not have, in the structs and list items that contain
// the invalid fields: the fields of Update managers, and the invalid fields themselves if no manager owns them.
func residueOf(
	config map[string]any, live *unstructured.Unstructured, causes []metav1.StatusCause, manager string,
) *fieldpath.Set {
	none := fieldpath.NewSet
	s := residueSearch{updates: none(), others: none(), all: none(), found: none()}
	for _, entry := range live.GetManagedFields() {
		set := fieldsOf(entry)
		switch {
		case entry.Manager == manager && entry.Subresource == "":
		case entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "":
			s.updates = s.updates.Union(set)
		default:
			s.others = s.others.Union(set)
		}
		s.all = s.all.Union(set)
	}
	for _, cause := range causes {
		scope, name := scopeOf(cause.Field)
		s.duplicate = cause.Type == metav1.CauseTypeFieldValueDuplicate
		s.named = name
		s.search(nil, scope, live.Object, config)
	}
	return s.found
}

// residueSearch compares an object with a config.
type residueSearch struct {
	updates, others, all *fieldpath.Set // of Update managers, of other managers except ours, and of all managers
	named                string         // the invalid field
	duplicate            bool           // the cause is an item that exists twice
	found                *fieldpath.Set
}

func (s *residueSearch) search(path fieldpath.Path, scope []string, live, config any) {
	if len(scope) == 0 {
		s.fields(path, live, config)
		return
	}
	if scope[0] != anyItem {
		liveFields, _ := live.(map[string]any)
		configFields, _ := config.(map[string]any)
		inner, has := liveFields[scope[0]]
		if has {
			name := scope[0]
			s.search(append(path.Copy(), fieldpath.PathElement{FieldName: &name}), scope[1:], inner, configFields[scope[0]])
		}
		return
	}
	liveItems, _ := live.([]any)
	configItems, _ := config.([]any)
	for element := range descend(s.all, path).Children.All() {
		item := itemOf(liveItems, element)
		if item == nil {
			continue
		}
		at := append(path.Copy(), element)
		wanted := itemOf(configItems, element)
		switch {
		case wanted != nil:
			s.search(at, scope[1:], item, wanted)
		case s.duplicate && len(scope) == 1 && s.repeats(item, configItems):
			s.add(at, false)
		}
	}
}

// repeats reports whether an item has the same value of the invalid field as one of the items.
func (s *residueSearch) repeats(item map[string]any, items []any) bool {
	for _, entry := range items {
		other, _ := entry.(map[string]any)
		if name, has := other[s.named]; has && item[s.named] == name {
			return true
		}
	}
	return false
}

// fields adds the fields of a struct that are not in the config.
func (s *residueSearch) fields(path fieldpath.Path, live, config any) {
	liveFields, _ := live.(map[string]any)
	configFields, _ := config.(map[string]any)
	if configFields == nil {
		return
	}
	for name := range liveFields {
		if _, wanted := configFields[name]; !wanted {
			s.add(append(path.Copy(), fieldpath.PathElement{FieldName: &name}), name == s.named)
		}
	}
}

// add adds a field unless a manager that is not an Update manager owns it or a part of it.
func (s *residueSearch) add(path fieldpath.Path, named bool) {
	touches := func(set *fieldpath.Set) bool { return set.Has(path) || !descend(set, path).Empty() }
	if !touches(s.others) && (named || touches(s.updates)) {
		s.found.Insert(path)
	}
}

// itemOf returns the item of a list with the keys of an element. Nil: there is none.
func itemOf(items []any, element fieldpath.PathElement) map[string]any {
	if element.Key == nil {
		return nil
	}
	for _, entry := range items {
		item, _ := entry.(map[string]any)
		if matched, keys := keysOf(element, item); matched > 0 && (matched == keys || defaulted(element, item)) {
			return item
		}
	}
	return nil
}

// defaulted reports whether the API server defaults all keys that an item lacks to the values of the element.
func defaulted(element fieldpath.PathElement, item map[string]any) bool {
	for _, key := range *element.Key {
		isDefault := key.Name == "protocol" && value.Equals(key.Value, value.NewValueInterface("TCP"))
		if _, has := item[key.Name]; !has && !isDefault {
			return false
		}
	}
	return true
}
