package apply

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

func TestCovers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, manifest, fields string
		want                     bool
	}{
		"plain": {"the manager has every field",
			"{apiVersion: v1, kind: X, metadata: {name: a, namespace: b, labels: {c: d}}, data: {e: f}}",
			`{"f:metadata":{"f:labels":{"f:c":{}}},"f:data":{"f:e":{}}}`, true},
		"missing":       {"another manager has a field", "{data: {e: f, g: h}}", `{"f:data":{"f:e":{}}}`, false},
		"missing label": {"metadata is compared", "{metadata: {labels: {c: d}}}", `{"f:data":{}}`, false},
		"server fields": {"fields of the API server have no manager",
			"{metadata: {creationTimestamp: null, generation: 1}}", `{}`, true},
		"empty": {"an empty map is a field", "{spec: {x: {}}}", `{"f:spec":{"f:x":{}}}`, true},
		"no longer empty": {"other managers have filled the map, the manager still has it", "{spec: {x: {}}}",
			`{"f:spec":{"f:x":{".":{},"f:y":{}}}}`, true},
		"defaulted key": {"the protocol is defaulted", "{ports: [{containerPort: 80}]}",
			`{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}`, true},
		"two defaults": {"each item has its own element",
			"{ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]}", `{"f:ports":{"k:{\"containerPort\":80,` +
				`\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}},"k:{\"containerPort\":80,\"protocol\":\"UDP\"}":{".":{},` +
				`"f:containerPort":{},"f:protocol":{}}}}`, true},
		"one of two": {"the element of one item does not stand for another",
			"{ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]}", `{"f:ports":{"k:{\"containerPort\":80,` +
				`\"protocol\":\"UDP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}}}`, false},
		"other key": {"another port", "{ports: [{containerPort: 81}]}",
			`{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}`, false},
		"field of an item": {"another manager has the image", "{containers: [{name: a, image: b}]}",
			`{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}`, false},
		"nested": {"lists in lists", "{c: [{name: a, env: [{name: b, value: c}]}]}",
			`{"f:c":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:env":{"k:{\"name\":\"b\"}":{".":{},"f:name":{},` +
				`"f:value":{}}}}}}`, true},
		"set": {"plain items", "{metadata: {finalizers: [a, b]}}",
			`{"f:metadata":{"f:finalizers":{"v:\"a\"":{},"v:\"b\"":{}}}}`, true},
		"set, one short": {"item b was removed", "{metadata: {finalizers: [a, b]}}",
			`{"f:metadata":{"f:finalizers":{"v:\"a\"":{}}}}`, false},
		"set of numbers":   {"numbers are equal", "{x: [1, 2]}", `{"f:x":{"v:1":{},"v:2":{}}}`, true},
		"atomic list":      {"the manager has the whole list", "{args: [a, b]}", `{"f:args":{}}`, true},
		"atomic list gone": {"another manager has the list", "{args: [a, b]}", `{"f:x":{}}`, false},
		"scalar in a list": {"an item with a key does not cover a scalar", "{x: text}", `{"f:x":{"k:{\"name\":\"a\"}":{}}}`,
			false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := parseFields([]byte(tc.fields))
			require.NoError(t, err)
			require.Equal(t, tc.want, covers(set, object(t, tc.manifest)), tc.reason)
		})
	}
}

func TestCovers_Properties(t *testing.T) {
	t.Parallel()
	var maps func(depth int) *rapid.Generator[map[string]any]
	maps = func(depth int) *rapid.Generator[map[string]any] {
		return rapid.Custom(func(t *rapid.T) map[string]any {
			content := map[string]any{}
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID).Draw(t,
				"names") {
				if content[name] = "x"; depth > 0 && rapid.Bool().Draw(t, "nested") {
					content[name] = maps(depth-1).Draw(t, "map")
				}
			}
			return content
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		content := maps(3).Draw(t, "manifest")
		set := fieldpath.SetFromValue(value.NewValueInterface(content))
		if !covers(set, content) {
			t.Fatal("a manager with all fields must cover the manifest")
		}
		var paths []fieldpath.Path
		for path := range set.Leaves().All() {
			paths = append(paths, path)
		}
		lost := rapid.SampledFrom(paths).Draw(t, "lost")
		if covers(set.Difference(fieldpath.NewSet(lost)), content) {
			t.Fatalf("a manager without %s must not cover the manifest", lost)
		}
	})
}

func FuzzCovers(f *testing.F) {
	f.Add([]byte(`{"ports":[{"containerPort":80}],"x":[1,"a",null,{}],"metadata":5}`),
		[]byte(`{"f:ports":{"k:{\"containerPort\":80}":{}},"f:x":{"v:1":{},"i:0":{}},"f:metadata":{"f:a":{}}}`))
	f.Add([]byte(`{"metadata":{"finalizers":["a"]},"spec":{"a":1.5}}`),
		[]byte(`{"f:metadata":{"f:finalizers":{"v:\"a\"":{}}},"f:spec":{".":{},"f:a":{}}}`))
	f.Fuzz(func(t *testing.T, manifest, fields []byte) {
		var content map[string]any
		set, err := parseFields(fields)
		if err != nil || utiljson.Unmarshal(manifest, &content) != nil {
			return
		}
		covers(set, content)
		for _, path := range pathsOf(set) {
			_ = path.String()
		}
	})
}

func TestLeavesOf_Keep(t *testing.T) {
	t.Parallel()
	entries := []metav1.ManagedFieldsEntry{
		{Manager: "us", Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{},"f:c":{"k:{\"name\":\"a\"}":{".":{},"f:image":{}}}}}`)},
		{Manager: "others", Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:max":{},"f:args":{}}}`)},
		{Manager: "broken", FieldsV1: metav1.NewFieldsV1(`{`)}, {Manager: "empty"},
	}
	for text, want := range map[string]bool{
		".spec.replicas":          true,  // owned
		".spec":                   true,  // partly owned
		`.spec.c[name="a"].image`: true,  // owned field of an item
		`.spec.c[name="b"].image`: false, // no manager has it
		".spec.max":               false, // another manager has it
		".spec.args[0]":           true,  // part of an atomic list, regardless of the manager
		".spec.replica":           false,
	} {
		path, err := v1alpha1.ParseFieldPath(text)
		require.NoError(t, err)
		require.Equal(t, want, leavesOf(entries, "us").keep(path), text)
	}
}

// covers calls cover.covers for an object without fields of other managers.
func covers(set *fieldpath.Set, content map[string]any) bool {
	return fieldCoverage{func() *fieldpath.Set { return fieldpath.NewSet() }}.covers(set, content)
}

func TestCovers_EmptyListsAndMaps(t *testing.T) {
	t.Parallel()
	ours := fieldpath.NewSet(
		fieldpath.MakePathOrDie("spec", "volumes", fieldpath.KeyByFields("name", "d"), "name"),
		fieldpath.MakePathOrDie("spec", "replicas"),
	)
	for _, tc := range []struct {
		reason, manifest string
		others           *fieldpath.Set
		want             bool
	}{
		{"empty lists and maps that the API server drops", `{"spec":{"replicas":1,"args":[],"selector":{}}}`,
			fieldpath.NewSet(),
			true},
		{"empty list that other managers have filled", `{"spec":{"replicas":1,"args":[]}}`,
			fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "args")), false},
		{"other fields of other managers", `{"spec":{"replicas":1,"args":[]}}`,
			fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "paused")), true},
		{
			"empty union member that other managers have replaced", `{"spec":{"volumes":[{"name":"d","emptyDir":{}}]}}`,
			fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "volumes", fieldpath.KeyByFields("name", "d"), "configMap",
				"name")), false,
		},
		{"empty union member that was dropped", `{"spec":{"volumes":[{"name":"d","emptyDir":{}}]}}`, fieldpath.NewSet(),
			true},
	} {
		coverage := fieldCoverage{func() *fieldpath.Set { return tc.others }}
		require.Equal(t, tc.want, coverage.covers(ours, object(t, tc.manifest)),
			tc.reason)
	}
}
