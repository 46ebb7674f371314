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
		"plain": {"every field is there",
			"{apiVersion: v1, kind: X, metadata: {name: a, namespace: b, labels: {c: d}}, data: {e: f}}",
			`{"f:metadata":{"f:labels":{"f:c":{}}},"f:data":{"f:e":{}}}`, true},
		"missing":       {"one is somebody else's", "{data: {e: f, g: h}}", `{"f:data":{"f:e":{}}}`, false},
		"missing label": {"metadata counts", "{metadata: {labels: {c: d}}}", `{"f:data":{}}`, false},
		"server's": {"no manager has what the API server writes",
			"{metadata: {creationTimestamp: null, generation: 1}}", `{}`, true},
		"empty": {"an empty map is a field", "{spec: {x: {}}}", `{"f:spec":{"f:x":{}}}`, true},
		"no longer empty": {"others have filled it, we have it still", "{spec: {x: {}}}",
			`{"f:spec":{"f:x":{".":{},"f:y":{}}}}`, true},
		"defaulted key": {"protocol has been defaulted", "{ports: [{containerPort: 80}]}",
			`{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}`, true},
		"two defaults": {"each item is an element of its own",
			"{ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]}", `{"f:ports":{"k:{\"containerPort\":80,` +
				`\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}},"k:{\"containerPort\":80,\"protocol\":\"UDP\"}":{".":{},` +
				`"f:containerPort":{},"f:protocol":{}}}}`, true},
		"one of two": {"the element of one item does not stand for another",
			"{ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]}", `{"f:ports":{"k:{\"containerPort\":80,` +
				`\"protocol\":\"UDP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}}}`, false},
		"other key": {"another port", "{ports: [{containerPort: 81}]}",
			`{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}`, false},
		"field of an item": {"the image is somebody else's", "{containers: [{name: a, image: b}]}",
			`{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}`, false},
		"nested": {"lists in lists", "{c: [{name: a, env: [{name: b, value: c}]}]}",
			`{"f:c":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:env":{"k:{\"name\":\"b\"}":{".":{},"f:name":{},` +
				`"f:value":{}}}}}}`, true},
		"set": {"plain items", "{metadata: {finalizers: [a, b]}}",
			`{"f:metadata":{"f:finalizers":{"v:\"a\"":{},"v:\"b\"":{}}}}`, true},
		"set, one short": {"b was removed", "{metadata: {finalizers: [a, b]}}",
			`{"f:metadata":{"f:finalizers":{"v:\"a\"":{}}}}`, false},
		"set of numbers":   {"1 is 1", "{x: [1, 2]}", `{"f:x":{"v:1":{},"v:2":{}}}`, true},
		"atomic list":      {"a whole", "{args: [a, b]}", `{"f:args":{}}`, true},
		"atomic list gone": {"of somebody else", "{args: [a, b]}", `{"f:x":{}}`, false},
		"scalar in a list": {"nothing of it fits", "{x: text}", `{"f:x":{"k:{\"name\":\"a\"}":{}}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := parseFields([]byte(tc.fields))
			require.NoError(t, err)
			require.Equal(t, tc.want, covers(set, object(t, tc.manifest)), tc.reason)
		})
	}
}

func TestCoversProperties(t *testing.T) {
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
			t.Fatal("who has all fields has the manifest")
		}
		var paths []fieldpath.Path
		for path := range set.Leaves().All() {
			paths = append(paths, path)
		}
		lost := rapid.SampledFrom(paths).Draw(t, "lost")
		if covers(set.Difference(fieldpath.NewSet(lost)), content) {
			t.Fatalf("%s is somebody else's", lost)
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

func TestKeep(t *testing.T) {
	t.Parallel()
	entries := []metav1.ManagedFieldsEntry{
		{Manager: "us", Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{},"f:c":{"k:{\"name\":\"a\"}":{".":{},"f:image":{}}}}}`)},
		{Manager: "others", Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:max":{},"f:args":{}}}`)},
		{Manager: "broken", FieldsV1: metav1.NewFieldsV1(`{`)}, {Manager: "empty"},
	}
	for text, want := range map[string]bool{
		".spec.replicas":          true,  // ours
		".spec":                   true,  // in part
		`.spec.c[name="a"].image`: true,  // an item's
		`.spec.c[name="b"].image`: false, // no manager has it
		".spec.max":               false, // another manager has it
		".spec.args[0]":           true,  // part of a whole, whosever it is
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

func TestCovers_Empty(t *testing.T) {
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
		{"the API server drops empty lists and maps", `{"spec":{"replicas":1,"args":[],"selector":{}}}`, fieldpath.NewSet(),
			true},
		{"a list that others have filled", `{"spec":{"replicas":1,"args":[]}}`,
			fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "args")), false},
		{"what others have elsewhere", `{"spec":{"replicas":1,"args":[]}}`,
			fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "paused")), true},
		{
			"an empty member of a union that others have replaced", `{"spec":{"volumes":[{"name":"d","emptyDir":{}}]}}`,
			fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "volumes", fieldpath.KeyByFields("name", "d"), "configMap",
				"name")), false,
		},
		{"an empty member that was dropped", `{"spec":{"volumes":[{"name":"d","emptyDir":{}}]}}`, fieldpath.NewSet(), true},
	} {
		coverage := fieldCoverage{func() *fieldpath.Set { return tc.others }}
		require.Equal(t, tc.want, coverage.covers(ours, object(t, tc.manifest)),
			tc.reason)
	}
}
