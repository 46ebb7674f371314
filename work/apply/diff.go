package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

const (
	// MaxDiffs is the maximum number of reported differences of an object.
	MaxDiffs = 20
	// maxValue is the maximum length of a reported value, in bytes.
	maxValue = 128
	redacted = "(redacted)"
)

// Diff returns the differences between an object and a manifest, and the object. The differences are what a forced
// apply would change, as the API server would change it, with defaults and admission. Diff writes nothing, but needs
// the permission to write. The error is NotFound if the object does not exist.
func (e *Engine) Diff(ctx context.Context, owner Owner,
	manifest *unstructured.Unstructured) ([]v1alpha1.FieldDiff, *unstructured.Unstructured, error) {
	manifest = prepared(manifest)
	backoff := newBackoff()
	for attempt := 1; ; attempt++ {
		live, err := e.read(ctx, identifier(manifest))
		if err != nil {
			return nil, nil, err
		}
		config := manifest
		if s := observe(live, owner); s.marks.ours || s.marked() { // our own marks are not differences
			if config, err = stampedAs(manifest, owner, s.marks.applied); err != nil {
				return nil, nil, err
			}
		}
		diffs, err := e.dryRun(ctx, owner, config, live)
		if changedConcurrently(err) && attempt < attempts && pause(ctx, &backoff) {
			continue
		}
		return diffs, live, err
	}
}

// stampedAs returns a manifest with our marks and the hash of the object.
func stampedAs(manifest *unstructured.Unstructured, owner Owner, applied string) (*unstructured.Unstructured, error) {
	hash, err := Object{Manifest: manifest}.hash()
	if err != nil {
		return nil, err
	}
	return stamp(manifest, owner, cmp.Or(applied, hash)), nil
}

// dryRun returns what an apply would change. The dry run is bound to the version of the object that was read. If
// another client changes the object in between, the dry run fails as overtaken, and does not report that change.
//
// If the API server rejects the manifest, dryRun returns the error, and the differences between the fields of the
// manifest and the object, without defaults, conversions and admission.
func (e *Engine) dryRun(ctx context.Context, owner Owner, config,
	live *unstructured.Unstructured) ([]v1alpha1.FieldDiff, error) {
	bound := config.DeepCopy()
	bound.SetUID(live.GetUID())
	bound.SetResourceVersion(live.GetResourceVersion())
	wanted, err := e.apply(ctx, owner, bound, true, client.DryRunAll)
	switch {
	case err != nil && permanent(err) && !changedConcurrently(err):
		return diffs(overlaid(config, live), live), fmt.Errorf("dry-run the apply: %w", err)
	case err != nil:
		return nil, fmt.Errorf("dry-run the apply: %w", err)
	}
	return diffs(wanted, live), nil
}

// overlaid returns an object with the fields of a manifest. Items of lists are merged by their names; other lists are
// replaced.
func overlaid(config, live *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: overlay(config.Object, live.Object).(map[string]any)}
}

func overlay(wanted, found any) any {
	switch wanted := wanted.(type) {
	case map[string]any:
		under, ok := found.(map[string]any)
		if !ok {
			return wanted
		}
		merged := maps.Clone(under)
		for name, value := range wanted {
			merged[name] = overlay(value, under[name])
		}
		return merged
	case []any:
		under, ok := found.([]any)
		foundItems, areNamed := named(under)
		if !ok || !areNamed {
			return wanted
		}
		merged := make([]any, len(wanted))
		for i, entry := range wanted {
			item, _ := entry.(map[string]any)
			name, _ := item["name"].(string)
			merged[i] = entry
			if same := foundItems[name]; same != nil {
				merged[i] = overlay(entry, same)
			}
		}
		return merged
	default:
		return wanted
	}
}

// diffs returns the first differences between two states of one object.
func diffs(wanted, found *unstructured.Unstructured) []v1alpha1.FieldDiff {
	d := differ{secret: isSecret(wanted.GroupVersionKind())}
	d.maps(v1alpha1.FieldPath{}, withoutServers(wanted), withoutServers(found))
	return d.diffs
}

func isSecret(kind schema.GroupVersionKind) bool { return kind.Group == "" && kind.Kind == "Secret" }

// withoutServers returns the content of an object without the fields that the API server writes.
func withoutServers(u *unstructured.Unstructured) map[string]any {
	object := maps.Clone(u.Object)
	delete(object, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
			delete(metadata, field)
		}
		object["metadata"] = metadata
	}
	return object
}

// differ collects differences.
type differ struct {
	secret bool
	diffs  []v1alpha1.FieldDiff
}

func (d *differ) maps(path v1alpha1.FieldPath, wanted, found map[string]any) {
	names := slices.Collect(maps.Keys(wanted))
	for name := range found {
		if _, both := wanted[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		d.values(path.Field(name), wanted[name], found[name])
	}
}

func (d *differ) values(path v1alpha1.FieldPath, wanted, found any) {
	if len(d.diffs) == MaxDiffs || reflect.DeepEqual(wanted, found) {
		return
	}
	switch wanted := wanted.(type) {
	case map[string]any:
		if found, ok := found.(map[string]any); ok {
			d.maps(path, wanted, found)
			return
		}
	case []any:
		if found, ok := found.([]any); ok && d.lists(path, wanted, found) {
			return
		}
	}
	d.diffs = append(d.diffs, v1alpha1.FieldDiff{Path: path.String(), Wanted: d.show(path, wanted),
		Found: d.show(path, found)})
}

// lists compares two lists by the names of their items. False: the items have no names, or only their order differs.
func (d *differ) lists(path v1alpha1.FieldPath, wanted, found []any) bool {
	wantedItems, ok := named(wanted)
	foundItems, both := named(found)
	if !ok || !both {
		return false
	}
	names := slices.Collect(maps.Keys(wantedItems))
	for name := range foundItems {
		if _, both := wantedItems[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	before := len(d.diffs)
	for _, name := range names {
		d.values(path.Item(map[string]any{"name": name}), orNil(wantedItems[name]), orNil(foundItems[name]))
	}
	return len(d.diffs) > before // if not, their order differs
}

func orNil(item map[string]any) any {
	if item == nil {
		return nil
	}
	return item
}

// named returns the items of a list by name. False: an item has no name, or two have the same.
func named(list []any) (map[string]map[string]any, bool) {
	items := make(map[string]map[string]any, len(list))
	for _, entry := range list {
		item, ok := entry.(map[string]any)
		name, isText := item["name"].(string)
		if _, twice := items[name]; !ok || !isText || twice {
			return nil, false
		}
		items[name] = item
	}
	return items, true
}

// shown are the fields of a Secret whose values may be reported. An annotation of kubectl contains the whole Secret.
var shown = []v1alpha1.FieldPath{
	pathTo("type"), pathTo("immutable"), pathTo("metadata", "labels"), pathTo("metadata", "finalizers"),
	pathTo("metadata", "ownerReferences"),
}

func pathTo(names ...string) v1alpha1.FieldPath {
	var path v1alpha1.FieldPath
	for _, name := range names {
		path = path.Field(name)
	}
	return path
}

// show returns a value for a report.
func (d *differ) show(path v1alpha1.FieldPath, value any) string {
	if value == nil {
		return ""
	}
	if d.secret && !slices.ContainsFunc(shown, path.HasPrefix) {
		return redacted
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	if len(data) <= maxValue {
		return string(data)
	}
	cut := maxValue - len("…")
	for !utf8.RuneStart(data[cut]) {
		cut--
	}
	return string(data[:cut]) + "…"
}

// summary describes the first differences.
func summary(diffs []v1alpha1.FieldDiff) string {
	const most = 3
	var parts []string
	for _, diff := range diffs[:min(most, len(diffs))] {
		switch {
		case diff.Found == "":
			parts = append(parts, fmt.Sprintf("%s is missing, expected %s", diff.Path, diff.Wanted))
		case diff.Wanted == "":
			parts = append(parts, fmt.Sprintf("%s is %s, expected no value", diff.Path, diff.Found))
		default:
			parts = append(parts, fmt.Sprintf("%s is %s, expected %s", diff.Path, diff.Found, diff.Wanted))
		}
	}
	if more := len(diffs) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}
