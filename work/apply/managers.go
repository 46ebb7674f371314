package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/muster-sdk/muster/internal/ssa"
)

// writeManagers replaces the managed fields of an object and returns the object. It changes nothing else, and fails if
// the object is not the version that was read.
func (e *Engine) writeManagers(
	ctx context.Context, owner Owner, live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry,
) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "managedFields": entries,
	}})
	if err != nil {
		return nil, fmt.Errorf("encode the managed fields of %s: %w", identifier(live), err)
	}
	written := ssa.New(live.GroupVersionKind(), client.ObjectKeyFromObject(live))
	err = e.client.Patch(ctx, written, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(owner.FieldOwner))
	return written, err
}

// repaired corrects the managed fields of the object if they are the cause of a failed apply, and reports whether to
// apply again. If the config is bound to a version of the object, it is bound to the new version then.
func (e *Engine) repaired(
	ctx context.Context, owner Owner, t *task, config *unstructured.Unstructured, cause error,
) (bool, error) {
	stale, invalid := violatesSchema(cause), apierrors.IsInvalid(cause) && !changedConcurrently(cause)
	if t.observed == nil || !stale && !invalid {
		return false, nil
	}
	live, err := e.read(ctx, t.id)
	if err != nil {
		return false, err
	}
	if live.GetUID() != t.observed.uid {
		return false, newConflict(t, cause)
	}
	entries, changed := live.GetManagedFields(), false
	if stale {
		entries, changed = migrated(entries, config.GetAPIVersion())
	} else if residue := residueOf(config.Object, live, causesOf(cause), owner.FieldOwner); !residue.Empty() {
		entries, changed = transferred(entries, residue, owner.FieldOwner, config.GetAPIVersion())
	}
	if !changed {
		return false, nil
	}
	written, err := e.writeManagers(ctx, owner, live, entries)
	if err != nil {
		return false, err
	}
	if config.GetResourceVersion() != "" {
		config.SetResourceVersion(written.GetResourceVersion())
	}
	return true, nil
}

// migrated returns the entries with the given API version. An entry of an earlier version makes each apply fail if the
// object has fields that this version does not define.
func migrated(entries []metav1.ManagedFieldsEntry, apiVersion string) (next []metav1.ManagedFieldsEntry, changed bool) {
	for _, entry := range entries {
		if entry.APIVersion != apiVersion {
			entry.APIVersion, changed = apiVersion, true
		}
		same := slices.IndexFunc(next, func(other metav1.ManagedFieldsEntry) bool {
			return other.Manager == entry.Manager && other.Operation == entry.Operation && other.Subresource == entry.Subresource
		})
		if same < 0 {
			next = append(next, entry)
			continue
		}
		next[same] = withFields(next[same], fieldsOf(next[same]).Union(fieldsOf(entry)))
	}
	return next, changed
}

// transferred moves fields from all Update managers to our field manager. Our next apply then removes the fields that
// its manifest does not have.
func transferred(
	entries []metav1.ManagedFieldsEntry, fields *fieldpath.Set, manager, apiVersion string,
) (next []metav1.ManagedFieldsEntry, changed bool) {
	has := false
	for _, entry := range entries {
		switch {
		case entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "":
			have := fieldsOf(entry)
			has, changed = true, changed || !fields.Difference(have).Empty()
			entry = withFields(entry, have.Union(fields))
		case entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "":
			have := fieldsOf(entry)
			rest := without(have, fields)
			if changed = changed || !rest.Equals(have); rest.Empty() {
				continue
			}
			entry = withFields(entry, rest)
		}
		next = append(next, entry)
	}
	if !has {
		changed = true
		next = append(next, withFields(metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: apiVersion, FieldsType: "FieldsV1",
		}, fields))
	}
	return next, changed
}

// deployers are prefixes of the field managers of deployment tools. Such a tool does not write again by itself to an
// object that was taken over from it.
var deployers = []string{
	"kubectl", "before-first-apply", "helm", "Helm", "kustomize-controller", "argocd-controller",
	"argocd-application-controller", "Terraform", "HashiCorp", "pulumi",
}

// relinquished removes from the entries of all deployers the fields that our field manager owns. A field that the
// manifest drops later is then removed from the object. Deployers keep the fields that are not in the manifest.
func relinquished(entries []metav1.ManagedFieldsEntry,
	manager string) (next []metav1.ManagedFieldsEntry, changed bool) {
	ours := fieldpath.NewSet()
	for _, entry := range entries {
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			ours = fieldsOf(entry)
		}
	}
	for _, entry := range entries {
		deployer := slices.ContainsFunc(deployers, func(prefix string) bool {
			return strings.HasPrefix(entry.Manager, prefix)
		})
		if deployer && entry.Manager != manager && entry.Subresource == "" {
			have := fieldsOf(entry)
			rest := have.Difference(ours)
			if rest.Equals(have) {
				next = append(next, entry)
				continue
			}
			if changed = true; rest.Empty() {
				continue
			}
			entry = withFields(entry, rest)
		}
		next = append(next, entry)
	}
	return next, changed
}

// relinquish applies [relinquished] to an object that was just taken over.
func (e *Engine) relinquish(
	ctx context.Context, owner Owner, t *task, live *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	backoff := newBackoff()
	for range attempts {
		entries, changed := relinquished(live.GetManagedFields(), owner.FieldOwner)
		if !changed {
			return live, nil
		}
		written, err := e.writeManagers(ctx, owner, live, entries)
		if err == nil {
			return written, nil
		}
		if !changedConcurrently(err) {
			return nil, fmt.Errorf("remove the fields from their previous managers: %w", err)
		}
		pause(ctx, &backoff)
		if live, err = e.read(ctx, t.id); err != nil {
			return nil, err
		}
	}
	return live, nil
}

func fieldsOf(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	if entry.FieldsV1 == nil {
		return fieldpath.NewSet()
	}
	set, err := parseFields(entry.FieldsV1.GetRawBytes())
	if err != nil {
		return fieldpath.NewSet()
	}
	return set
}

func withFields(entry metav1.ManagedFieldsEntry, set *fieldpath.Set) metav1.ManagedFieldsEntry {
	data, err := set.ToJSON()
	if err != nil { // a set that was read can be written
		return entry
	}
	entry.FieldsV1 = metav1.NewFieldsV1(string(data))
	return entry
}

// without returns the paths of a set that are neither in the other set nor below one of its paths.
func without(set, others *fieldpath.Set) *fieldpath.Set {
	rest := fieldpath.NewSet()
	for _, path := range pathsOfSet(set) {
		inside := false
		for i := 1; i <= len(path) && !inside; i++ {
			inside = others.Has(path[:i])
		}
		if !inside {
			rest.Insert(path)
		}
	}
	return rest
}
